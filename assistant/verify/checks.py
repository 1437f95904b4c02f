"""The checks of torch, its device, arithmetic, memory and speed that `child.py` loads inside the target's Python.

A check takes the `Target`, computes on its device, compares with NumPy in float64 and returns a result. To add one,
write a function and give it a row in `CHECKS`; like `child.py` this file runs on Python >= 3.8 and imports nothing of
the assistant.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import platform
import shutil
import tempfile
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assistant.verify.child import Array, Checks, Compute, Result, Target, Tensor


MEGABYTE = 1 << 20


def check_import(target: Target) -> Result:
    """Import torch as `target.torch`, report its versions and return "passed"; raise what the import raises.

    From then on torch repeats its warnings.
    """
    started = time.perf_counter()
    target.torch = torch = importlib.import_module("torch")
    seconds = time.perf_counter() - started
    getattr(torch, "set_warn_always", bool)(True)  # else torch tells of the first operator only that ran on the CPU
    facts = {"torch": torch.__version__, "cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None)}
    target.report_facts(**facts, threads=torch.get_num_threads())
    return {"status": "passed", "seconds": seconds, "first_seconds": seconds}


def check_device(target: Target) -> Result:
    """Set the target's device, turn TF32 off, report facts, and return "passed" if an allocation takes memory there.

    Raises `Refused` if torch allocates on another device, or counts no more memory on this one than before.
    """
    started = time.perf_counter()
    target.device = find_device(target)
    for settings in (target.torch.backends.cuda.matmul, target.torch.backends.cudnn):
        if hasattr(settings, "allow_tf32"):
            settings.allow_tf32 = False  # its 10 bits would look like a wrong device
    before = target.bytes_allocated()
    tensor = target.torch.ones(MEGABYTE // 4, device=target.device)
    target.wait([tensor])
    seconds = time.perf_counter() - started
    target.require_device(tensor)
    after = target.bytes_allocated()
    if before is not None and after is not None and after - before < MEGABYTE:
        raise target.refuse("no memory taken", size=MEGABYTE, taken=after - before, device=target.asked)
    target.report_facts(**device_facts(target))
    return {"status": "passed", "seconds": seconds, "first_seconds": seconds}


def find_device(target: Target) -> Any:  # noqa: ANN401 - a torch.device of the target
    """Return torch's device for the target's name; raise as torch does, or `Refused` if "rocm" meets another build."""
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
    """Return facts of the target's device as far as torch knows them; any but "device" may be missing or empty.

    The keys are "device", "device name", "device memory" (in GiB), "compute capability" and "architecture" of a GPU,
    and "cpu capability".
    """
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
    """Check that floats, integers, a transposed and a strided view come back from the device unchanged."""
    floats = target.random_array(1, 64, 48)
    integers = target.numpy.arange(-500, 500, dtype="int64").reshape(20, 50)

    def compute() -> list[Tensor]:
        there, whole = target.to_device(floats), target.to_device(integers)
        return [there, whole, there.t().contiguous(), there[::3, 1::2].clone()]

    return target.measure(compute, [floats, integers, floats.T, floats[::3, 1::2]], tolerance=0.0)


def check_matmul(target: Target) -> Result:
    """Check a product of two matrices, whose sides are no powers of two, against NumPy's."""
    arrays = [target.random_array(2, 200, 150), target.random_array(3, 150, 170)]
    return target.compare(arrays, lambda a, b: [a @ b], lambda a, b: [a @ b])


def check_solve(target: Target, square: tuple[int, ...], right: tuple[int, ...]) -> Result:
    """Check solutions of linear systems, of the shapes `square` and `right`, against those of LAPACK in float64."""
    np, sides = target.numpy, target.random_array(5, *right)
    matrices = target.random_array(4, *square) + 0.5 * square[-1] * np.eye(square[-1], dtype="float32")

    def reference(a: Array, b: Array) -> list[Array]:
        return [np.linalg.solve(a, np.broadcast_to(b, (*square[:-2], *right[-2:])))]

    return target.compare([matrices, sides], lambda a, b: [target.torch.linalg.solve(a, b)], reference)


def check_conv2d(target: Target) -> Result:
    """Check a convolution of a small batch of images, with padding, stride and bias, against NumPy."""
    np, convolve = target.numpy, target.torch.nn.functional.conv2d

    def reference(images: Array, kernels: Array, bias: Array) -> list[Array]:
        padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
        return [np.einsum("nchwij,ocij->nohw", windows, kernels) + bias[:, None, None]]

    arrays = [target.random_array(6, 2, 3, 17, 19), target.random_array(7, 8, 3, 3, 3), target.random_array(8, 8)]
    return target.compare(arrays, lambda a, b, c: [convolve(a, b, c, stride=2, padding=1)], reference)


def check_training(target: Target) -> Result:
    """Check loss, gradients and new weights of one step of a two-layer network against `reference_training`."""
    inputs, goal = target.random_array(9, 32, 20), target.random_array(10, 32, 4)
    first, second = target.random_array(11, 20, 16), target.random_array(12, 16, 4)
    x, y = target.to_device(inputs), target.to_device(goal)

    def compute() -> list[Tensor]:
        """Return loss, both gradients and both new weights, in the order of `reference_training`."""
        weights = [target.to_device(first).requires_grad_(), target.to_device(second).requires_grad_()]
        loss = ((target.torch.tanh(x @ weights[0]) @ weights[1] - y) ** 2).mean()
        loss.backward()
        stepped = [(weight - 0.1 * weight.grad).detach() for weight in weights]
        return [loss.detach(), *(weight.grad for weight in weights), *stepped]

    return target.measure(compute, reference_training(target, inputs, goal, first, second))


def reference_training(target: Target, inputs: Array, goal: Array, first: Array, second: Array) -> list[Array]:
    """Return loss, both gradients, both new weights after a step of 0.1, derived by hand in NumPy's float64.

    The loss is the mean of (tanh(inputs @ first) @ second - goal)²; `first` and `second` are the weights before the
    step.
    """
    x, y, first_weights, second_weights = (target.to_float64(array) for array in (inputs, goal, first, second))
    hidden = target.numpy.tanh(x @ first_weights)
    miss = hidden @ second_weights - y
    slope = 2.0 * miss / miss.size
    down, up = x.T @ ((slope @ second_weights.T) * (1.0 - hidden**2)), hidden.T @ slope
    return [(miss**2).mean(), down, up, first_weights - 0.1 * down, second_weights - 0.1 * up]


def check_reductions(target: Target) -> Result:
    """Check sum, mean, standard deviation, maximum and its index, and softmax of a matrix against NumPy."""

    def reduced(there: Tensor) -> list[Tensor]:
        rows = [there.mean(1), there.std(1), there.amax(1), there.argmax(1)]
        return [there.sum(), there.sum(0), *rows, target.torch.softmax(there, 1)]

    def reference(full: Array) -> list[Array]:
        powers = target.numpy.exp(full - full.max(axis=1, keepdims=True))
        rows = [full.mean(1), full.std(1, ddof=1), full.max(1), full.argmax(1)]
        return [full.sum(), full.sum(0), *rows, powers / powers.sum(1, keepdims=True)]

    return target.compare([target.random_array(13, 37, 53)], reduced, reference)


def check_onnxruntime(target: Target) -> Result:
    """Compare a tiny model on ONNX Runtime's provider for the device with NumPy.

    It is skipped if onnxruntime, onnx, NumPy or that provider is not installed. It fails if the profile names no
    operator that ran, or one that another provider ran: a session may silently use the CPU's.
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
    result, ran = run_onnx(target, ort, provider)
    strayed = sorted((node, other) for node, other in ran if other != provider)
    if not ran:
        return {"status": "failed", **target.explain("no node", provider=provider)}
    if strayed:
        nodes = ", ".join(dict.fromkeys(node for node, _other in strayed))
        others = ", ".join(sorted({other for _node, other in strayed}))
        return {"status": "failed", **target.explain("other provider", nodes=nodes, found=others, provider=provider)}
    return result


def run_onnx(
    target: Target,
    ort: Any,  # noqa: ANN401 - the target's
    provider: str,
) -> tuple[Result, set[tuple[str, str]]]:
    """Run a tiny model twice with ONNX Runtime (`ort`) on a provider, and compare both runs with NumPy.

    Return the result of `judge_runs` with `first_seconds`, which include building the session, and `seconds` of the
    second run; and the pairs of an operator type and a provider that ran it.
    """
    inputs, weights = target.random_array(14, 16, 24), target.random_array(15, 24, 8)
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.enable_profiling, options.profile_file_prefix = True, folder + "/profile"
        started = time.perf_counter()
        settings = {"device_id": target.index} if target.index and target.kind != "cpu" else {}
        session = ort.InferenceSession(build_onnx_model(weights), options, providers=[(provider, settings)])
        first = session.run(None, {"x": inputs})
        between = time.perf_counter()
        again = session.run(None, {"x": inputs})
        times = {"seconds": time.perf_counter() - between, "first_seconds": between - started}
        ran = read_node_providers(session.end_profiling())
    expected = target.numpy.maximum(target.to_float64(inputs) @ target.to_float64(weights), 0.0)
    return {**target.judge_runs([first, again], [expected]), **times}, ran


def read_node_providers(path: str) -> set[tuple[str, str]]:
    """Return from a profile of ONNX Runtime each operator type that ran, in a pair with each provider that ran it.

    Raises `OSError` or `ValueError` if the profile cannot be read.

    {"cat": "Node", "name": "product_kernel_time", "args": {"op_name": "MatMul", "provider": "CPUExecutionProvider", …}}
    """
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as the rest of the child
        events = [event.get("args", {}) for event in json.load(file)]
    return {(event["op_name"], event["provider"]) for event in events if event.get("provider")}


def build_onnx_model(weights: Array) -> bytes:
    """Return an ONNX model of max(0, x @ weights), serialized, in old versions that any ONNX Runtime reads.

    `x` has the shape (16, 24), `weights` (24, 8). The weights are constants: Core ML takes no others.
    """
    onnx = importlib.import_module("onnx")
    make, single = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [make.make_node("MatMul", ["x", "w"], ["h"], "product"), make.make_node("Relu", ["h"], ["y"], "rectify")]
    ends = [make.make_tensor_value_info(name, single, shape) for name, shape in (("x", [16, 24]), ("y", [16, 8]))]
    constant = importlib.import_module("onnx.numpy_helper").from_array(weights, "w")
    graph = make.make_graph(nodes, "tiny", ends[:1], ends[1:], [constant])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


ROUNDING = {"float16": 2e-3, "bfloat16": 1.5e-2, "float64": 1e-11}  # of a dot product of a hundred terms


def check_svd(target: Target) -> Result:
    """Check singular values of matrices against NumPy's, that U is orthogonal, and that the factors give them again."""
    np = target.numpy

    def parts(there: Tensor) -> list[Tensor]:
        left, values, right = target.torch.linalg.svd(there, full_matrices=False)
        return [values, (left * values.unsqueeze(-2)) @ right, left.transpose(-1, -2) @ left]

    def reference(matrices: Array) -> list[Array]:
        return [np.linalg.svd(matrices, compute_uv=False), matrices, np.broadcast_to(np.eye(16), (3, 16, 16))]

    return target.compare([target.random_array(20, 3, 24, 16)], parts, reference)


def check_qr(target: Target) -> Result:
    """Check that QR factors of a batch of matrices give the matrices again, and that Q is orthogonal."""
    unit = target.numpy.broadcast_to(target.numpy.eye(16), (3, 16, 16))

    def parts(there: Tensor) -> list[Tensor]:
        left, right = target.torch.linalg.qr(there)
        return [left @ right.triu(), left.transpose(-1, -2) @ left]

    return target.compare([target.random_array(21, 3, 24, 16)], parts, lambda matrices: [matrices, unit])


def positive_matrices(target: Target, seed: int) -> Array:
    """Return a batch of symmetric matrices with positive eigenvalues."""
    half = target.random_array(seed, 3, 20, 20)
    return half @ half.transpose(0, 2, 1) + target.numpy.eye(20, dtype="float32")


def check_cholesky(target: Target) -> Result:
    """Check the triangular factors of a batch of positive definite matrices against NumPy's."""
    there, here = target.torch.linalg.cholesky, target.numpy.linalg.cholesky
    return target.compare(
        [positive_matrices(target, 22)], lambda matrix: [there(matrix)], lambda matrix: [here(matrix)]
    )


def check_eigh(target: Target) -> Result:
    """Check eigenvalues of symmetric matrices against NumPy's, and that eigenvectors give the matrices again."""

    def parts(there: Tensor) -> list[Tensor]:
        values, vectors = target.torch.linalg.eigh(there)
        return [values, (vectors * values.unsqueeze(-2)) @ vectors.transpose(-1, -2)]

    values = target.numpy.linalg.eigvalsh
    return target.compare([positive_matrices(target, 23)], parts, lambda matrices: [values(matrices), matrices])


def check_conv1d(target: Target) -> Result:
    """Check a convolution of sequences, with dilation and in two groups as in vocoders, against NumPy."""
    np, convolve = target.numpy, target.torch.nn.functional.conv1d

    def reference(signal: Array, kernels: Array) -> list[Array]:
        windows = np.lib.stride_tricks.sliding_window_view(signal, 5, axis=2)[..., ::2]
        pairs = [(windows[:, 2 * group : 2 * group + 2], kernels[3 * group : 3 * group + 3]) for group in (0, 1)]
        return [np.concatenate([np.einsum("nctk,ock->not", part, taps) for part, taps in pairs], axis=1)]

    arrays = [target.random_array(24, 2, 4, 40), target.random_array(25, 6, 2, 3)]
    return target.compare(arrays, lambda a, b: [convolve(a, b, dilation=2, groups=2)], reference)


def check_conv_transposed(target: Target) -> Result:
    """Check transposed convolutions in one and two dimensions, with stride and padding, against NumPy."""
    np, call = target.numpy, target.torch.nn.functional

    def reference(signal: Array, line: Array, images: Array, square: Array) -> list[Array]:
        """Return both convolutions in NumPy: each tap of a kernel adds the weighted input to every second place."""
        spread, plane = np.zeros((2, 5, 2 * 10 + 4)), np.zeros((2, 4, 2 * 6 + 3, 2 * 5 + 3))
        for tap in range(4):
            spread[:, :, tap : tap + 21 : 2] += np.einsum("nct,co->not", signal, line[:, :, tap])
        for row, column in np.ndindex(3, 3):
            part = np.einsum("nchw,co->nohw", images, square[:, :, row, column])
            plane[:, :, row : row + 13 : 2, column : column + 11 : 2] += part
        return [spread[:, :, 1:-1], plane[:, :, 1:-1, 1:-1]]

    def spread_out(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> list[Tensor]:
        options = {"stride": 2, "padding": 1}
        return [call.conv_transpose1d(a, b, **options), call.conv_transpose2d(c, d, **options)]

    shapes = [(2, 3, 11), (3, 5, 4), (2, 3, 7, 6), (3, 4, 3, 3)]
    return target.compare(
        [target.random_array(26 + place, *shape) for place, shape in enumerate(shapes)], spread_out, reference
    )


def check_attention(target: Target) -> Result:
    """Check causal attention, in which each position attends to itself and to those before it, against NumPy."""
    np, attend = target.numpy, target.torch.nn.functional.scaled_dot_product_attention

    def reference(query: Array, key: Array, value: Array) -> list[Array]:
        scores = np.where(np.tri(33, dtype=bool), query @ key.swapaxes(-1, -2) / 4.0, -np.inf)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return [powers / powers.sum(axis=-1, keepdims=True) @ value]

    arrays = [target.random_array(30 + number, 2, 4, 33, 16) for number in range(3)]
    return target.compare(arrays, lambda a, b, c: [attend(a, b, c, is_causal=True)], reference)


def check_indexing(target: Target) -> Result:
    """Check gather, scatter, addition at indices, masks, sort, topk and cumulative sums against NumPy."""
    np, array = target.numpy, target.random_array(33, 40, 12)
    places = np.random.default_rng(34).integers(0, 40, (40, 12))
    full = target.to_float64(array)
    added, copied = np.zeros((40, 12)), full.copy()
    np.add.at(added, (places, np.arange(12)), full)
    np.add.at(copied, places[:, 0], full)
    there, at = target.to_device(array), target.to_device(places)

    def compute() -> list[Tensor]:
        torch = target.torch
        chosen = [there.gather(0, at), there[at[:, 0]], torch.zeros_like(there).scatter_add_(0, at, there)]
        changed = [there.clone().index_add_(0, at[:, 0], there), there.masked_fill(there > 0.5, -1.0)]  # noqa: PLR2004
        return [*chosen, *changed, there.sort(0)[0], there.topk(5, 0)[0], there.cumsum(0), there[there > 0]]

    picked = [np.take_along_axis(full, places, 0), full[places[:, 0]], added, copied, np.where(array > 0.5, -1.0, full)]  # noqa: PLR2004
    ordered = np.sort(full, 0)
    return target.measure(compute, [*picked, ordered, ordered[::-1][:5], full.cumsum(0), full[array > 0]])


def check_random(target: Target) -> Result:
    """Check that random numbers are equal for equal seeds only, and have the right mean and deviation; else "wrong"."""
    torch, device = target.torch, target.device

    def draw(seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        uniform, normal = torch.rand(20000, device=device), torch.randn(20000, device=device)
        return [uniform, normal, torch.randint(0, 10, (20000,), device=device).float()]

    first, again, other = draw(1), draw(1), draw(2)
    for tensor in first:
        target.require_device(tensor)
    if any(bool((a != b).any()) for a, b in zip(first, again)):  # noqa: B905 - strict= came with Python 3.10
        return {"status": "wrong", "reason": "seed"}
    if any(bool((a == b).all()) for a, b in zip(first, other)):  # noqa: B905 - likewise
        return {"status": "wrong", "reason": "constant"}
    found = [target.numpy.array([tensor.mean().item(), tensor.std().item()]) for tensor in first]
    expected = [[0.5, 12**-0.5], [0.0, 1.0], [4.5, 8.25**0.5]]
    return target.judge_runs([found], [target.numpy.array(pair) for pair in expected], tolerance=0.05)


def check_complex(target: Target) -> Result:
    """Check products of complex numbers, and Fourier transforms there and back, against NumPy."""
    np, parts = target.numpy, [target.random_array(35 + number, 4, 64) for number in range(4)]
    left, right = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
    there = [target.to_device(array) for array in (left.astype("complex64"), right.astype("complex64"), parts[0])]

    def transformed(fft: Any, a: Array, b: Array, real: Array) -> list[Array]:  # noqa: ANN401 - NumPy's or torch's module
        made = [a * b, fft.fft(a), fft.ifft(fft.fft(a)), fft.rfft(real)]
        return [part for number in made for part in (number.real, number.imag[..., 1:])]

    return target.measure(lambda: transformed(target.torch.fft, *there), transformed(np.fft, left, right, parts[0]))


def check_integers(target: Target) -> Result:
    """Check that arithmetic with 64-bit integers equals NumPy's exactly: products, quotients, bits, cumulative sums."""
    np = target.numpy
    array = np.random.default_rng(39).integers(-(2**40), 2**40, 4096)

    def computed(numbers: Array) -> list[Array]:
        return [numbers * 3 + 1, numbers // 7, numbers % 7, numbers & 0xFFFF, numbers >> 3, numbers.cumsum(0)]

    got = computed(target.to_device(array))
    for tensor in got:
        target.require_device(tensor)
    differences = [tensor.cpu().numpy() - right for tensor, right in zip(got, computed(array))]  # noqa: B905 - Python 3.8
    return target.judge_runs([differences], [np.zeros(4096)] * len(got), tolerance=0.0)


def check_precision(target: Target, name: str) -> Result:
    """Check a product and a sum in the type `name`, as "float16", against float64.

    Raises `TypeError` if a result is of another type.
    """
    dtype = getattr(target.torch, name)
    left, right = (target.torch.from_numpy(target.random_array(seed, 48, 96)).to(dtype) for seed in (40, 41))
    a, b = left.to(target.device), right.to(target.device)

    def compute() -> list[Tensor]:
        results = [a @ b.t(), a + b]
        if any(tensor.dtype != dtype for tensor in results):
            raise TypeError(f"this type is not supported: {name} became {results[0].dtype}")
        return results if name == "float64" else [tensor.float() for tensor in results]

    x, y = left.double().numpy(), right.double().numpy()
    return target.measure(compute, [x @ y.T, x + y], ROUNDING[name])


def check_autocast(target: Target) -> Result:
    """Check loss and gradient in mixed precision against NumPy; return "unsupported" for DirectML.

    Raises `TypeError` if torch does not compute in the narrower type.
    """
    if target.kind == "directml":
        return {"status": "unsupported", **target.explain("no autocast", device=target.kind)}
    torch, half = target.torch, target.torch.bfloat16 if target.kind in ("cpu", "xpu") else target.torch.float16
    inputs, weights = target.random_array(42, 32, 48), target.random_array(43, 48, 16)
    x = target.to_device(inputs)

    def compute() -> list[Tensor]:
        """Return the loss, which is the mean square of the product, and the gradient by the weights."""
        w = target.to_device(weights).requires_grad_()
        with torch.autocast(target.device.type, dtype=half):
            product = x @ w
            if product.dtype != half:
                raise TypeError(f"autocast to {half} is not supported: it gave {product.dtype}")
            loss = (product.float() ** 2).mean()
        loss.backward()
        return [loss.detach(), w.grad]

    product = target.to_float64(inputs) @ target.to_float64(weights)
    slope = target.to_float64(inputs).T @ (2.0 * product / product.size)
    return target.measure(compute, [(product**2).mean(), slope], tolerance=0.02)


def check_compile(target: Target) -> Result:
    """Check a function compiled by `torch.compile` against NumPy; return "unsupported" with what that lacks here.

    It is "unsupported", too, if it fails on the CPU and torch lies in a folder with a space in its path.
    """
    missing = missing_for_compile(target)
    if missing:
        return {"status": "unsupported", **missing}
    torch, left, right = target.torch, target.random_array(44, 64, 64), target.random_array(45, 64, 64)
    a, b = target.to_device(left), target.to_device(right)
    function = torch.compile(lambda x, y: torch.tanh(x * 2.0 + y).sum(dim=1))
    expected = target.numpy.tanh(target.to_float64(left) * 2.0 + target.to_float64(right)).sum(1)
    try:
        return target.measure(lambda: [function(a, b)], [expected])
    except Exception as error:
        if target.kind != "cpu" or " " not in torch.__file__:
            raise
        reason = target.explain("space in path", path=os.path.dirname(torch.__file__), error=type(error).__name__)  # noqa: PTH120 - as the rest of the child
        return {"status": "unsupported", **reason}


def missing_for_compile(target: Target) -> Result:
    """Return an explanation of what `torch.compile` lacks here, such as a compiler; {} if it lacks nothing."""
    if not hasattr(target.torch, "compile"):
        return target.explain("no compile", torch=target.torch.__version__)
    if target.kind in ("directml", "mps"):
        return target.explain("no backend", device=target.kind)
    if target.kind != "cpu":
        return {} if importlib.util.find_spec("triton") else target.explain("no triton")
    compilers = ("cl",) if platform.system() == "Windows" else ("g++", "clang++", "c++")
    return {} if any(map(shutil.which, compilers)) else target.explain("no compiler")


TOO_MUCH = 1 << 50  # bytes; no device has them
# Chosen: far beyond what allocators keep in reserve, and fast on a CPU.
ROUNDS, ROUND_BYTES = 40, 8 * MEGABYTE
KERNELS = 500
SLOW_KERNEL = 2e-4  # seconds; a program of many small operators is held up by launching them
SMALLEST, LARGEST, CPU_LARGEST = 256, 8192, 512  # sides of matrices
LONG_ENOUGH = 3e-3  # seconds of a multiplication that shows what a device can do


def check_out_of_memory(target: Target) -> Result:
    """Check that asking for more memory than any device has raises an error, and that the device still computes.

    Return "passed" or "wrong" with that error's first line as detail; raises `Refused` if the memory is granted.
    """
    try:
        target.torch.empty(TOO_MUCH, dtype=target.torch.uint8, device=target.device)
    except (RuntimeError, MemoryError) as error:
        refusal = next(iter(str(error).splitlines()), type(error).__name__)
    else:
        raise target.refuse("granted", size=TOO_MUCH)
    works = float(target.torch.ones(4, device=target.device).sum().item())
    return {**target.judge_runs([[target.numpy.array(works)]], [target.numpy.array(4.0)]), "detail": refusal}


def check_memory(target: Target) -> Result:
    """Check that memory is released with the results that took it; return "passed", or "wrong" if much was not."""
    side = int((ROUND_BYTES / 4) ** 0.5)
    matrix = target.torch.ones(side, side, device=target.device)

    def rounds(count: int) -> int:
        for _ in range(count):
            target.wait([matrix @ matrix])
        gc.collect()
        return target.bytes_held()

    rounds(ROUNDS // 4)
    before = rounds(1)
    grown = rounds(ROUNDS) - before
    if grown > ROUNDS * ROUND_BYTES // 4:
        sizes = {"grown": grown // MEGABYTE, "rounds": ROUNDS, "size": ROUND_BYTES // MEGABYTE}
        return {"status": "wrong", **target.explain("leak", **sizes)}
    return {"status": "passed"}


def check_small_kernels(target: Target) -> Result:
    """Compare a chain of 500 small additions with its sum; return "slow" if one takes over 200 µs with its launch."""
    values = target.torch.zeros(64, device=target.device)

    def compute() -> list[Tensor]:
        result = values
        for _ in range(KERNELS):
            result = result + 1.0
        return [result]

    right = target.measure(compute, [target.numpy.full(64, float(KERNELS))])
    each = target.seconds_per_run(compute) / KERNELS
    if right["status"] == "passed" and each > SLOW_KERNEL:
        right.update(status="slow", **target.explain("slow kernels", each=1e6 * each))
    return right


def speed_matmul(target: Target) -> Result:
    """Measure the multiplication of square matrices in TFLOP/s, and return the result of `measure_speed`.

    The side is doubled from 256 until one multiplication takes 3 ms, to 8192 at most; the CPU's is 512 at most.
    """
    side = SMALLEST

    def make(where: Target) -> Compute:
        own = side if where is target else min(side, CPU_LARGEST)
        values = where.torch.ones(own, own, device=where.device)
        return lambda: [values @ values]

    while side < LARGEST and target.seconds_per_run(make(target), budget=0.0) < LONG_ENOUGH:
        side *= 2
    flops, cpu_flops = 2.0 * side**3, 2.0 * min(side, CPU_LARGEST) ** 3
    return target.measure_speed(make, flops / 1e12, "TFLOP/s", cpu_flops / 1e12)


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
    "linalg.svd": (check_svd, ("copy",)),
    "linalg.qr": (check_qr, ("copy",)),
    "linalg.cholesky": (check_cholesky, ("copy",)),
    "linalg.eigh": (check_eigh, ("copy",)),
    "conv1d": (check_conv1d, ("copy",)),
    "conv_transposed": (check_conv_transposed, ("copy",)),
    "attention": (check_attention, ("copy",)),
    "indexing": (check_indexing, ("copy",)),
    "random": (check_random, ("copy",)),
    "complex": (check_complex, ("copy",)),
    "integers": (check_integers, ("copy",)),
    "float16": (lambda target: check_precision(target, "float16"), ("copy",)),
    "bfloat16": (lambda target: check_precision(target, "bfloat16"), ("copy",)),
    "float64": (lambda target: check_precision(target, "float64"), ("copy",)),
    "autocast": (check_autocast, ("training",)),
    "compile": (check_compile, ("copy",)),
    "out_of_memory": (check_out_of_memory, ("device",)),
    "memory": (check_memory, ("matmul",)),
    "small_kernels": (check_small_kernels, ("copy",)),
    "speed.matmul.float32": (speed_matmul, ("matmul",)),
}
