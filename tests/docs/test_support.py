"""The support matrix: a plan for each family of GPUs on each system, and what is known of each workload."""

from __future__ import annotations

from support import SYSTEMS, WORKLOADS, matrix, workloads

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


def test_every_workload_on_every_backend_has_a_state_with_its_source():
    """Nothing is left out, and whatever has gaps says which."""
    known = workloads()
    assert {(row.backend, row.workload) for row in known} == {(one, other) for one in Backend for other in WORKLOADS}
    assert all(row.source for row in known)
    assert all(row.note for row in known if row.state in {"gaps", "experimental"})
