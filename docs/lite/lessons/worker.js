// Python beside a lesson: it is told {line, language}, and tells {kind: "ready"}, {kind: "answer", status, printed} for
// each line in its turn, and {kind: "broken", reason}, after which it is of no more use.

import { loadPyodide } from "../static/pyodide/pyodide.mjs";

const PACKAGES = ["click", "msgspec", "packaging", "platformdirs", "rich", "tomli-w", "torch-setup-assistant", "typing-extensions"];
const OWN_FOLDER = "/page";
const FOLDER = "/lesson";  // where the lines run

async function start() {
  const program = await (await fetch("typed.py")).text();
  const python = await loadPyodide({ packages: PACKAGES });
  for (const folder of [OWN_FOLDER, FOLDER]) python.FS.mkdir(folder);
  python.FS.writeFile(`${OWN_FOLDER}/typed.py`, program);
  python.FS.chdir(FOLDER);
  python.runPython(`import sys; sys.path.append("${OWN_FOLDER}")`);
  const typed = python.pyimport("typed");
  self.postMessage({ kind: "ready" });
  return typed;
}

function broken(error) {
  self.postMessage({ kind: "broken", reason: String(error?.message ?? error) });
}

const started = start();
started.catch(broken);
self.addEventListener("message", ({ data }) => started.then((typed) => {
  const [status, printed] = typed.answer(data.line, data.language).toJs();
  self.postMessage({ kind: "answer", status, printed });
}).catch(broken));
