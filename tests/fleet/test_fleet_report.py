"""`assistant fleet report`: one report on many machines; what helps most is what the planner says."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import forked
import nbformat
import pytest
from fleet_records import WHEN, record
from refused import refused

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.fleet import Fleet, FleetRecord, Standing, read_records, rows_of, show, summed_up, text_of
from assistant.fleet.tables import MACHINE_KEYS
from assistant.host.recording import ReplayHost
from assistant.i18n import LANGUAGES, Message, _, in_language, render
from assistant.machines import load, shipped
from assistant.model.errors import BadInput
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.record import replace, to_json
from assistant.model.report import Check, Report, Status
from assistant.plan import kind_of, make_plans
from assistant.session.kinds import Gain, outlook_of

RTX5090 = "linux-ubuntu2404-rtx5090-driver575"
GOOD = Report(device="cuda", checks=(Check(key="matmul", status=Status.PASSED, error=1e-7),))
Write = Callable[..., Fleet]


@pytest.fixture
def report(tmp_path: Path) -> Write:
    """Give a function that writes records into a folder and reports on them."""

    def written(*records: FleetRecord) -> Fleet:
        for number, one in enumerate(records):
            (tmp_path / f"{number}.json").write_text(to_json(one, indent=1), encoding="utf-8")
        return summed_up(rows_of(read_records(tmp_path), WHEN), WHEN)

    return written


def test_drivers_that_help_are_counted_and_sorted_by_what_is_gained(report: Write) -> None:
    """First what brings a GPU to work, then what brings a newer torch; the builds are the planner's own."""
    fleet = report(
        *(record(f"new-{number}", RTX5090) for number in range(3)),
        record("old", "windows10-1809-gtx1060"),
        record("fine"),
        record("set", "linux-ubuntu2404-rtx3090-hidden"),
    )
    found = [(one.gain, render(one.text), one.machines) for one in fleet.helps]
    assert found == [
        (Gain.GPU, "Update the NVIDIA driver to 528.33 or newer.", ("old",)),
        (Gain.GPU, "Remove that setting from the environment.", ("set",)),
        (Gain.NEWER, "Update the NVIDIA driver to 580 or newer.", ("new-0", "new-1", "new-2")),
    ]
    updated = replace(record("new", RTX5090).machine, nvidia_driver="580")
    choice = make_plans(updated, load_catalog()).choice
    assert choice
    assert fleet.helps[-1].then == (choice.torch,)


@pytest.mark.parametrize("name", shipped())
def test_what_would_help_is_kept_by_the_planner(name: str) -> None:
    """A driver that is advised gives the torch that is promised, on every recorded machine."""
    machine = detect(ReplayHost(load(name))).machine
    for one in outlook_of(machine).helps:
        if one.torch:
            driver = str(one.text.params["driver"]) if isinstance(one.text, Message) else ""
            choice = make_plans(replace(machine, nvidia_driver=driver, cuda_driver_api=None), load_catalog()).choice
            assert choice
            assert (choice.backend, choice.torch) == (one.backend, one.torch)


@pytest.mark.parametrize("name", shipped())
def test_machines_of_one_kind_get_the_same_plans(name: str) -> None:
    """No plan rests on the facts that a kind leaves out."""
    machine = detect(ReplayHost(load(name))).machine
    others = replace(machine, memory_gb=1.5, disk_free_gb=0.5, packages={"torch": "1.0"}, evidence=())
    assert kind_of(machine) == kind_of(others)
    assert make_plans(machine, load_catalog()) == make_plans(kind_of(machine), load_catalog())


def test_how_a_machine_stands(report: Write) -> None:
    """Broken, better, bare, unchecked or working, worst first; of several records the newest counts."""
    broken = replace(GOOD, checks=(Check(key="import", status=Status.FAILED, detail="ImportError: no"),))
    remedy = Remedy(text=_("Restart the computer."))
    wrong = Finding(key="nvidia-mismatch", severity=Severity.WARNING, text="Old module.", remedies=(remedy,))
    fleet = report(
        record("works", report=GOOD, environment={"path": "/e", "python": "3.12", "torch": "2.15.0"}),
        record("bare"),
        record("better", findings=(wrong,)),
        record("broken", report=broken),
        record("nothing", "linux-alpine-musl"),
        record("twice", report=broken, when=WHEN - timedelta(days=1)),
        record("twice", when=WHEN),
        record("old", when=WHEN - timedelta(days=50)),
        record("ahead", when=WHEN + timedelta(days=50)),
    )
    rows = {row.name: row for row in fleet.machines}
    assert [row.name for row in fleet.machines][:3] == ["broken", "nothing", "better"]
    assert {name: row.standing.value for name, row in rows.items()} == {
        "works": "works",
        "bare": "bare",
        "better": "better",
        "broken": "broken",
        "nothing": "broken",
        "twice": "bare",
        "old": "bare",
        "ahead": "bare",
    }
    assert render(rows["better"].problems[0].remedy) == "Restart the computer."
    assert "musl" in render(rows["nothing"].problems[0].text)
    assert "newest" in render(rows["twice"].remarks[0])
    assert render(rows["old"].remarks[0]) == "This record is 50 days old."
    assert "clock" in render(rows["ahead"].remarks[0])


def hostile(folder: Path) -> None:
    """Fill a folder with what somebody may leave on a share."""
    good = to_json(record("good"))
    deep: Message | str = "x"
    for _level in range(300):
        deep = Message("{a}").format(a=deep)
    finding = Finding(key="x", severity=Severity.ERROR, text=deep)
    driver = replace(record("numbers").machine, nvidia_driver="9" * 5000)
    files = {
        "numbers.json": to_json(replace(record("numbers"), machine=driver)),
        "broken.json": good[:500],
        "empty.json": "",
        "good.json": good,
        "schema.json": good.replace('"schema":1', '"schema":2'),
        "newer.json": good.replace('"schema":1', '"schema":1,"zzz":1'),
        "deep.json": to_json(record("deep", findings=(finding,))),
        "name.json": to_json(record("<script>alert(1)</script>\u202e" + "x" * 200)),
        "formula.json": to_json(record("=cmd|' /C calc'!A0")),
        "notes.txt": "not a record",
        ".hidden.json": "{}",
        "two.jsonl": f"{good.replace('good', 'line')}\nnonsense\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "binary.json").write_bytes(bytes(range(256)) * 20)
    (folder / "folder.json").mkdir()
    (folder / "link.json").symlink_to("/etc/passwd")
    (folder / "long.json").write_bytes(b" " * (5 << 20))
    (folder / "utf16.json").write_bytes(to_json(record("powershell")).encode("utf-16"))


def test_what_is_no_record_is_a_row(tmp_path: Path) -> None:
    """Every file has its place in the report, with a sentence; no file ends it."""
    hostile(tmp_path)
    rows = rows_of(read_records(tmp_path), WHEN)
    unread = {row.file: render(row.why) for row in rows if row.standing is Standing.UNREAD}
    assert sorted(unread) == [
        "binary.json",
        "broken.json",
        "deep.json",
        "empty.json",
        "folder.json",
        "link.json",
        "long.json",
        "newer.json",
        "numbers.json",
        "schema.json",
        "two.jsonl:2",
    ]
    assert all(unread.values())
    assert "root" not in unread["link.json"]
    assert "another version" in unread["schema.json"]
    assert {row.name for row in rows} >= {"good", "line", "powershell", "=cmd|' /C calc'!A0"}


def test_no_name_becomes_code(tmp_path: Path) -> None:
    """Page, notebook and spreadsheet hold what strangers wrote as text alone."""
    hostile(tmp_path)
    fleet = summed_up(rows_of(read_records(tmp_path), WHEN), WHEN)
    for kind in ("html", "ipynb", "csv"):
        text = text_of(fleet, kind, str(tmp_path))
        assert kind == "csv" or "<script>alert" not in text
        assert "\u202e" not in text
    cells = [cell for row in csv.reader(io.StringIO(text_of(fleet, "csv", ""))) for cell in row]
    assert "'=cmd|' /C calc'!A0" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]


def test_the_page_loads_nothing_and_speaks_both_languages(report: Write) -> None:
    """It opens in the language in force, and holds each sentence in every language."""
    fleet = report(record("new", RTX5090), record("fine"))
    for code in LANGUAGES:
        with in_language(code):
            page = text_of(fleet, "html", "")
        assert f'<html lang="{code.replace("_", "-")}">' in page
        assert not re.search(r"(?:src|href)=", page)
        assert "default-src &#x27;none&#x27;" in page
        for other in LANGUAGES:
            with in_language(other):
                assert render(fleet.helps[0].text) in page


def test_the_notebook_is_one_and_shows_the_machines_anew(report: Write, tmp_path: Path) -> None:
    """It is valid, holds both languages, and its cell reads the records again, sorted by any column."""
    fleet = report(record("b", RTX5090), record("a"))
    text = text_of(fleet, "ipynb", str(tmp_path))
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert "驱动" in text
    assert notebook.cells[-1].source.endswith(", ".join(MACHINE_KEYS))
    made = show(str(tmp_path), by="name")._repr_html_()
    assert made.index(">a<") < made.index(">b<")
    with pytest.raises(BadInput, match="no column"):
        show(str(tmp_path), by="colour")


@pytest.mark.process
def test_the_command(tmp_path: Path) -> None:
    """It prints a summary or JSON, writes a file by its name, and says in a sentence what it cannot do."""
    folder = tmp_path / "records"
    folder.mkdir()
    env = {**os.environ, "LANGUAGE": "en", "COLUMNS": "300"}
    refused(forked.run("fleet", "report", folder, env=env), 2, "no records", "fleet record --to")
    refused(forked.run("fleet", "report", tmp_path / "gone", env=env), 2, str(tmp_path / "gone"))
    hostile(folder)
    done = forked.run("fleet", "report", folder, env=env)
    assert (done.returncode, "PyTorch on 5 machines" in done.stdout) == (0, True), done.stderr
    refused(forked.run("fleet", "report", folder, "--to", tmp_path / "r.pdf", env=env), 2, "--format")
    for kind in ("html", "csv", "ipynb", "json"):
        done = forked.run("fleet", "report", folder, "--to", folder / f"report.{kind}", env=env)
        assert done.returncode == 0, done.stderr
    assert (folder / "report.csv").read_bytes().startswith(b"\xef\xbb\xbfname,")
    told = json.loads(forked.run("fleet", "report", folder, "--json", "--to", folder / "report.json", env=env).stdout)
    assert told["standings"]["unread"] == 11
    assert [row["name"] for row in told["machines"] if row["name"] == "good"]
    lines = "\n".join(to_json(record(name)) for name in ("x", "y"))
    done = forked.run("fleet", "report", "-", "--to", "-", "--format", "csv", env=env, input=lines)
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == ["name", "x", "y"]
