// Python beside the page: it starts once, then checks the models that the page hands it, in memory.
// What it is told: {files, model, language}.
// What it tells: {kind: "ready"}, {kind: "checking", name, at, all}, {kind: "answers", answers}, {kind: "refused", …},
// {kind: "broken", reason} after which it is of no more use.

import { loadPyodide } from "../static/pyodide/pyodide.mjs";

const PACKAGES = ["msgspec", "onnx", "packaging", "protobuf", "torch-setup-assistant", "typing-extensions"];
const PROGRAMS = ["no_numpy.py", "page.py"];
const OWN_FOLDER = "/page";
const FOLDER = "/model";
const WAYS_OUT = ["fetch", "XMLHttpRequest", "WebSocket", "WebSocketStream", "WebTransport", "EventSource"];

async function start() {
  const programs = await Promise.all(PROGRAMS.map(async (name) => (await fetch(name)).text()));
  const python = await loadPyodide({ packages: PACKAGES });
  python.FS.mkdir(FOLDER);
  python.FS.mkdir(OWN_FOLDER);
  PROGRAMS.forEach((name, at) => python.FS.writeFile(`${OWN_FOLDER}/${name}`, programs[at]));
  python.runPython(`import sys; sys.path.append("${OWN_FOLDER}"); import no_numpy; no_numpy.stand_in()`);
  const page = python.pyimport("page");
  for (const way of WAYS_OUT) self[way] = undefined;  // before the first model comes: nothing here can send it
  self.postMessage({ kind: "ready" });
  return { page, files: python.FS, targets: JSON.parse(page.targets()) };
}

// The files stay where they are: what Python reads of them is read from the disk then.
async function check({ files, model, language }) {
  const python = await started;
  python.files.mount(python.files.filesystems.WORKERFS, { files }, FOLDER);
  const answers = [];
  try {
    for (const [at, target] of python.targets.entries()) {
      const name = python.page.name_of(target, language);
      self.postMessage({ kind: "checking", name, at, all: python.targets.length });
      const answer = JSON.parse(python.page.check(model, FOLDER, target, language));
      if (!answer.answer) return self.postMessage({ kind: "refused", ...answer });
      answers.push(answer);
    }
  } finally {
    python.files.unmount(FOLDER);
  }
  self.postMessage({ kind: "answers", answers });
}

function broken(error) {
  self.postMessage({ kind: "broken", reason: String(error?.message ?? error) });
}

const started = start();
started.catch(broken);
self.addEventListener("message", ({ data }) => started.then(() => check(data)).catch(broken));
