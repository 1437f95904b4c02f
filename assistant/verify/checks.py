"""The checks of torch, its device and arithmetic that `child.py` loads inside the target's Python.

A check takes the `Target`, computes on its device, compares with NumPy in float64 and answers a result. To add one,
write a function and give it a row in `CHECKS`; like `child.py` this file runs on Python >= 3.8 and imports nothing of
the assistant.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import platform
import tempfile
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assistant.verify.child import Array, Checks, Result, Target, Tensor


MEGABYTE = 1 << 20


def check_import(target: Target) -> Result:
    """Import torch; a missing library or another ABI shows in the exception's chain."""
    started = time.perf_counter()
    target.torch = torch = importlib.import_module("torch")
    seconds = time.perf_counter() - started
    getattr(torch, "set_warn_always", bool)(True)  # else torch tells of the first operator only that ran on the CPU
    facts = {"torch": torch.__version__, "cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None)}
    target.tell_facts(**facts, threads=torch.get_num_threads())
    return {"status": "passed", "seconds": seconds, "first_seconds": seconds}


def check_device(target: Target) -> Result:
    """Allocate on the device and see that the memory was taken there."""
    started = time.perf_counter()
    target.device = find_device(target)
    for settings in (target.torch.backends.cuda.matmul, target.torch.backends.cudnn):
        if hasattr(settings, "allow_tf32"):
            settings.allow_tf32 = False  # its 10 bits would look like a wrong device
    before = target.allocated()
    tensor = target.torch.ones(MEGABYTE // 4, device=target.device)
    target.wait([tensor])
    seconds = time.perf_counter() - started
    target.require(tensor)
    after = target.allocated()
    if before is not None and after is not None and after - before < MEGABYTE:
        raise target.refuse("no memory taken", size=MEGABYTE, taken=after - before, device=target.asked)
    target.tell_facts(**device_facts(target))
    return {"status": "passed", "seconds": seconds, "first_seconds": seconds}


def find_device(target: Target) -> Any:  # noqa: ANN401 - a torch.device of the target
    """Return torch's device for the name asked for; raise as torch does where there is none."""
    torch = target.torch
    if target.kind == "directml":
        directml = importlib.import_module("torch_directml")
        return directml.device(int(target.index)) if target.index else directml.device()
    if target.kind == "rocm":
        if not getattr(torch.version, "hip", None):
            raise target.refuse("no rocm", torch=torch.__version__)
        return torch.device("cuda" + (":" + target.index if target.index else ""))
    return torch.device(target.asked)


def device_facts(target: Target) -> dict[str, object]:
    """Return the device's name, memory and architecture, as far as torch knows them."""
    facts: dict[str, object] = {"device": target.device}
    if target.kind == "directml":
        directml = importlib.import_module("torch_directml")
        facts["device name"] = directml.device_name(int(target.index or directml.default_device()))
    elif target.device.type == "cpu":
        capability = getattr(getattr(target.torch.backends, "cpu", None), "get_cpu_capability", str)
        facts.update({"device name": platform.processor() or platform.machine(), "cpu capability": capability()})
    elif target.device.type == "mps":
        facts["device name"] = getattr(target.torch.backends.mps, "get_name", str)()
    elif hasattr(target.accelerator(), "get_device_properties"):
        seen = target.accelerator().get_device_properties(target.device)
        facts.update({"device name": seen.name, "device memory": f"{seen.total_memory / 2**30:.1f} GiB"})
        facts["compute capability"] = f"{seen.major}.{seen.minor}" if hasattr(seen, "major") else None
        facts["architecture"] = getattr(seen, "gcnArchName", None)
    return facts


ORT_PROVIDERS = {
    "cpu": ("CPUExecutionProvider",),
    "cuda": ("CUDAExecutionProvider",),
    "rocm": ("MIGraphXExecutionProvider", "ROCMExecutionProvider"),
    "directml": ("DmlExecutionProvider",),
    "xpu": ("OpenVINOExecutionProvider",),
    "mps": ("CoreMLExecutionProvider",),
}


def check_copy(target: Target) -> Result:
    """Copy to the device and back: floats, integers, a transposed and a strided view."""
    floats = target.data(1, 64, 48)
    integers = target.numpy.arange(-500, 500, dtype="int64").reshape(20, 50)

    def compute() -> list[Tensor]:
        there, whole = target.put(floats), target.put(integers)
        return [there, whole, there.t().contiguous(), there[::3, 1::2].clone()]

    return target.measure(compute, [floats, integers, floats.T, floats[::3, 1::2]], tolerance=0.0)


def check_matmul(target: Target) -> Result:
    """Multiply two matrices whose sides are no powers of two."""
    arrays = [target.data(2, 200, 150), target.data(3, 150, 170)]
    return target.compare(arrays, lambda a, b: [a @ b], lambda a, b: [a @ b])


def check_solve(target: Target, square: tuple[int, ...], right: tuple[int, ...]) -> Result:
    """Solve random systems with a heavy diagonal; the reference is LAPACK in float64."""
    np, sides = target.numpy, target.data(5, *right)
    matrices = target.data(4, *square) + 0.5 * square[-1] * np.eye(square[-1], dtype="float32")

    def reference(a: Array, b: Array) -> list[Array]:
        return [np.linalg.solve(a, np.broadcast_to(b, (*square[:-2], *right[-2:])))]

    return target.compare([matrices, sides], lambda a, b: [target.torch.linalg.solve(a, b)], reference)


def check_conv2d(target: Target) -> Result:
    """Convolve a small batch of images with padding, stride and bias."""
    np, convolve = target.numpy, target.torch.nn.functional.conv2d

    def reference(images: Array, kernels: Array, bias: Array) -> list[Array]:
        padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
        return [np.einsum("nchwij,ocij->nohw", windows, kernels) + bias[:, None, None]]

    arrays = [target.data(6, 2, 3, 17, 19), target.data(7, 8, 3, 3, 3), target.data(8, 8)]
    return target.compare(arrays, lambda a, b, c: [convolve(a, b, c, stride=2, padding=1)], reference)


def check_training(target: Target) -> Result:
    """Take one gradient step of a two-layer network: loss, gradients and new weights."""
    inputs, goal = target.data(9, 32, 20), target.data(10, 32, 4)
    first, second = target.data(11, 20, 16), target.data(12, 16, 4)
    x, y = target.put(inputs), target.put(goal)

    def compute() -> list[Tensor]:
        weights = [target.put(first).requires_grad_(), target.put(second).requires_grad_()]
        loss = ((target.torch.tanh(x @ weights[0]) @ weights[1] - y) ** 2).mean()
        loss.backward()
        stepped = [(weight - 0.1 * weight.grad).detach() for weight in weights]
        return [loss.detach(), *(weight.grad for weight in weights), *stepped]

    return target.measure(compute, training_reference(target, inputs, goal, first, second))


def training_reference(target: Target, inputs: Array, goal: Array, first: Array, second: Array) -> list[Array]:
    """Derive by hand, in float64: loss, both gradients, both weights after a step of 0.1."""
    x, y, one, two = (target.wide(array) for array in (inputs, goal, first, second))
    hidden = target.numpy.tanh(x @ one)
    miss = hidden @ two - y
    slope = 2.0 * miss / miss.size
    down, up = x.T @ ((slope @ two.T) * (1.0 - hidden**2)), hidden.T @ slope
    return [(miss**2).mean(), down, up, one - 0.1 * down, two - 0.1 * up]


def check_reductions(target: Target) -> Result:
    """Reduce along each side: sum, mean, spread, largest value and its place, softmax."""

    def reduced(there: Tensor) -> list[Tensor]:
        rows = [there.mean(1), there.std(1), there.amax(1), there.argmax(1)]
        return [there.sum(), there.sum(0), *rows, target.torch.softmax(there, 1)]

    def reference(full: Array) -> list[Array]:
        powers = target.numpy.exp(full - full.max(axis=1, keepdims=True))
        rows = [full.mean(1), full.std(1, ddof=1), full.max(1), full.argmax(1)]
        return [full.sum(), full.sum(0), *rows, powers / powers.sum(1, keepdims=True)]

    return target.compare([target.data(13, 37, 53)], reduced, reference)


def check_onnxruntime(target: Target) -> Result:
    """Run a tiny model through ONNX Runtime's provider for the device; skipped where it has none.

    Its own profile tells which provider ran each operator: a session may silently take the CPU's.
    """
    for name in ("onnxruntime", "onnx", "numpy"):
        if importlib.util.find_spec(name) is None:
            return {"status": "skipped", **target.explain("not installed", name=name)}
    ort = importlib.import_module("onnxruntime")
    there = ort.get_available_providers()
    provider = next((name for name in ORT_PROVIDERS.get(target.kind, ()) if name in there), None)
    if provider is None:
        facts = {"version": ort.__version__, "device": target.kind, "there": ", ".join(there)}
        return {"status": "skipped", **target.explain("no provider", **facts)}
    found, results, ran = onnx_run(target, ort, provider)
    strayed = [node for node, where in ran.items() if where != provider]
    if not ran:
        return {"status": "failed", **target.explain("no node", provider=provider)}
    if strayed:
        nodes, places = ", ".join(strayed), ", ".join(sorted({ran[node] for node in strayed}))
        return {"status": "failed", **target.explain("other provider", nodes=nodes, found=places, provider=provider)}
    if found["status"] == "passed" and provider != "CPUExecutionProvider":
        beside = onnx_run(target, ort, "CPUExecutionProvider")[1]
        return {**found, **target.judge([results], beside)}
    return found


def onnx_run(target: Target, ort: Any, provider: str) -> tuple[Result, list[Array], dict[str, str]]:  # noqa: ANN401 - the target's
    """Run twice on one provider and compare with NumPy; return that, the results, and which provider ran each node."""
    inputs, weights = target.data(14, 16, 24), target.data(15, 24, 8)
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.enable_profiling, options.profile_file_prefix = True, folder + "/profile"
        started = time.perf_counter()
        settings = {"device_id": target.index} if target.index and target.kind != "cpu" else {}
        session = ort.InferenceSession(onnx_model(weights), options, providers=[(provider, settings)])
        first = session.run(None, {"x": inputs})
        between = time.perf_counter()
        again = session.run(None, {"x": inputs})
        times = {"seconds": time.perf_counter() - between, "first_seconds": between - started}
        ran = onnx_places(session.end_profiling())
    expected = target.numpy.maximum(target.wide(inputs) @ target.wide(weights), 0.0)
    return {**target.judge([first, again], [expected]), **times}, again, ran


def onnx_places(path: str) -> dict[str, str]:
    """Read in ONNX Runtime's own profile which provider ran each operator.

    {"cat": "Node", "name": "product_kernel_time", "args": {"op_name": "MatMul", "provider": "CPUExecutionProvider", …}}
    """
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as the rest of the child
        events = [event.get("args", {}) for event in json.load(file)]
    return {event["op_name"]: event["provider"] for event in events if event.get("provider")}


def onnx_model(weights: Array) -> bytes:
    """Build max(0, x @ weights) in old opset and format versions, which any ONNX Runtime reads.

    The weights are constants: Core ML takes no others.
    """
    onnx = importlib.import_module("onnx")
    make, single = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [make.make_node("MatMul", ["x", "w"], ["h"], "product"), make.make_node("Relu", ["h"], ["y"], "rectify")]
    ends = [make.make_tensor_value_info(name, single, shape) for name, shape in (("x", [16, 24]), ("y", [16, 8]))]
    constant = importlib.import_module("onnx.numpy_helper").from_array(weights, "w")
    graph = make.make_graph(nodes, "tiny", ends[:1], ends[1:], [constant])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


CHECKS: Checks = {
    "import": (check_import, ()),
    "device": (check_device, ("import",)),
    "copy": (check_copy, ("device",)),
    "matmul": (check_matmul, ("copy",)),
    "linalg.solve": (lambda target: check_solve(target, (48, 48), (48, 3)), ("copy",)),
    "linalg.solve.batched": (lambda target: check_solve(target, (5, 24, 24), (5, 24, 2)), ("copy",)),
    "linalg.solve.broadcast": (lambda target: check_solve(target, (5, 24, 24), (24, 2)), ("copy",)),
    "conv2d": (check_conv2d, ("copy",)),
    "training": (check_training, ("copy",)),
    "reductions": (check_reductions, ("copy",)),
    "onnxruntime": (check_onnxruntime, ()),
}
