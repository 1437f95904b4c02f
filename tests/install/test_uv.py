"""uv's lines and the project that it is given."""

from __future__ import annotations

import tomllib

import pytest

from assistant.install.installer import INSTALLED, project_file
from assistant.model.plan import Backend, Plan


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Downloading onnx (8.5MiB)", None),
        (" + torch==2.13.0+cpu", "torch"),
        (" + torch==2.13.0+cpu (from file:///wheels/torch.whl)", "torch"),
        ("Prepared 44 packages in 4.36s", None),
        (" - torch==2.12.0", None),
        ("", None),
    ],
)
def test_a_line_of_uv_is_read(line: str, name: str | None) -> None:
    """Only lines that tell of packages in place mean something."""
    found = INSTALLED.match(line)
    assert (found["name"] if found else None) == name


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


def test_a_plan_without_an_index_ties_nothing() -> None:
    """Wheels of the default index or of find-links need no source."""
    told = tomllib.loads(project_file(plan(requirements=("torch==2.13.0+cpu",))))
    assert told["tool"]["uv"] == {"workspace": {}}
    assert told["project"]["dependencies"] == ["torch==2.13.0+cpu", "ipykernel"]


def test_quotes_in_a_requirement_stay_inside_their_string() -> None:
    """A requirement cannot break out of the file that uv reads."""
    nasty = 'numpy; extra == "x"\n[tool.uv]\nno-index = true'
    told = tomllib.loads(project_file(plan(requirements=(nasty,))))
    assert told["project"]["dependencies"][0] == nasty
    assert set(told["tool"]["uv"]) == {"workspace"}


def test_torch_is_told_from_names_that_begin_alike() -> None:
    """Torchmetrics is nobody's family."""
    told = tomllib.loads(project_file(plan(index_url="https://example.test", requirements=("torchmetrics", "torch"))))
    assert set(told["tool"]["uv"]["sources"]) == {"torch"}
