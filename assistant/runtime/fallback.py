"""Run operators that a GPU backend lacks on the CPU, and see what that costs. One file, to be copied or imported.

    from fallback import cpu_fallback
    with cpu_fallback("mps") as seen:          # forward, and backward while the block is open
        loss = model(inputs).sum()
        loss.backward()
    print(seen.report())                       # which operators, how often, how many bytes, from which line

Three ways, best first:
1. `PYTORCH_ENABLE_MPS_FALLBACK=1`, set before `import torch` (MPS only): covers all, costs nothing, counts nothing.
2. `install("mps")`: a CPU kernel for each missing operator, after torch was imported; others are not touched.
3. `cpu_fallback("mps")`: a block that catches and reports, about 5 µs for each operator, not in threads of your own.
`explain_fallbacks("directml")` changes nothing and counts what a backend itself moves to the CPU, warning only once.
Views cannot be emulated; random operators give the CPU's numbers. Python 3.9, torch 2.0; `plot` needs matplotlib.
"""

# ruff: noqa: B905, SLF001 - Python 3.9; torch shows schemas and dispatch tables under underscored names only

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

__all__ = ["CpuFallback", "Fallbacks", "cpu_fallback", "explain_fallbacks", "install", "missing_operators"]

# What torch calls the devices and dispatch keys of these backends.
DEVICES = {"directml": "privateuseone", "rocm": "cuda"}
KEYS = {"mps": "MPS", "cuda": "CUDA", "xpu": "XPU", "privateuseone": "PrivateUse1"}
# What torch says of an operator that a device lacks, and of one that a backend itself runs on the CPU:
#   The operator 'aten::_linalg_solve_ex.result' is not currently implemented for the MPS device. …
#   Could not run 'aten::nonzero' with arguments from the 'PrivateUse1' backend. …
#   The operator 'aten::nonzero' is not currently supported on the DML backend and will fall back to run on the CPU. …
MISSING = re.compile(r"operator '[\w:.]+' is not current(ly)? implemented for|Could not run '[\w:.]+' with arg")
SILENT = re.compile(r"operator '([\w:.]+)' is not currently supported on the \w+ backend and will fall back")
COMPOSITE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
LOOK_EVERY = 256  # operators between two looks at the device's memory
HEAVY_SHARE, SMALL_BYTES, MANY_CALLS = 0.2, 1 << 16, 20  # from where on `advice` speaks; chosen
MEGABYTE = 1 << 20
Operator = Any  # torch's OpOverload
Value = Any  # an argument or result of an operator
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
_KEPT: set[Any] = set()  # libraries whose kernels go when they do
_GENERATORS: dict[tuple[int, int], torch.Generator] = {}
# The first release whose macOS wheel has an MPS kernel (read in the wheels' operator tables, 2026-11-21).
NATIVE = {
    "2.4": "isin",
    "2.6": "scatter_reduce triu_indices upsample_bicubic2d im2col",
    "2.7": "_linalg_solve_ex linalg_cholesky_ex linalg_lu_factor_ex _linalg_det",
    "2.8": "nanmedian index_copy _upsample_bicubic2d_aa col2im upsample_nearest3d",
    "2.9": "max_pool3d_with_indices grid_sampler_3d avg_pool3d",
    "2.12": "linalg_qr _standard_gamma cholesky_solve",
    "2.14": "_linalg_svd _linalg_eigh linalg_lu_solve _ctc_loss poisson binomial",
}


@dataclass
class Row:
    """One operator called from one line: bytes and seconds; `waiting` was for work queued earlier, not for this."""

    operator: str
    where: str
    calls: int = 0
    to_cpu: int = 0
    back: int = 0
    copying: float = 0.0
    computing: float = 0.0
    waiting: float = 0.0

    def cells(self) -> list[str]:
        """Return the row as the cells of a table."""
        sizes = [f"{size / MEGABYTE:.2f} MiB" for size in (self.to_cpu, self.back)]
        times = [f"{1e3 * seconds:.2f} ms" for seconds in (self.copying, self.computing)]
        return [self.operator, str(self.calls), *sizes, *times, self.where]


@dataclass
class Fallbacks:
    """What has fallen back so far, in `elapsed` seconds of the program; `installed` names operators given a kernel."""

    device: str
    elapsed: float | None = None
    peak_bytes: int = 0
    limit_bytes: int = 0
    installed: list[str] = field(default_factory=list)
    library: Any = None
    _rows: dict[tuple[str, str], Row] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        """Return the rows, the longest time first."""
        return sorted(self._rows.values(), key=lambda row: (-row.copying - row.computing, -row.calls))

    def remove(self) -> None:
        """Take the kernels that `install` added out of the dispatcher; raise `AttributeError` for a block's result."""
        _KEPT.discard(self.library)
        self.library._destroy()
        self.installed.clear()

    def note(self, operator: str, where: str, **amounts: float) -> None:
        """Count one call; `amounts` are added to the row's fields."""
        row = self._rows.setdefault((operator, where), Row(operator, where))
        for name, amount in {"calls": 1, **amounts}.items():
            setattr(row, name, getattr(row, name) + amount)

    def look(self, device: str) -> None:
        """Update `peak_bytes` and `limit_bytes` from the memory that torch holds, if it tells.

        Of `device` only the kind counts: what is held is that of the kind's current device, the limit its first one's.
        """
        module, held = _module(device), 0
        if hasattr(module, "driver_allocated_memory"):  # MPS
            held, self.limit_bytes = module.driver_allocated_memory(), getattr(module, "recommended_max_memory", int)()
        elif hasattr(module, "memory_allocated"):
            held, self.limit_bytes = module.memory_allocated(), module.get_device_properties(0).total_memory
        self.peak_bytes = max(self.peak_bytes, held)

    def report(self) -> str:
        """Return a table of all rows as text, the longest time first, with the advice below it."""
        titles = ["operator", "calls", "to CPU", "back", "copying", "computing", "from"]
        lines = [titles, *(row.cells() for row in self.rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
        return "\n".join([*(table if self._rows else [f"Nothing fell back from {self.device}."]), *self.advice()])

    def advice(self) -> list[str]:
        """Return what would help, most effective first."""
        return [*self._mps_advice(), *self._cost_advice()]

    def _mps_advice(self) -> Iterator[str]:
        """Yield from which release of torch MPS runs an operator itself, and how torch falls back by a variable."""
        used = {row.operator.split("::")[-1].split(".")[0] for row in self.rows if self.device == "mps"}
        for release, names in NATIVE.items():
            for name in sorted(used.intersection(names.split())):
                yield f"{name} runs on MPS itself from torch {release} on; this is {torch.__version__}."
        if used and not os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK"):
            yield "Set PYTORCH_ENABLE_MPS_FALLBACK=1 before torch is imported: the same at no cost."

    def _cost_advice(self) -> Iterator[str]:
        """Yield what to change about slow, small or large round trips, and about a device that is nearly full."""
        share = sum(row.copying + row.computing for row in self.rows) / self.elapsed if self.elapsed else 0.0
        if share > HEAVY_SHARE:
            yield f"{share:.0%} of the time went into round trips: keep this part of the program on the CPU."
        for row in self.rows:
            if row.calls >= MANY_CALLS and row.to_cpu < row.calls * SMALL_BYTES:
                yield f"{row.operator} made {row.calls} small trips from {row.where}: one batched call would make one."
            elif row.copying > row.computing and row.to_cpu > MEGABYTE:
                yield f"{row.operator} copies longer than it computes: keep its inputs and results on the CPU."
        if self.limit_bytes and self.peak_bytes > 0.8 * self.limit_bytes:
            held, limit = self.peak_bytes // MEGABYTE, self.limit_bytes // MEGABYTE
            yield f"The device held {held} of {limit} MiB: take smaller batches."

    def plot(self) -> Value:
        """Return a matplotlib figure with a bar for each row's time: copying, then computing."""
        from matplotlib.figure import Figure  # noqa: PLC0415 - only who plots needs it

        figure = Figure(figsize=(7.0, 1.2 + 0.4 * len(self.rows)), layout="constrained")
        axes, names = figure.add_subplot(), [f"{row.operator}\n{row.where}" for row in self.rows]
        copying = [1e3 * row.copying for row in self.rows]
        axes.barh(names, copying, color="#c27a00", label="copying")
        axes.barh(names, [1e3 * row.computing for row in self.rows], left=copying, color="#2a8f82", label="computing")
        axes.invert_yaxis()
        axes.set_xlabel("ms")
        axes.legend()
        return figure


def _module(device: str) -> Value:
    """Return torch's module for a device that is available, else None."""
    module = getattr(torch, device, None) if device in KEYS else None
    there: Value = torch.backends.mps if device == "mps" else module
    return module if there is not None and there.is_available() else None


class _Trip:
    """One operator's way to the CPU and back; each tensor travels once."""

    def __init__(self, kind: str, args: Args, kwargs: Kwargs) -> None:
        """Find the device of type `kind` that an operator's arguments name or live on; nothing is copied yet."""
        self.kind = kind
        self.device: torch.device | None = None  # of an argument that names it or lives on it
        self.sent = self.returned = 0
        self.moved: dict[int, tuple[Any, Any]] = {}  # id of the original: the original and its copy
        for value in tree_leaves((args, kwargs)):
            found = value if isinstance(value, torch.device) else getattr(value, "device", None)
            if isinstance(found, torch.device) and found.type == kind:
                self.device = found

    def lives(self, value: Value) -> bool:
        """Return whether an argument is a tensor on the device."""
        return isinstance(value, torch.Tensor) and value.device.type == self.kind

    def fetch(self, value: Value) -> Value:
        """Return an argument for the CPU: a tensor of the device copied, once, a device or generator of it replaced.

        Other values stay as they are.
        """
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == self.kind else value
        if isinstance(value, torch.Generator) and value.device.type == self.kind:
            return _generator(value)
        if not self.lives(value):
            return value
        if id(value) not in self.moved:
            self.moved[id(value)] = (value, value.to("cpu", copy=True))
            self.sent += value.nbytes
        return self.moved[id(value)][1]

    def write_back(self, func: Operator, args: Args, kwargs: Kwargs) -> None:
        """Copy what the operator changed, in place or in `out=`, from the copies into the original tensors."""
        for place, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = kwargs.get(argument.name, args[place] if place < len(args) else None)
                for original in value if isinstance(value, (list, tuple)) else [value]:
                    self._restore(original)

    def _restore(self, original: Value) -> None:
        """Copy a tensor's changed copy into it, after resizing it if need be; do nothing if it has no copy."""
        _, copy = self.moved.get(id(original), (None, None))
        if copy is not None:
            if original.shape != copy.shape:
                original.resize_(copy.shape)
            original.copy_(copy)
            self.returned += copy.nbytes

    def bring(self, value: Value) -> Value:
        """Return for a CPU result its original tensor, if it was changed in place, else a copy on the device.

        For MPS, double precision becomes single. Other values stay as they are.
        """
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            return value
        for original, copy in self.moved.values():
            if copy is value:
                return original
        if self.kind == "mps":  # which cannot hold these
            narrower = {torch.float64: torch.float32, torch.complex128: torch.complex64}
            value = value.to(narrower.get(value.dtype, value.dtype))
        self.returned += value.nbytes
        return value.to(self.device)


def _generator(original: torch.Generator) -> torch.Generator:
    """Return a CPU generator in place of a device's, seeded like it; the same one at every call, so that it goes on."""
    twin = (id(original), original.initial_seed())
    if twin not in _GENERATORS:
        _GENERATORS[twin] = torch.Generator().manual_seed(twin[1])
    return _GENERATORS[twin]


def _is_view(func: Operator) -> bool:
    return any(value.alias_info and not value.alias_info.is_write for value in func._schema.returns)


def _round_trip(func: Operator, args: Args, kwargs: Kwargs, trip: _Trip, seen: Fallbacks) -> Value:
    """Run one operator on the CPU with copies of its arguments; return its result on the device.

    The call, its bytes and its seconds are added to `seen`.
    """
    where, clock = user_line(), time.perf_counter
    begun = clock()
    getattr(_module(trip.kind), "synchronize", int)()  # else the time of queued work is taken for copying
    waited = clock()
    cpu_args, cpu_kwargs = tree_map(trip.fetch, (args, kwargs))
    there = clock()
    result = func(*cpu_args, **cpu_kwargs)
    computed = clock()
    trip.write_back(func, args, kwargs)
    brought = tree_map(trip.bring, result)
    times = {"waiting": waited - begun, "computing": computed - there, "copying": clock() - computed + there - waited}
    seen.note(_name(func), where, to_cpu=trip.sent, back=trip.returned, **times)
    return brought


def _name(func: Operator) -> str:
    return str(func._schema.name) + (f".{func._schema.overload_name}" if func._schema.overload_name else "")


def user_line() -> str:
    """Return "file.py:12 in function" for the nearest caller outside of torch and this file.

    Without one the caller is "a thread of torch, in backward".
    """
    own = _name.__code__.co_filename
    frame: FrameType | None = sys._getframe(1)
    library = os.path.dirname(torch.__file__)  # noqa: PTH120 - quicker
    while frame is not None:
        code = frame.f_code
        if code.co_filename != own and not code.co_filename.startswith((library, "<frozen")):
            return f"{os.path.basename(code.co_filename)}:{frame.f_lineno} in {code.co_name}"  # noqa: PTH119 - quicker
        frame = frame.f_back
    return "a thread of torch, in backward"


class CpuFallback(TorchDispatchMode):  # type: ignore[misc]  # torch has no types here
    """The block that `cpu_fallback` and `explain_fallbacks` open; `seen` holds what it saw."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch wraps what runs for each operator, and loads its compiler for that

    def __init__(self, device: str, *, emulate: bool = True, also: tuple[type[Exception], ...] = ()) -> None:
        """Prepare a block for a device; without `emulate` it only counts. `also` is as for `cpu_fallback`."""
        super().__init__()
        self.kind = DEVICES.get(device, device)
        self.seen = Fallbacks(device)
        self._emulate, self._also = emulate, also
        self._caught: tuple[type[Exception], ...] = (NotImplementedError, *also)
        self._operators, self._begun = 0, 0.0
        self._heard: list[str] = []
        self._end = contextlib.ExitStack()

    def __enter__(self) -> Fallbacks:
        """Begin to catch and count, and return where it is counted; until the end torch repeats its warnings."""
        self._begun = time.perf_counter()
        self._end.enter_context(warnings.catch_warnings())
        self._end.callback(torch.set_warn_always, torch.is_warn_always_enabled())
        torch.set_warn_always(True)  # else torch tells of the first operator only
        warnings.filterwarnings("always", message=r"(?s).*will fall back")
        self._show, warnings.showwarning = warnings.showwarning, self._count_warning
        super().__enter__()
        return self.seen

    def __exit__(self, *error: object) -> None:
        """Stop, restore the handling of warnings, and add the time to `elapsed`."""
        super().__exit__(*error)
        self._end.close()
        self.seen.look(self.kind)
        self.seen.elapsed = (self.seen.elapsed or 0.0) + time.perf_counter() - self._begun

    def __torch_dispatch__(self, func: Operator, types: Value, args: Args = (), kwargs: Value = None) -> Value:
        """Run an operator as torch would or, if the device lacks it, on the CPU; return its result."""
        self._operators += 1
        if self._operators % LOOK_EVERY == 0:
            self.seen.look(self.kind)
        begun = time.perf_counter()
        try:
            result = func(*args, **kwargs) if kwargs else func(*args)
        except self._caught as error:
            return self._run_on_cpu(error, func, args, kwargs or {})
        if self._heard:  # the backend has just announced a fallback of its own
            seconds, trip = time.perf_counter() - begun, _Trip(self.kind, args, kwargs or {})
            sent = sum(value.nbytes for value in tree_leaves((args, kwargs)) if trip.lives(value))
            while self._heard:
                self.seen.note(self._heard.pop(), user_line(), computing=seconds, to_cpu=sent)
        return result

    def _run_on_cpu(self, error: Exception, func: Operator, args: Args, kwargs: Kwargs) -> Value:
        """Run an operator on the CPU, if its `error` means that the device lacks it, and return the result.

        Raises the error otherwise, for views, without an argument on the device, and if nothing is to be emulated.
        """
        trip = _Trip(self.kind, args, kwargs)
        lacking = isinstance(error, self._also) or MISSING.search(str(error))
        if not (self._emulate and lacking) or trip.device is None or _is_view(func):
            raise error
        self.seen.look(self.kind)
        return _round_trip(func, args, kwargs, trip, self.seen)

    def _count_warning(self, message: Value, *rest: Value, **more: Value) -> None:
        """Keep a warning of the backend's own fallback, to be counted; show other warnings as before."""
        found = SILENT.findall(str(message))
        self._heard += found
        if not found:
            self._show(message, *rest, **more)


def cpu_fallback(device: str = "mps", *, also: tuple[type[Exception], ...] = ()) -> CpuFallback:
    """Return a block in which operators that `device` lacks run on the CPU; `with … as seen` gives its `Fallbacks`.

    `also`: exceptions that mean a refused type or shape, such as `TypeError`, and are tried on the CPU too.
    """
    return CpuFallback(device, also=also)


def explain_fallbacks(device: str = "directml") -> CpuFallback:
    """Return a block that changes nothing and counts what the backend itself moves to the CPU, as `cpu_fallback`."""
    return CpuFallback(device, emulate=False)


def missing_operators(device: str = "mps") -> list[str]:
    """Return the sorted names of the operators that a CPU has and a device lacks in this build of torch.

    Raises `KeyError` for a device without a dispatch key in `KEYS`, such as "cpu".
    """
    has, key = torch._C._dispatch_has_kernel_for_dispatch_key, KEYS[DEVICES.get(device, device)]
    names = (name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::"))
    return sorted(
        name
        for name in names
        if has(name, "CPU") and not has(name, key) and not any(has(name, kind) for kind in COMPOSITE)
    )


def install(device: str = "mps", operators: Iterable[str] | None = None) -> Fallbacks:
    """Give the device a CPU kernel for each operator in `operators`, or for all that it lacks.

    Views and names that torch does not know are left out. The result counts calls, and its `remove` takes the kernels
    back. Names are the dispatcher's: "aten::lgamma.out". Raises `KeyError` as `missing_operators` does.
    """
    kind, seen = DEVICES.get(device, device), Fallbacks(device, library=torch.library.Library("aten", "IMPL"))
    for name in missing_operators(device) if operators is None else operators:
        base, _, overload = name.rsplit("::", maxsplit=1)[-1].partition(".")
        func = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if func is not None and not _is_view(func):
            seen.library.impl(_name(func).split("::")[1], _kernel(func, kind, seen), KEYS[kind])
            seen.installed.append(name)
    _KEPT.add(seen.library)
    return seen


def _kernel(func: Operator, kind: str, seen: Fallbacks) -> Callable[..., Any]:
    def kernel(*args: Value, **kwargs: Value) -> Value:
        return _round_trip(func, args, kwargs, _Trip(kind, args, kwargs), seen)

    return kernel
