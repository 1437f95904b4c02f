"""On how many machines a plan was seen to work: the same build on the same kind of machine, and no other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

import forked
import pytest
from contributed import ROW

from assistant.catalog import load_catalog
from assistant.catalog.editions import MANIFEST, manifest_of, refreshed_folder
from assistant.catalog.tables import Table
from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.i18n import in_language, render
from assistant.machines import load
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace, to_json
from assistant.plan import make_plans
from assistant.session import seen as judge
from assistant.session.seen import SeenRow, SeenTables, seen

PLAN = Plan(backend=Backend.CUDA, variant="cu130", torch="2.15.0", python="3.12")
CARD = Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4060", compute_capability="8.9")
PC = Machine(os="linux", arch="x86_64", gpus=(CARD,))


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give a function that lets the table hold some rows."""

    def hold(*rows: SeenRow) -> None:
        table = SeenTables(seen=Table[SeenRow](source="it", as_of="2026-11-27", rows=rows))
        judge._by_case.cache_clear()
        monkeypatch.setattr(judge, "read_tables", lambda _name, _kind: table)

    yield hold
    judge._by_case.cache_clear()


def test_machines_of_one_kind_count_together(rows: Callable[..., None]) -> None:
    """Whichever card it was, the architecture decides what a build runs on; the last month is the latest of all."""
    rows(ROW, replace(ROW, card="GeForce RTX 4060", machines=1, last=date(2026, 11, 20)))
    found = seen(PC, PLAN)
    assert found
    assert (found.machines, found.last) == (4, "2026-11")
    assert render(found.text) == "Seen working on 4 machines of this kind, last in 2026-11."
    with in_language("zh_CN"):
        assert "4" in render(found.text)
        assert "Seen" not in render(found.text)


@pytest.mark.parametrize(
    ("machine", "plan"),
    [
        (replace(PC, wsl=True), PLAN),
        (replace(PC, os="windows"), PLAN),
        (replace(PC, arch="aarch64"), PLAN),
        (replace(PC, gpus=(replace(CARD, compute_capability="8.6"),)), PLAN),
        (PC, replace(PLAN, variant="cu126")),
        (PC, replace(PLAN, torch="2.15.1")),
        (PC, replace(PLAN, backend=Backend.CPU, variant="cpu")),
    ],
    ids=["WSL", "system", "processor", "architecture", "build", "release", "backend"],
)
def test_what_differs_in_a_fact_that_matters_does_not_count(
    machine: Machine, plan: Plan, rows: Callable[..., None]
) -> None:
    """It was not yet seen there, and the sentence says how to tell."""
    rows(ROW)
    found = seen(machine, plan)
    assert found
    assert (found.machines, found.last) == (0, None)
    assert "`assistant contribute`" in render(found.text)


@pytest.mark.parametrize(
    "machine",
    [
        replace(PC, os=None),
        replace(PC, arch=None),
        replace(PC, gpus=()),
        replace(PC, gpus=(Gpu(vendor=Vendor.NVIDIA),)),
    ],
    ids=["system", "processor", "GPU", "architecture"],
)
def test_of_what_is_unknown_nothing_is_said(machine: Machine, rows: Callable[..., None]) -> None:
    """Neither that it was seen nor that it was not."""
    rows(ROW)
    assert seen(machine, PLAN) is None


@pytest.mark.parametrize("name", ["windows11-rx7800xt", "macos15-m3max", "linux-ubuntu2404-arc-a770"])
def test_each_maker_has_something_that_decides(name: str, rows: Callable[..., None]) -> None:
    """AMD's targets, Intel's generations, Apple as a whole: what was contributed for a machine speaks for it."""
    machine = detect(ReplayHost(load(name))).machine
    plan = make_plans(machine, load_catalog()).choice
    assert plan
    case = judge.case_of(machine, plan)
    assert case
    rows(SeenRow(card="x", last=date(2026, 1, 31), machines=1, **case._asdict()))
    found = seen(machine, plan)
    assert found
    assert render(found.text) == "Seen working on 1 machine of this kind, last in 2026-01."


@pytest.mark.process
def test_a_newer_table_is_told_in_the_terminal_and_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer tables bring rows; what was documented of a plan's JSON stays, and one key more tells what was seen."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    table = SeenTables(seen=Table[SeenRow](source="it", as_of="2099-01-01", rows=(ROW,)))
    texts, folder = {"seen": to_json(table).encode()}, refreshed_folder()
    folder.mkdir(parents=True)
    (folder / "seen.json").write_bytes(texts["seen"])
    (folder / MANIFEST).write_text(to_json(manifest_of(texts, {"seen": "seen.json"}, "2099.1.1")))
    command = ("plan", "--replay", "linux-ubuntu2404-rtx4090")
    env = {**os.environ, "LANGUAGE": "en", "COLUMNS": "200"}
    told = "Seen working on 3 machines of this kind, last in 2026-10."
    assert told in forked.run(*command, env=env).stdout
    answer = json.loads(forked.run(*command, "--json", env=env).stdout)
    assert list(answer) == ["choice", "plans", "rejected", "seen"]
    assert {name: answer["seen"][name] for name in ("machines", "last", "text")} == {
        "machines": 3,
        "last": "2026-10",
        "text": told,
    }
