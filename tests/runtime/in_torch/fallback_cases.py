"""Cases for `fallback.py`, run by the Python of an environment with torch: `python fallback_cases.py FALLBACK.PY`.

Missing operators are emulated by a second dispatch mode below the helper, which raises MPS's own text on plain CPU
tensors; the helper is told that its device is "cpu", and its own second try is let through. Prints one JSON object:
case to "" or traceback.
"""

# ruff: noqa: D103 - the cases' names say what holds

import sys
import traceback
import warnings

import torch
from cases import load, message, run_cases
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

fallback = load(sys.argv[1])
TEXT = (
    "The operator 'aten::{}' is not currently implemented for the MPS device. If you want this op to be considered "
    "for addition please comment on https://github.com/pytorch/pytorch/issues/141287"
)


class Lacking(TorchDispatchMode):
    """A device that lacks some operators, or moves them to the CPU itself and says so once."""

    def __init__(self, *names, silent=False, error=NotImplementedError):
        super().__init__()
        self.names, self.silent, self.error, self.said = names, silent, error, False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.split("::")[1]
        if any(frame.name == "_round_trip" for frame in traceback.extract_stack(limit=20)):
            name = "on the CPU"
        if name in self.names and self.silent:
            text = f"The operator 'aten::{name}' is not currently supported on the DML backend and will fall back to"
            warnings.warn(text + " run on the CPU.", stacklevel=2)
        elif name in self.names:
            raise self.error(TEXT.format(name))
        return func(*args, **(kwargs or {}))


def systems(*shape, seed=0):
    torch.manual_seed(seed)
    size = shape[-1]
    return (torch.randn(*shape, size) + 3 * size * torch.eye(size)).requires_grad_(), torch.randn(*shape, 3)


def case_forward_and_backward():
    matrix, sides = systems(4, 8)
    expected = torch.linalg.solve(matrix, sides)
    (slope,) = torch.autograd.grad(expected.square().sum(), matrix)
    with Lacking("_linalg_solve_ex", "linalg_lu_solve"), fallback.cpu_fallback("cpu") as seen:
        solved = torch.linalg.solve(matrix, sides)
        solved.square().sum().backward()
    assert (solved - expected).abs().max() < 1e-5
    assert (matrix.grad - slope).abs().max() < 1e-5
    assert {row.operator for row in seen.rows} == {"aten::_linalg_solve_ex", "aten::linalg_lu_solve"}
    assert all("fallback_cases.py" in row.where and "case_forward" in row.where for row in seen.rows), seen.rows
    assert seen.rows[0].to_cpu > 0
    assert seen.rows[0].back > 0


def case_without_the_block_the_error_stays():
    matrix, sides = systems(8)
    with Lacking("_linalg_solve_ex"):
        assert "_linalg_solve_ex" in message(NotImplementedError, torch.linalg.solve, matrix, sides)


def case_in_place_writes_into_the_original():
    values = torch.arange(6.0)
    view = values[1:4]
    with Lacking("index_fill_", "lgamma_"), fallback.cpu_fallback("cpu") as seen:
        same = view.index_fill_(0, torch.tensor([0, 2]), 9.0)
        values.lgamma_()
    assert same is view
    expected = torch.tensor([0.0, 9.0, 2.0, 9.0, 4.0, 5.0]).lgamma()
    assert torch.equal(values, expected)
    assert [row.calls for row in seen.rows] == [1, 1]


def case_out_arguments_are_written_and_resized():
    values, out, wrong = torch.rand(5, 3), torch.empty(5), torch.empty(0)
    with Lacking("amax", "sum"), fallback.cpu_fallback("cpu"):
        assert torch.amax(values, 1, out=out) is out
        assert torch.sum(values, 0, out=wrong) is wrong
    assert torch.equal(out, values.amax(1))
    assert torch.equal(wrong, values.sum(0))


def case_lists_that_are_written():
    first = [torch.ones(3), torch.ones(2)]
    with Lacking("_foreach_add_"), fallback.cpu_fallback("cpu") as seen:
        torch._foreach_add_(first, 2.0)
    assert [tensor.tolist() for tensor in first] == [[3.0] * 3, [3.0] * 2]
    assert (seen.rows[0].to_cpu, seen.rows[0].back) == (20, 20)


def case_several_results_and_a_tensor_given_twice():
    values = torch.rand(4, 4)
    with Lacking("sort", "mm"), fallback.cpu_fallback("cpu") as seen:
        ordered, places = values.sort(dim=1)
        product = values @ values
    assert torch.equal(ordered, values.sort(dim=1).values)
    assert places.dtype == torch.int64
    assert torch.allclose(product, values.matmul(values))
    sent = {row.operator: row.to_cpu for row in seen.rows}
    assert sent["aten::mm"] == 64  # the same tensor travels once


def case_views_and_other_errors_stay():
    with Lacking("t"), fallback.cpu_fallback("cpu"):
        message(NotImplementedError, torch.ones(2, 3).t)
    with fallback.cpu_fallback("cpu"):
        assert "shapes cannot be multiplied" in message(RuntimeError, torch.mm, torch.ones(2, 3), torch.ones(2, 3))


def case_types_that_a_device_refuses():
    values = torch.rand(3)
    with Lacking("lgamma", error=TypeError), fallback.cpu_fallback("cpu", also=(TypeError,)) as seen:
        assert torch.equal(values.lgamma(), torch.lgamma(values))
    assert seen.rows[0].calls == 2


def case_another_device_is_left_alone():
    with Lacking("lgamma"), fallback.cpu_fallback("mps") as seen:
        message(NotImplementedError, torch.rand(3).lgamma)
    assert not seen.rows


def case_factories_are_moved():
    with Lacking("linspace"), fallback.cpu_fallback("cpu") as seen:
        assert torch.linspace(0, 1, 3, device="cpu").tolist() == [0.0, 0.5, 1.0]
    assert seen.rows[0].to_cpu == 0
    assert seen.rows[0].back == 12


def case_report_and_advice():
    with Lacking("lgamma", "_linalg_solve_ex"), fallback.cpu_fallback("cpu") as seen:
        for _ in range(30):
            torch.ones(4).lgamma()
        torch.linalg.solve(*systems(8))
    seen.device = "mps"
    report = seen.report()
    assert "aten::lgamma" in report
    assert "30 small trips" in report
    assert "from torch 2.7 on" in report
    assert "PYTORCH_ENABLE_MPS_FALLBACK=1" in report
    seen.peak_bytes, seen.limit_bytes = 95 << 20, 100 << 20
    assert "held 95 of 100 MiB" in seen.report()
    seen.elapsed = sum(row.copying + row.computing for row in seen.rows) * 2
    assert "50% of the time" in seen.report()
    assert fallback.Fallbacks("mps").report() == "Nothing fell back from mps."


def case_silent_fallbacks_are_explained():
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        with Lacking("nonzero", silent=True), fallback.explain_fallbacks("cpu") as seen:
            for _ in range(3):
                torch.tensor([0.0, 1.0]).nonzero()
            warnings.warn("something else", stacklevel=1)
    assert [str(other.message) for other in others] == ["something else"]
    (row,) = seen.rows
    assert (row.operator, row.calls, row.to_cpu) == ("aten::nonzero", 3, 24)
    assert row.computing > 0
    assert "case_silent" in row.where


def case_explaining_changes_nothing():
    with Lacking("lgamma"), fallback.explain_fallbacks("cpu"):
        message(NotImplementedError, torch.rand(3).lgamma)
    assert not torch.is_warn_always_enabled()


def case_texts_of_all_releases():
    texts = (
        "The operator 'aten::_linalg_solve_ex.result' is not current implemented for the MPS device.",
        "The operator 'aten::isin.Tensor_Tensor_out' is not currently implemented for the MPS device. If you want",
        "Could not run 'aten::empty_strided' with arguments from the 'fakemps' backend.",
    )
    assert all(fallback.MISSING.search(text) for text in texts)
    assert not fallback.MISSING.search("Subclasses must implement forward")


def case_missing_operators_are_named():
    names = fallback.missing_operators("mps")
    assert "aten::_linalg_solve_ex.result" in names
    assert "aten::linalg_solve" not in names  # a composite
    assert 400 < len(names) < 1500


def case_mps_keeps_no_float64():
    trip = fallback._Trip("mps", (), {})
    trip.device = torch.device("cpu")
    assert trip.bring(torch.ones(2, dtype=torch.float64)).dtype == torch.float32
    assert trip.bring(torch.ones(2, dtype=torch.complex128)).dtype == torch.complex64


def case_device_for_forward_tests_without_gradients():
    with torch.no_grad(), ToMps(), fallback.cpu_fallback("mps") as seen:
        matrix, sides = OnMps(torch.eye(4) * 2), OnMps(torch.ones(4, 1))
        solved = torch.linalg.solve(matrix, sides)
    assert seen.rows[0].operator == "aten::_linalg_solve_ex"
    assert torch.equal(OnMps.inner(solved), torch.full((4, 1), 0.5))


class OnMps(torch.Tensor):
    """A CPU tensor that says it lies on MPS, where `linalg.solve` is missing; gradients would end the process."""

    @staticmethod
    def __new__(cls, held):  # noqa: D102
        made = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, device="mps:0")
        made.held = held
        return made

    @staticmethod
    def inner(value):
        """Give the CPU tensor."""
        return value.held if isinstance(value, OnMps) else value

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        name = func._schema.name.split("::")[1]
        if name == "_linalg_solve_ex" and any(isinstance(value, OnMps) for value in args):
            raise NotImplementedError(TEXT.format(name))
        kwargs = dict(kwargs or {})
        target = kwargs.pop("device", None)
        result = func(*tree_map(cls.inner, args), **kwargs)
        goes = target is not None and torch.device(target).type == "cpu"
        return tree_map(lambda value: OnMps(value) if isinstance(value, torch.Tensor) and not goes else value, result)


class ToMps(TorchDispatchMode):
    """Takes CPU tensors to the device of `OnMps`."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        devices = [value for value in (*args, *(kwargs or {}).values()) if isinstance(value, torch.device)]
        if any(device.type == "mps" for device in devices):
            return OnMps(args[0])
        return func(*args, **(kwargs or {}))


if __name__ == "__main__":
    run_cases(globals())
