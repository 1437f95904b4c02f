"""Cases for the kernels that `fallback.install` registers, on an emulated backend below the real dispatcher.

PrivateUse1 plays the GPU: its tensors hold a CPU tensor, one boxed kernel runs whatever is not in `LACKING`. A backend
can be registered once in a process, hence a file of its own: `python installed_cases.py FALLBACK.PY`.
"""

# ruff: noqa: D103 - the cases' names say what holds

import sys
from contextlib import contextmanager

import torch
from cases import load, message, run_cases
from torch.utils._pytree import tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

fallback = load(sys.argv[1])
LACKING = {"_linalg_solve_ex", "linalg_lu_solve", "lgamma", "lgamma_"}
GPU = "fakegpu:0"
HELD = {}  # by storage, which autograd's copies of a tensor share


def wrap(held):
    """Make a tensor of the fake backend that holds a CPU tensor; both are contiguous, so views are copies."""
    made = torch._C._acc.create_empty_tensor(held.shape, held.dtype)
    HELD[made.untyped_storage()._cdata] = held.contiguous()
    return made


def to_cpu(value):
    if isinstance(value, torch.Tensor) and value.device.type == "fakegpu":
        return HELD[value.untyped_storage()._cdata]
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == "fakegpu" else value


def boxed(func, *args, **kwargs):
    """Run an operator as the fake backend's own, or lack it."""
    name = func._schema.name.split("::")[1]
    if name in LACKING:
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'fakegpu' backend.")
    if name == "_copy_from":
        args = (args[1], args[0])
        func = torch.ops.aten.copy_.default
    originals = {}
    tree_map(lambda value: originals.setdefault(id(to_cpu(value)), value), (args, kwargs))
    result = func(*tree_map(to_cpu, args), **tree_map(to_cpu, kwargs))

    def back(value):
        if not isinstance(value, torch.Tensor):
            return value
        return originals[id(value)] if id(value) in originals else wrap(value)

    return tree_map(back, result)


def systems():
    torch.manual_seed(0)
    return torch.randn(4, 8, 8) + 24 * torch.eye(8), torch.randn(4, 8, 3)


@contextmanager
def kernels():
    """Install kernels for what is missing; take them out again, also when the case fails, so that the next is alone."""
    installed = fallback.install("fakegpu", MISSING)
    try:
        yield installed
    finally:
        installed.remove()


def case_missing_without_kernels():
    matrix, sides = (value.to(GPU) for value in systems())
    assert fallback.MISSING.search(message(NotImplementedError, torch.linalg.solve, matrix, sides))


def case_forward_and_backward_with_kernels():
    matrix, sides = systems()
    wanted = matrix.clone().requires_grad_()
    (slope,) = torch.autograd.grad(torch.linalg.solve(wanted, sides).square().sum(), wanted)
    with kernels() as installed:
        there = matrix.to(GPU).requires_grad_()
        solved = torch.linalg.solve(there, sides.to(GPU))
        (got,) = torch.autograd.grad(solved.square().sum(), there)
        assert installed.installed == MISSING
    assert solved.device.type == "fakegpu"
    assert (got.cpu() - slope).abs().max() < 1e-5
    assert all(row.to_cpu and row.back for row in installed.rows)
    where = {row.operator: row.where for row in installed.rows}  # the rows' order is that of their times
    assert set(where) == set(MISSING[:2])
    assert "installed_cases.py" in where[MISSING[0]]


def case_in_place_and_out_with_kernels():
    values = torch.rand(5)
    there, out = values.to(GPU), torch.empty(5).to(GPU)
    with kernels() as installed:
        assert there.lgamma_() is there
        assert torch.lgamma(values.to(GPU), out=out) is out
    assert torch.equal(there.cpu(), values.lgamma())
    assert torch.equal(out.cpu(), values.lgamma())
    assert sum(row.calls for row in installed.rows) == 2


def case_removed_kernels_are_gone():
    with kernels():
        torch.rand(3).to(GPU).lgamma()
    message(NotImplementedError, torch.rand(3).to(GPU).lgamma)


def case_the_block_does_the_same():
    matrix, sides = systems()
    with fallback.cpu_fallback("fakegpu") as seen:
        solved = torch.linalg.solve(matrix.to(GPU), sides.to(GPU))
    assert (solved.cpu() - torch.linalg.solve(matrix, sides)).abs().max() < 1e-5
    assert seen.rows[0].operator.startswith("aten::_linalg_solve_ex")


MISSING = ["aten::_linalg_solve_ex.result", "aten::linalg_lu_solve.out", "aten::lgamma.out", "aten::lgamma_"]

if __name__ == "__main__":
    _setup_privateuseone_for_python_backend("fakegpu")
    fallback.KEYS["fakegpu"] = "PrivateUse1"
    catch_all = torch.library.Library("_", "IMPL")
    catch_all.fallback(boxed, "PrivateUse1")
    run_cases(globals())
