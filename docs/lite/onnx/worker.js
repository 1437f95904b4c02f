// Python beside the page: it starts once, then checks the models that the page hands it, in memory.
// It is told {work: "check" | "propose" | "fix", files, model, language}, to "fix" with {sizes} by name, and tells
// {kind: "ready"}, {kind: "checking", name, at, all}, {kind: "refused", …}, what came of the work under its name, and
// {kind: "broken", reason}, after which it is of no more use.

import { loadPyodide } from "../static/pyodide/pyodide.mjs";

const PACKAGES = ["msgspec", "onnx", "packaging", "protobuf", "torch-setup-assistant", "typing-extensions"];
const PROGRAMS = ["no_numpy.py", "page.py"];
const OWN_FOLDER = "/page";
const FOLDER = "/model";
const RESULT = "/page/result.onnx";
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

const WORK = {
  check({ page, targets }, { model, language }) {
    const answers = [];
    for (const [at, target] of targets.entries()) {
      self.postMessage({ kind: "checking", name: page.name_of(target, language), at, all: targets.length });
      answers.push(JSON.parse(page.check(model, FOLDER, target, language)));
      if (!answers[at].answer) return answers[at];
    }
    return { answers, isOpen: page.is_open(model, FOLDER) };
  },
  propose: ({ page }, { model, language }) => JSON.parse(page.fix(model, FOLDER, "", language, RESULT)),
  fix({ page, files }, { model, language, sizes }) {
    const done = JSON.parse(page.fix(model, FOLDER, JSON.stringify(sizes), language, RESULT));
    if (done.sizes) {
      done.content = files.readFile(RESULT);
      files.unlink(RESULT);
    }
    return done;
  },
};

// The files stay where they are: what Python reads of them is read from the disk then.
function work(python, request) {
  python.files.mount(python.files.filesystems.WORKERFS, { files: request.files }, FOLDER);
  try {
    const done = WORK[request.work](python, request);
    self.postMessage({ kind: done.error || done.memory ? "refused" : request.work, ...done });
  } finally {
    python.files.unmount(FOLDER);
  }
}

function broken(error) {
  self.postMessage({ kind: "broken", reason: String(error?.message ?? error) });
}

const started = start();
started.catch(broken);
self.addEventListener("message", ({ data }) => started.then((python) => work(python, data)).catch(broken));
