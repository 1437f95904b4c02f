"""The project that uv is given."""

from __future__ import annotations

import tomllib

from assistant.install.uv import project_file
from assistant.model.plan import Backend, Plan


def plan(**changes: object) -> Plan:
    """Give a plan."""
    fields = {"backend": Backend.CPU, "variant": "cpu", "torch": "2.13.0", "python": "3.12", **changes}
    return Plan(**fields)  # type: ignore[arg-type]


def test_only_torch_and_its_family_come_from_torchs_index() -> None:
    """The index is explicit, so no other name is ever looked up there, nor torch anywhere else."""
    told = tomllib.loads(
        project_file(plan(index_url="https://example.test/cpu", requirements=("torch==2.13.0", "torchvision", "numpy")))
    )
    assert told["tool"]["uv"]["index"] == [{"name": "torch", "url": "https://example.test/cpu", "explicit": True}]
    assert set(told["tool"]["uv"]["sources"]) == {"torch", "torchvision"}


def test_quotes_in_a_requirement_stay_inside_their_string() -> None:
    """A requirement cannot break out of the file that uv reads."""
    nasty = 'numpy; extra == "x"\n[tool.uv]\nno-index = true'
    told = tomllib.loads(project_file(plan(requirements=(nasty,))))
    assert told["project"]["dependencies"][0] == nasty
    assert set(told["tool"]["uv"]) == {"workspace"}
