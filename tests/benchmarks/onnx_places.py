"""How often providers take the nodes that their tables say: real models, real sessions, without a GPU.

`python tests/benchmarks/onnx_places.py openvino PYTHON FOLDER…`, where PYTHON has onnxruntime-openvino and OpenVINO;
`python tests/benchmarks/onnx_places.py webgpu DIST FOLDER…`, where DIST is the folder dist of the npm package
onnxruntime-web; this needs Playwright and a Chromium, which computes in software. The folders hold models. Sessions are
opened without optimisation, so that nodes keep their names.
"""

from __future__ import annotations

import functools
import http.server
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import which
from typing import Any

import onnx

from assistant.model.errors import AssistantError
from assistant.onnx.graph import bodies
from assistant.onnx.load import load_model
from assistant.onnx.placement import Node, named, placed

LEAST = 0.97  # chosen: of nodes that are placed as predicted
SECONDS = 120
ALL = "*"
Places = dict[str, str]  # the provider of each node, by its name; under ALL that of every node
# Opens a model, and prints which provider has each node of the main graph.
OPENVINO = """
import json, sys, onnxruntime as ort
options = ort.SessionOptions()
options.log_severity_level = 4
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
providers = [("OpenVINOExecutionProvider", {"device_type": "CPU"}), "CPUExecutionProvider"]
session = ort.InferenceSession(sys.argv[1], options, providers=providers)
parts = session.get_provider_graph_assignment_info()
print(json.dumps({node.name: part.ep_name for part in parts for node in part.get_nodes()}))
"""
PAGE = """<script>
const said = [];
for (const name of ['log', 'debug', 'info', 'warn', 'error']) console[name] = (...words) => said.push(words.join(' '));
</script>
<script type="module">
import * as ort from './dist/ort.all.min.mjs';
ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'verbose';
window.open_model = async (model) => {
  const options = {executionProviders: ['webgpu'], logSeverityLevel: 0, graphOptimizationLevel: 'disabled'};
  try { await (await ort.InferenceSession.create(model, options)).release(); } catch (e) { return ''; }
  return said.join('\\n');
};
window.ready = true;
</script>"""
FLAGS = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan", "--no-sandbox")


def on_openvino(python: str, path: Path) -> Places | None:
    """Open a model on OpenVINO's CPU; None where it does not open."""
    command = [python, "-c", OPENVINO, path]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    return json.loads(done.stdout.splitlines()[-1])


class Browser:
    """A page of Chromium with onnxruntime-web, and the server that it comes from."""

    def __init__(self, dist: str, folder: Path, left: ExitStack) -> None:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - OpenVINO needs none

        (folder / "dist").symlink_to(Path(dist).resolve())
        (folder / "index.html").write_text(PAGE, "utf-8")
        handler = functools.partial(_Quiet, directory=str(folder))
        server = left.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        left.callback(server.shutdown)
        chromium = left.enter_context(sync_playwright()).chromium
        browser = chromium.launch(executable_path=which("chromium"), args=list(FLAGS))
        left.callback(browser.close)
        self._folder, self._page = folder, browser.new_page()
        self._address = f"http://127.0.0.1:{server.server_port}/index.html"

    def places(self, path: Path) -> Places | None:
        """Open a model on WebGPU; None where it does not open."""
        (self._folder / "model.onnx").write_bytes(path.read_bytes())
        self._page.goto(self._address)
        self._page.wait_for_function("window.ready")
        return dict(_told(self._page.evaluate("open_model('model.onnx')"))) or None


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}

    def end_headers(self) -> None:
        """Let nothing be kept: each model has the same name."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_given: Any) -> None:
        """Say nothing."""


def _told(log: str) -> Iterator[tuple[str, str]]:
    """Read "Node placements" in a session's log, the main graph's first: a line for all, or one for each node."""
    first, provider = log.partition("Node placements")[2].partition("Node placements")[0], ""
    for whole in re.findall(r"All nodes placed on \[(\w+)\]", first):
        yield ALL, whole
    for line in first.splitlines():
        heading = re.search(r"Node\(s\) placed on \[(\w+)\]", line)
        provider = heading[1] if heading else provider
        node = re.search(r"\]\s+\w+ \((\d+_\d+)\)\s*$", line)
        if node and provider:
            yield node[1], provider


def with_names(path: Path, copy: Path, target: str) -> list[Node]:
    """Write a model with a name for every node; give what is predicted of its main graph."""
    model = load_model(path)
    for number, body in enumerate(bodies(model)):
        for index, node in enumerate(body.node):
            node.name = f"{number}_{index}"
    whole = named(model)
    onnx.save(model, copy)
    return [node for node in placed(whole, target) if node.step.scope is whole.main and node.op != "Constant"]


def compared(path: Path, target: str, really: Callable[[Path], Places | None]) -> Iterator[tuple[str, str, str]]:
    """Yield operator, predicted and real device of each node of the main graph that the session tells."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        nodes = with_names(path, copy, target)
        found = really(copy)
    if found is None:
        print(f"{path.name}: does not open")
    for node in nodes if found else ():
        provider = found.get(ALL, found.get(node.name))
        if provider:
            yield node.op, node.device, "cpu" if provider == "CPUExecutionProvider" else target


def main() -> None:
    """Print for each model how many nodes are placed as predicted, and what is not; end with 1 below the limit."""
    which_one, tool, *folders = sys.argv[1:]
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.onnx"))]
    wrong: Counter[tuple[str, str, str]] = Counter()
    whole = right = models = 0
    with ExitStack() as left:
        if which_one == "webgpu":
            folder = Path(left.enter_context(tempfile.TemporaryDirectory()))
            target, really = "webgpu", Browser(tool, folder, left).places
        else:
            target, really = "openvino-cpu", functools.partial(on_openvino, tool)
        for file in files:
            try:
                found = list(compared(file, target, really))
            except AssistantError as error:
                print(f"{file.name}: {error}")
                continue
            agreed = sum(predicted == real for _op, predicted, real in found)
            wrong.update(one for one in found if one[1] != one[2])
            whole, right, models = whole + len(found), right + agreed, models + bool(found)
            print(f"{file.name}: {agreed} of {len(found)}", flush=True)
    for (op, predicted, real), count in wrong.most_common(20):
        print(f"  {op}: predicted {predicted}, really {real}: {count}")
    print(f"{right} of {whole} nodes of {models} models are placed as predicted ({right / max(whole, 1):.2%})")
    sys.exit(right < whole * LEAST)


if __name__ == "__main__":
    main()
