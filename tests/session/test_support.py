"""The support matrix: a plan for each family of GPUs on each system, and what is known of each workload."""

from __future__ import annotations

from assistant.model.plan import Backend
from assistant.session.support import SYSTEMS, WORKLOADS, matrix, standing, workloads


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


def test_every_workload_on_every_backend_has_a_state_with_its_source():
    """Nothing is left out, and whatever has gaps says which."""
    known = workloads()
    assert set(known) == {(backend, workload) for backend in Backend for workload in WORKLOADS}
    assert all(row.source for row in known.values())
    assert all(row.note for row in known.values() if row.state in {"gaps", "experimental"})


def test_how_well_it_works_does_not_depend_on_the_maker():
    """ROCm and CUDA both work; DirectML has gaps; a GPU that no build uses gets none of it."""
    cells = {(cell.family.family, cell.system): standing(cell) for cell in matrix() if cell.plan}
    assert cells["RDNA 3", "linux"] == cells["Ada", "linux"] == "works"
    assert cells["RDNA 2", "wsl"] == "gaps"
    assert cells["Kepler", "linux"] == "none"
    assert cells["no GPU", "linux"] == "works"
