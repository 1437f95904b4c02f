"""Exporting writes all files or none, never over somebody else's, and nothing secret."""

import os
import re
import sys
from pathlib import Path

import msgspec
import pytest
from export.setups import ENVIRONMENT, LOCK, REPORT, SETUP
from hypothesis import given
from hypothesis import strategies as st

from assistant.export import FORMATS, MARKER, export
from assistant.export.write import code, escape, write_all
from assistant.host.files import put_in_place
from assistant.model.errors import BadInput, WorkFailed

change = msgspec.structs.replace


def run(folder, formats=(), overwrite=lambda _foreign: False, **changes):
    """Export the setup of these tests with some changes; give the texts by file name."""
    written = export(change(SETUP, **changes), folder, formats, overwrite=overwrite)
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in written}


def test_every_format_is_written_with_our_marker_in_front(tmp_path):
    """All formats are written, marked in the first line, and nothing else is left in the folder."""
    folder = tmp_path / "new" / "folder"
    texts = run(folder, lock=LOCK)
    several = {name for name in texts if name.startswith("launch/")}
    assert len(several) > 1
    names = {name for key, kind in FORMATS.items() for name in (key, *kind.names)}
    assert set(texts) - several == names - {"launch"}
    assert len(FORMATS) <= 9
    assert set(texts) == {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert all(MARKER in text[:400] for text in texts.values())


def test_the_same_setup_gives_the_same_bytes_over_our_own_files(tmp_path):
    """Writing again replaces our own files and changes nothing."""
    assert run(tmp_path) == run(tmp_path)


def test_only_the_formats_asked_for_are_written(tmp_path):
    """A choice of formats leaves the others out."""
    assert list(run(tmp_path, formats=(".env",))) == [".env", "env.ps1"]
    assert list(run(tmp_path, formats=("Requirements", "report"))) == [
        "requirements.txt",
        "constraints.txt",
        "report.md",
    ]


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path):
    """A wrong name is bad input, answered with the list of names."""
    with pytest.raises(BadInput, match=r"no format called banana") as caught:
        run(tmp_path, formats=("banana",))
    assert "requirements.txt" in str(caught.value.hint)
    assert not list(tmp_path.iterdir())


def test_a_file_of_somebody_else_is_never_replaced_unasked(tmp_path):
    """A foreign file stops everything before anything is written; `overwrite` replaces it."""
    foreign = tmp_path / "requirements.txt"
    foreign.write_text("torch\n", "utf-8")
    with pytest.raises(WorkFailed, match=r"requirements\.txt exists and was not written by the assistant") as caught:
        run(tmp_path)
    assert caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["requirements.txt"]
    assert foreign.read_text("utf-8") == "torch\n"
    assert "torch==2.6.0+cu126" in run(tmp_path, overwrite=lambda _foreign: True)["requirements.txt"]


def test_a_folder_in_a_files_place_is_refused(tmp_path):
    """A folder named like a file of ours stops the export in one sentence."""
    (tmp_path / "report.md").mkdir()
    with pytest.raises(WorkFailed, match="is a folder"):
        run(tmp_path, overwrite=lambda _foreign: True)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc refuses new folders, even to root")
def test_a_folder_that_cannot_be_made_is_named():
    """A place where nothing can be made gives one sentence with the next step."""
    with pytest.raises(WorkFailed, match="cannot be written to /proc/new") as caught:
        run(Path("/proc/new"))
    assert caught.value.hint


def test_a_file_in_the_folders_place_is_named(tmp_path):
    """A path through a file cannot become a folder; nothing is left behind."""
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(WorkFailed, match="cannot be written to"):
        run(tmp_path / "file" / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failure_midway_takes_back_what_was_begun(tmp_path):
    """A file system that refuses a later file leaves neither drafts nor a new folder."""
    with pytest.raises(WorkFailed, match="cannot be written to"):
        write_all(tmp_path / "new", {"first": "", "x" * 300: ""}, lambda _foreign: False)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_step_in_takes_all_back(tmp_path, monkeypatch):
    """Where one of the files cannot go to its place, those before it are as they were, and new ones are gone."""
    run(tmp_path, formats=("requirements.txt",))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def refuse_the_last(part, path):
        if path.name == "last":
            raise PermissionError(13, "Permission denied")
        put_in_place(part, path)

    monkeypatch.setattr("assistant.export.write.put_in_place", refuse_the_last)
    with pytest.raises(WorkFailed, match="Permission denied"):
        write_all(tmp_path, {"requirements.txt": "x", "new": "x", "sub/last": "x"}, lambda _foreign: True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_nothing_is_written_through_a_link(tmp_path):
    """A link in a file's place is somebody else's; a folder that links out of the chosen one is refused."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / ".devcontainer").symlink_to(tmp_path / "outside")
    with pytest.raises(WorkFailed, match="leads out of the folder"):
        run(tmp_path / "in", overwrite=lambda _foreign: True)
    (tmp_path / "in" / ".devcontainer").unlink()
    (tmp_path / "outside" / "env").write_text("mine", "utf-8")
    (tmp_path / "in" / ".env").symlink_to(tmp_path / "outside" / "env")
    with pytest.raises(WorkFailed, match=r"\.env exists"):
        run(tmp_path / "in", formats=(".env",))
    run(tmp_path / "in", formats=(".env",), overwrite=lambda _foreign: True)
    assert (tmp_path / "outside" / "env").read_text("utf-8") == "mine"
    assert not (tmp_path / "in" / ".env").is_symlink()


def test_the_report_shows_no_home_folder(tmp_path):
    """Paths below a home folder begin with ~, on each system; commands use $HOME."""
    for home in ("/home/jane", "/Users/jane", "C:\\Users\\jane"):
        environment = change(ENVIRONMENT, path=f"{home}/env", python=f"{home}/env/bin/python")
        text = run(tmp_path, environment=environment)["report.md"]
        assert "jane" not in text
        assert "`~/env`" in text
        assert 'source "$HOME/env/bin/activate"' in text


def test_the_report_tells_machine_choice_packages_checks_and_use(tmp_path):
    """Each part of the setup is in the report."""
    text = run(tmp_path)["report.md"]
    for part in (
        "All checks passed on the device cuda",
        "NVIDIA GeForce RTX 4090 (8.9, 24 GB, 10de:2684)",
        "The driver is a year old.",
        "`cu126`",
        "The driver offers CUDA 13.0.",
        "Close other programs first.",
        "| torchmetrics | 1.6.0 |",
        "| Multiply matrices | passed | cuda | 250 ms | 20 µs | 3.1e-07 | 1.0e-04 |  |",
        "| Run a model with ONNX Runtime | skipped | cuda |",
        "`torch-cu126`",
        'assistant verify --target "$HOME/torch env"',
    ):
        assert part in text
    assert "\n\n\n" not in text


def test_a_report_with_failures_says_how_many_passed(tmp_path):
    """A failed check shows in the first sentence and in its row."""
    checks = (
        *REPORT.checks,
        change(REPORT.checks[1], key="conv2d", status=REPORT.checks[0].status.WRONG, detail="off"),
    )
    text = run(tmp_path, report=change(REPORT, checks=checks))["report.md"]
    assert "2 of 3 checks passed on the device cuda" in text
    assert "| Convolve images | wrong |" in text


@given(st.text(max_size=60))
def test_text_from_outside_stays_in_its_table_cell(text):
    """Whatever a tool or a driver says, a cell has one line, no bar of its own, no tag and no link."""
    cell = escape(text)
    assert len((cell or " ").splitlines()) == 1
    assert not re.search(r"(?<!\\)(?:\\\\)*[|`*_\[\]]", cell)
    assert not re.search(r"[<>]|://", cell)


@given(st.text(max_size=60))
def test_a_code_span_is_closed_by_its_own_fence_only(text):
    """A code span holds any text: its fence is longer than any run of backticks within."""
    span = code(text)
    if span:
        fence = re.match("`+", span)[0]
        assert span.endswith(fence)
        assert fence not in span[len(fence) : -len(fence)]
        assert not re.search(r"(?<!\\)\|", span)


HOSTILE = "</td><script>alert(1)</script> | x | [a](http://evil.example) \n# heading `"


def test_a_hostile_name_adds_no_column_and_no_markup(tmp_path):
    """Names of devices, packages and errors cannot break the tables."""
    gpu = change(SETUP.machine.gpus[0], name=HOSTILE)
    machine = change(SETUP.machine, gpus=(gpu,))
    report = change(REPORT, checks=(change(REPORT.checks[1], detail=HOSTILE),), facts={HOSTILE: HOSTILE})
    environment = change(ENVIRONMENT, packages={HOSTILE: HOSTILE}, kernel=HOSTILE)
    text = run(tmp_path, machine=machine, report=report, environment=environment, formats=("report.md",))["report.md"]
    text = re.sub(r"^(`{3,})json\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)  # what is fenced is no markup
    rows = [re.sub(r"\\.", "", line) for line in text.splitlines() if line.startswith("| Multiply matrices")]
    assert [row.count("|") for row in rows] == [9]
    assert "](http" not in re.sub(r"\\.", "", re.sub(r"`.*`", "", text))
    assert not re.search(r"<script", re.sub(r"(`+).*?\1", "", text))
    assert not [line for line in HOSTILE.splitlines()[1:] if line in text.splitlines()]


def test_a_container_brings_what_it_reads(tmp_path):
    """Asked for alone, it comes with the files that its text names."""
    names = {"Dockerfile", ".devcontainer/devcontainer.json", "requirements.txt", "device.py"}
    assert set(run(tmp_path, ("Dockerfile",))) == set(run(tmp_path, ("devcontainer",))) == names


def test_a_lock_that_nobody_has_is_refused(tmp_path):
    """Asked for by its name it is not left out in silence; with one it comes beside the requirements."""
    with pytest.raises(BadInput, match=r"This setup has no pylock\.toml"):
        run(tmp_path, ("pylock.toml", "requirements.txt"))
    assert not list(tmp_path.iterdir())
    assert "pylock.toml" in run(tmp_path, ("pylock.toml",), lock=LOCK)
