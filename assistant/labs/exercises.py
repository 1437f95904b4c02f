"""What each lab really breaks, how that shows, and what counts as fixed."""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

from assistant.host.files import write_whole
from assistant.i18n import Text, say
from assistant.labs.builds import build_fault, compute_on_gpu, install_torch
from assistant.labs.pretended import offer_device, solve, solve_fault
from assistant.labs.scene import Outcome, Scene


class Exercise(NamedTuple):
    """One lab: `breaks` prepares the folder, `symptom` runs what fails, `fault` returns what is still wrong.

    Without a `fault` of its own, a lab is solved when its symptom succeeds.
    """

    breaks: Callable[[Scene], None]
    symptom: Callable[[Scene], Outcome]
    fault: Callable[[Scene], Text] | None = None

    def remaining(self, scene: Scene) -> Text:
        """Return what is still wrong; "" when the lab is solved."""
        return self.fault(scene) if self.fault else _fails(self.symptom(scene))


def _fails(outcome: Outcome) -> str:
    return say("The program still fails: {reason}", reason=outcome.last) if outcome.status else ""


def _break_directml(scene: Scene) -> None:
    scene.venv(beside_torch=True)
    scene.install("--no-deps", "torch-directml==0.2.5.dev240914")
    scene.write("launch.json", '{"arguments": ["--directml"]}')


def _start_program(scene: Scene) -> Outcome:
    return scene.program("image_program.py", str(scene.folder / "launch.json"))


def _directml_fault(scene: Scene) -> str:
    found = scene.call(scene.python(), "-c", "import importlib.util as u; print(u.find_spec('torch_directml'))")
    if found.last != "None":
        return say("torch-directml is still installed: the next program that finds it fails in the same way.")
    return _fails(_start_program(scene))


def _break_kernel(scene: Scene) -> None:
    scene.venv()
    scene.install("ipykernel")
    scene.venv("work", beside_torch=True)
    scene.install("ipykernel", name="work")
    argv = [str(scene.python()), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    quoted = ", ".join(f'"{part}"' for part in argv).replace("\\", "\\\\")
    scene.write("kernels/lab/kernel.json", f'{{"argv": [{quoted}], "display_name": "lab", "language": "python"}}')


def _use_kernel(scene: Scene) -> Outcome:
    """Run a program in the kernel; jupyter's own runner ends with 0 whatever the program does, so its words count."""
    done = scene.program("notebook_kernel.py", "lab", python=sys.executable)
    return Outcome(0 if done.last == "torch computes in this kernel" else 1, done.text)


def _break_runtimes(scene: Scene) -> None:
    scene.venv()
    scene.install("onnxruntime-openvino")
    scene.install("onnxruntime")


def _ask_provider(scene: Scene) -> Outcome:
    return scene.program("ask_openvino.py")


def _runtimes_fault(scene: Scene) -> str:
    listed = scene.uv("pip", "list", "--python", str(scene.python()), "--format", "freeze").text.splitlines()
    flavours = [line.partition("==")[0] for line in listed if line.startswith("onnxruntime")]
    if len(flavours) != 1:
        return say("{count} flavours of ONNX Runtime are installed.", count=len(flavours))
    return _fails(_ask_provider(scene))


def _break_numpy(scene: Scene) -> None:
    scene.venv(version="3.11")
    scene.install("--no-deps", "onnxruntime==1.16.3", "numpy==2.1.3")
    scene.install("coloredlogs", "flatbuffers", "packaging", "protobuf", "sympy")


def _import_runtime(scene: Scene) -> Outcome:
    """Import it: Python goes on after the complaint with half a module, so any other output is a failure."""
    done = scene.call(scene.python(), "-c", "import onnxruntime; print(len(onnxruntime.get_available_providers()) > 0)")
    return Outcome(0, "") if done.text.strip() == "True" else Outcome(1, done.text.strip().removesuffix("True"))


def _break_solve(scene: Scene) -> None:
    offer_device(scene, "mps")
    scene.write("model.py", _MODEL.format(solved="torch.linalg.solve(systems, sides)"))


def _break_silently(scene: Scene) -> None:
    offer_device(scene, "directml")
    loop = "torch.stack([torch.linalg.solve(system, side) for system, side in zip(systems, sides)])"
    scene.write("model.py", _MODEL.format(solved=loop))


def _break_mirror(scene: Scene) -> None:
    """Make two indexes of one small package; the mirror's file is not the one that its page promises."""
    genuine, altered = _wheel(42), _wheel(666)
    for place, content in (("upstream", genuine), ("mirror", altered)):
        folder = scene.folder / place / "simple" / "lab-demo"
        folder.mkdir(parents=True)
        write_whole(folder / WHEEL, content)
        promised = hashlib.sha256(genuine).hexdigest()
        write_whole(folder / "index.html", f'<a href="{WHEEL}#sha256={promised}">{WHEEL}</a>')
    scene.venv(seed=True)


WHEEL = "lab_demo-1.0-py3-none-any.whl"


def _wheel(value: int) -> bytes:
    about = "lab_demo-1.0.dist-info"
    files = {
        "lab_demo.py": f"VALUE = {value}\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: lab-demo\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return packed.getvalue()


def _install_demo(scene: Scene) -> Outcome:
    index = (scene.folder / "mirror" / "simple").as_uri()
    pip = ("-m", "pip", "--disable-pip-version-check", "--isolated", "install", "--no-cache-dir", "--dry-run")
    return scene.call(scene.python(), *pip, "--index-url", index, "lab-demo")


def _mirror_fault(scene: Scene) -> str:
    value = scene.call(scene.python(), "-c", "import lab_demo; print(lab_demo.VALUE)")
    if value.status:
        return say("lab-demo is not installed.")
    return "" if value.last == "42" else say("What is installed is not the file that the index promises.")


def _break_model(scene: Scene) -> None:
    """Write a model whose inner values exceed FP16, with an opset newer than DirectML's kernels; and a naive copy."""
    import onnx  # noqa: PLC0415 - only this lab needs it

    for name, half in (("model.onnx", False), ("naive.onnx", True)):
        onnx.save(_model(half=half), str(scene.folder / name))


def _model(*, half: bool) -> Any:  # noqa: ANN401 - onnx is imported only by its lab
    import numpy as np  # noqa: PLC0415 - as above
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 - as above

    kind, made = (TensorProto.FLOAT16, np.float16) if half else (TensorProto.FLOAT, np.float32)
    chance = np.random.default_rng(0)
    wide = numpy_helper.from_array((40 * chance.standard_normal((16, 8))).astype(made), "wide")
    narrow = numpy_helper.from_array((1e-3 * chance.standard_normal((8, 4))).astype(made), "narrow")
    steps = (
        ("MatMul", ["x", "wide"], "a"),
        ("Mul", ["a", "a"], "b"),
        ("MatMul", ["b", "narrow"], "c"),
        ("Gelu", ["c"], "y"),
    )
    nodes = [helper.make_node(operator, inputs, [output]) for operator, inputs, output in steps]
    x, y = (helper.make_tensor_value_info(name, kind, ["batch", size]) for name, size in (("x", 16), ("y", 4)))
    graph = helper.make_graph(nodes, "lab", [x], [y], [wide, narrow])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def _run_model(scene: Scene, name: str) -> Outcome:
    return scene.program("run_model.py", str(scene.folder), name, python=scene.torch)


_OLD_DRIVER = "linux-ubuntu2404-rtx5070ti-driver570"
_CPU_BUILD = "linux-ubuntu2404-rtx2080ti"
_MODEL = "import torch\n\n\ndef solve(systems, sides):\n    return {solved}\n"
_COPIES = "10"  # that silent-cpu allows: one call makes six

SCENES = {
    "directml-on-linux": Exercise(_break_directml, _start_program, _directml_fault),
    "wrong-kernel": Exercise(_break_kernel, _use_kernel),
    "two-onnxruntimes": Exercise(_break_runtimes, _ask_provider, _runtimes_fault),
    "numpy-abi": Exercise(_break_numpy, _import_runtime),
    "cpu-build": Exercise(
        lambda scene: install_torch(scene, _CPU_BUILD, extra="cpu"),
        compute_on_gpu,
        lambda scene: build_fault(scene, _CPU_BUILD),
    ),
    "missing-solve": Exercise(_break_solve, solve, solve_fault),
    "silent-cpu": Exercise(
        _break_silently, lambda scene: solve(scene, _COPIES), lambda scene: solve_fault(scene, _COPIES)
    ),
    "onnx-overflow": Exercise(
        _break_model,
        lambda scene: _run_model(scene, "naive.onnx"),
        lambda scene: _fails(_run_model(scene, "fixed.onnx")),
    ),
    "wrong-hash": Exercise(_break_mirror, _install_demo, _mirror_fault),
    "driver-too-old": Exercise(
        lambda scene: install_torch(scene, _OLD_DRIVER),
        compute_on_gpu,
        lambda scene: build_fault(scene, _OLD_DRIVER),
    ),
}
