"""The further checks of a full verification: arithmetic, memory and speed.

`child.py` loads them like those of `checks.py`.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import platform
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.verify.child import Array, Checks, Compute, Result, Target, Tensor


ROUNDING = {"float16": 2e-3, "bfloat16": 1.5e-2, "float64": 1e-11}  # of a dot product of a hundred terms


def check_svd(target: Target) -> Result:
    """Decompose a batch of matrices: singular values, orthogonal vectors, and the matrices again."""
    np = target.numpy

    def parts(there: Tensor) -> list[Tensor]:
        left, values, right = target.torch.linalg.svd(there, full_matrices=False)
        return [values, (left * values.unsqueeze(-2)) @ right, left.transpose(-1, -2) @ left]

    def reference(matrices: Array) -> list[Array]:
        return [np.linalg.svd(matrices, compute_uv=False), matrices, np.broadcast_to(np.eye(16), (3, 16, 16))]

    return target.compare([target.data(20, 3, 24, 16)], parts, reference)


def check_qr(target: Target) -> Result:
    """Decompose a batch of matrices into an orthogonal and a triangular one."""
    unit = target.numpy.broadcast_to(target.numpy.eye(16), (3, 16, 16))

    def parts(there: Tensor) -> list[Tensor]:
        left, right = target.torch.linalg.qr(there)
        return [left @ right.triu(), left.transpose(-1, -2) @ left]

    return target.compare([target.data(21, 3, 24, 16)], parts, lambda matrices: [matrices, unit])


def positive(target: Target, seed: int) -> Array:
    """Return a batch of symmetric matrices with positive eigenvalues."""
    half = target.data(seed, 3, 20, 20)
    return half @ half.transpose(0, 2, 1) + target.numpy.eye(20, dtype="float32")


def check_cholesky(target: Target) -> Result:
    """Find the triangular root of a batch of positive matrices."""
    there, here = target.torch.linalg.cholesky, target.numpy.linalg.cholesky
    return target.compare([positive(target, 22)], lambda matrix: [there(matrix)], lambda matrix: [here(matrix)])


def check_eigh(target: Target) -> Result:
    """Find eigenvalues and eigenvectors of a batch of symmetric matrices."""

    def parts(there: Tensor) -> list[Tensor]:
        values, vectors = target.torch.linalg.eigh(there)
        return [values, (vectors * values.unsqueeze(-2)) @ vectors.transpose(-1, -2)]

    values = target.numpy.linalg.eigvalsh
    return target.compare([positive(target, 23)], parts, lambda matrices: [values(matrices), matrices])


def check_conv1d(target: Target) -> Result:
    """Convolve sequences with dilation and in two groups, as vocoders do."""
    np, convolve = target.numpy, target.torch.nn.functional.conv1d

    def reference(signal: Array, kernels: Array) -> list[Array]:
        windows = np.lib.stride_tricks.sliding_window_view(signal, 5, axis=2)[..., ::2]
        pairs = [(windows[:, 2 * group : 2 * group + 2], kernels[3 * group : 3 * group + 3]) for group in (0, 1)]
        return [np.concatenate([np.einsum("nctk,ock->not", part, taps) for part, taps in pairs], axis=1)]

    arrays = [target.data(24, 2, 4, 40), target.data(25, 6, 2, 3)]
    return target.compare(arrays, lambda a, b: [convolve(a, b, dilation=2, groups=2)], reference)


def check_conv_transposed(target: Target) -> Result:
    """Convolve transposed, in one and in two dimensions, with stride and padding."""
    np, call = target.numpy, target.torch.nn.functional

    def reference(signal: Array, line: Array, images: Array, square: Array) -> list[Array]:
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
        [target.data(26 + place, *shape) for place, shape in enumerate(shapes)], spread_out, reference
    )


def check_attention(target: Target) -> Result:
    """Attend over a sequence, each place to those before it."""
    np, attend = target.numpy, target.torch.nn.functional.scaled_dot_product_attention

    def reference(query: Array, key: Array, value: Array) -> list[Array]:
        scores = np.where(np.tri(33, dtype=bool), query @ key.swapaxes(-1, -2) / 4.0, -np.inf)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return [powers / powers.sum(axis=-1, keepdims=True) @ value]

    arrays = [target.data(30 + number, 2, 4, 33, 16) for number in range(3)]
    return target.compare(arrays, lambda a, b, c: [attend(a, b, c, is_causal=True)], reference)


def check_indexing(target: Target) -> Result:
    """Gather, scatter and add at places, mask, sort and sum up."""
    np, array = target.numpy, target.data(33, 40, 12)
    places = np.random.default_rng(34).integers(0, 40, (40, 12))
    full = target.wide(array)
    added, copied = np.zeros((40, 12)), full.copy()
    np.add.at(added, (places, np.arange(12)), full)
    np.add.at(copied, places[:, 0], full)
    there, at = target.put(array), target.put(places)

    def compute() -> list[Tensor]:
        torch = target.torch
        chosen = [there.gather(0, at), there[at[:, 0]], torch.zeros_like(there).scatter_add_(0, at, there)]
        changed = [there.clone().index_add_(0, at[:, 0], there), there.masked_fill(there > 0.5, -1.0)]  # noqa: PLR2004
        return [*chosen, *changed, there.sort(0)[0], there.topk(5, 0)[0], there.cumsum(0), there[there > 0]]

    picked = [np.take_along_axis(full, places, 0), full[places[:, 0]], added, copied, np.where(array > 0.5, -1.0, full)]  # noqa: PLR2004
    ordered = np.sort(full, 0)
    return target.measure(compute, [*picked, ordered, ordered[::-1][:5], full.cumsum(0), full[array > 0]])


def check_random(target: Target) -> Result:
    """Draw numbers: the same for the same seed, others for another, spread as they should be."""
    torch, device = target.torch, target.device

    def draw(seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        uniform, normal = torch.rand(20000, device=device), torch.randn(20000, device=device)
        return [uniform, normal, torch.randint(0, 10, (20000,), device=device).float()]

    first, again, other = draw(1), draw(1), draw(2)
    for tensor in first:
        target.require(tensor)
    if any(bool((a != b).any()) for a, b in zip(first, again)):  # noqa: B905 - strict= came with Python 3.10
        return {"status": "wrong", "reason": "seed"}
    if any(bool((a == b).all()) for a, b in zip(first, other)):  # noqa: B905 - likewise
        return {"status": "wrong", "reason": "constant"}
    found = [target.numpy.array([tensor.mean().item(), tensor.std().item()]) for tensor in first]
    expected = [[0.5, 12**-0.5], [0.0, 1.0], [4.5, 8.25**0.5]]
    return target.judge([found], [target.numpy.array(pair) for pair in expected], tolerance=0.05)


def check_complex(target: Target) -> Result:
    """Multiply complex numbers and transform a signal there and back."""
    np, parts = target.numpy, [target.data(35 + number, 4, 64) for number in range(4)]
    left, right = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
    a, b = target.put(left.astype("complex64")), target.put(right.astype("complex64"))

    def compute() -> list[Tensor]:
        fft = target.torch.fft
        made = [a * b, fft.fft(a), fft.ifft(fft.fft(a)), fft.rfft(a.real.contiguous())]
        return [part for number in made for part in (number.real, number.imag[..., 1:])]

    expected = [left * right, np.fft.fft(left), left, np.fft.rfft(parts[0])]
    return target.measure(compute, [part for number in expected for part in (number.real, number.imag[..., 1:])])


def check_integers(target: Target) -> Result:
    """Compute with 64-bit integers, exactly."""
    np = target.numpy
    array = np.random.default_rng(39).integers(-(2**40), 2**40, 4096)
    there = target.put(array)
    expected = [array * 3 + 1, array // 7, array % 7, array & 0xFFFF, array >> 3, array.cumsum()]

    def compute() -> list[Tensor]:
        return [there * 3 + 1, there // 7, there % 7, there & 0xFFFF, there >> 3, there.cumsum(0)]

    got = compute()
    for tensor in got:
        target.require(tensor)
    differences = [tensor.cpu().numpy() - right for tensor, right in zip(got, expected)]  # noqa: B905 - Python 3.8
    return target.judge([differences], [np.zeros(4096)] * len(expected), tolerance=0.0)


def precision(target: Target, name: str) -> Result:
    """Multiply and add in one floating-point type; the reference takes inputs that were rounded to it."""
    dtype = getattr(target.torch, name)
    left, right = (target.torch.from_numpy(target.data(seed, 48, 96)).to(dtype) for seed in (40, 41))
    a, b = left.to(target.device), right.to(target.device)

    def compute() -> list[Tensor]:
        results = [a @ b.t(), a + b]
        if any(tensor.dtype != dtype for tensor in results):
            raise TypeError(f"this type is not supported: {name} became {results[0].dtype}")
        return results if name == "float64" else [tensor.float() for tensor in results]

    x, y = left.double().numpy(), right.double().numpy()
    return target.measure(compute, [x @ y.T, x + y], ROUNDING[name])


def check_autocast(target: Target) -> Result:
    """Take a gradient in mixed precision: the product in half, the loss and the gradient near the reference."""
    if target.kind == "directml":
        return {"status": "unsupported", **target.explain("no autocast", device=target.kind)}
    torch, half = target.torch, target.torch.bfloat16 if target.kind in ("cpu", "xpu") else target.torch.float16
    inputs, weights = target.data(42, 32, 48), target.data(43, 48, 16)
    x = target.put(inputs)

    def compute() -> list[Tensor]:
        w = target.put(weights).requires_grad_()
        with torch.autocast(target.device.type, dtype=half):
            product = x @ w
            if product.dtype != half:
                raise TypeError(f"autocast to {half} is not supported: it gave {product.dtype}")
            loss = (product.float() ** 2).mean()
        loss.backward()
        return [loss.detach(), w.grad]

    product = target.wide(inputs) @ target.wide(weights)
    slope = target.wide(inputs).T @ (2.0 * product / product.size)
    return target.measure(compute, [(product**2).mean(), slope], tolerance=0.02)


def check_compile(target: Target) -> Result:
    """Compile a small function with `torch.compile`, or report what it lacks here."""
    missing = cannot_compile(target)
    if missing:
        return {"status": "unsupported", **missing}
    torch, left, right = target.torch, target.data(44, 64, 64), target.data(45, 64, 64)
    a, b = target.put(left), target.put(right)
    function = torch.compile(lambda x, y: torch.tanh(x * 2.0 + y).sum(dim=1))
    expected = target.numpy.tanh(target.wide(left) * 2.0 + target.wide(right)).sum(1)
    try:
        return target.measure(lambda: [function(a, b)], [expected])
    except Exception as error:
        if target.kind != "cpu" or " " not in torch.__file__:
            raise
        reason = target.explain("space in path", path=os.path.dirname(torch.__file__), error=type(error).__name__)  # noqa: PTH120 - as the rest of the child
        return {"status": "unsupported", **reason}


def cannot_compile(target: Target) -> Result:
    """Return what `torch.compile` lacks here; an empty result when all is there."""
    if not hasattr(target.torch, "compile"):
        return target.explain("no compile", torch=target.torch.__version__)
    if target.kind in ("directml", "mps"):
        return target.explain("no backend", device=target.kind)
    if target.kind != "cpu":
        return {} if importlib.util.find_spec("triton") else target.explain("no triton")
    compilers = ("cl",) if platform.system() == "Windows" else ("g++", "clang++", "c++")
    return {} if any(map(shutil.which, compilers)) else target.explain("no compiler")


TOO_MUCH = 1 << 50  # bytes; no device has them
MEGABYTE = 1 << 20
# Chosen: far beyond what allocators keep in reserve, and fast on a CPU.
ROUNDS, ROUND_BYTES = 40, 8 * MEGABYTE
KERNELS = 500
SLOW_KERNEL = 2e-4  # seconds; a program of many small operators is held up by launching them
SMALLEST, LARGEST, CPU_LARGEST = 256, 8192, 512  # sides of matrices
LONG_ENOUGH = 3e-3  # seconds of a multiplication that shows what a device can do


def check_out_of_memory(target: Target) -> Result:
    """Check that asking for more memory than any device has raises an error, and that the device stays usable."""
    try:
        target.torch.empty(TOO_MUCH, dtype=target.torch.uint8, device=target.device)
    except (RuntimeError, MemoryError) as error:
        refusal = str(error).splitlines()[0]
    else:
        raise target.refuse("granted", size=TOO_MUCH)
    works = float(target.torch.ones(4, device=target.device).sum().item())
    return {**target.judge([[target.numpy.array(works)]], [target.numpy.array(4.0)]), "detail": refusal}


def check_memory(target: Target) -> Result:
    """Check that the memory of results that nobody holds any more is released."""
    side = int((ROUND_BYTES / 4) ** 0.5)
    matrix = target.torch.ones(side, side, device=target.device)

    def rounds(count: int) -> int:
        for _ in range(count):
            target.wait([matrix @ matrix])
        gc.collect()
        return target.held()

    rounds(ROUNDS // 4)
    before = rounds(1)
    grown = rounds(ROUNDS) - before
    if grown > ROUNDS * ROUND_BYTES // 4:
        sizes = {"grown": grown // MEGABYTE, "rounds": ROUNDS, "size": ROUND_BYTES // MEGABYTE}
        return {"status": "wrong", **target.explain("leak", **sizes)}
    return {"status": "passed"}


def check_small_kernels(target: Target) -> Result:
    """Run many small operators one after another, each waiting for the last one's result."""
    values = target.torch.zeros(64, device=target.device)

    def compute() -> list[Tensor]:
        result = values
        for _ in range(KERNELS):
            result = result + 1.0
        return [result]

    right = target.measure(compute, [target.numpy.full(64, float(KERNELS))])
    each = target.pace(compute) / KERNELS
    if right["status"] == "passed" and each > SLOW_KERNEL:
        right.update(status="slow", **target.explain("slow kernels", each=1e6 * each))
    return right


def speed_matmul(target: Target) -> Result:
    """Multiply square matrices, as large as shows what the device can do."""
    side = SMALLEST

    def make(where: Target) -> Compute:
        own = side if where is target else min(side, CPU_LARGEST)
        values = where.torch.ones(own, own, device=where.device)
        return lambda: [values @ values]

    while side < LARGEST and target.pace(make(target), budget=0.0) < LONG_ENOUGH:
        side *= 2
    flops, cpu_flops = 2.0 * side**3, 2.0 * min(side, CPU_LARGEST) ** 3
    return target.speed(make, flops / 1e12, "TFLOP/s", cpu_flops / 1e12)


CHECKS: Checks = {
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
    "float16": (lambda target: precision(target, "float16"), ("copy",)),
    "bfloat16": (lambda target: precision(target, "bfloat16"), ("copy",)),
    "float64": (lambda target: precision(target, "float64"), ("copy",)),
    "autocast": (check_autocast, ("training",)),
    "compile": (check_compile, ("copy",)),
    "out_of_memory": (check_out_of_memory, ("device",)),
    "memory": (check_memory, ("matmul",)),
    "small_kernels": (check_small_kernels, ("copy",)),
    "speed.matmul.float32": (speed_matmul, ("matmul",)),
}
