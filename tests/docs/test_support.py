"""The support matrix: a plan for each family of GPUs on each system."""

from __future__ import annotations

from support import SYSTEMS, matrix

from assistant.model.plan import Backend


def test_the_matrix_answers_every_place():
    """Each family has a plan on each system where its cards are found, and a GPU's plan is nobody else's backend."""
    cells = {(cell.family.family, cell.system): cell for cell in matrix()}
    assert len(cells) == len({family for family, _system in cells}) * len(SYSTEMS)
    assert all((cell.plan is None) == (system not in cell.family.systems) for (_f, system), cell in cells.items())
    own = {"nvidia": Backend.CUDA, "amd": Backend.ROCM, "intel": Backend.XPU, "apple": Backend.MPS}
    found = {cell.plan.backend for cell in cells.values() if cell.plan}
    assert found == set(Backend)
    for cell in cells.values():
        allowed = {own.get(cell.family.vendor), Backend.DIRECTML, Backend.CPU}
        assert cell.plan is None or cell.plan.backend in allowed
