"""Nothing that steers a terminal, turns the reading direction or hides reaches a reader, wherever it comes from."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import unicodedata
from pathlib import Path

import forked
import pytest
from export.setups import DETECTION, ENVIRONMENT, LOCK, PLAN, REPORT
from rich.progress import Progress
from rich.table import Table
from rich.text import Text
from tables import each
from terminals import at_a_terminal

from assistant.cli.draw import Terminal
from assistant.export import Config, Setup, read_config
from assistant.export.config import config_text
from assistant.export.write import texts
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Detection
from assistant.model.plan import Planning
from assistant.model.record import from_json, replace, to_json
from assistant.model.report import Step
from assistant.model.visible import escape_hidden, one_line, plain, visible
from assistant.session.state import Detected, Installed, Phase, Planned, State, StepStatus, Verified
from assistant.session.store import Saved, Store

STEERS = "\x1b]0;owned\x07\x1b[2J\x1b[7;35m\x9b7m\r\x08\x7f"
EVIL = f"{STEERS}\u202e\u2066\u200b\ufeff\u061c\u2028\u200e\u2069\xad\U000e0041Evil"
# The only sequences of a terminal that rich writes here: colours, and the line of progress.
OWN = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|[012]?K|\d*A)|\r+\n|\r(?=\x1b\[\d*[AK])|\r$")
CASES = {
    "ESC": "\x1b",
    "BEL": "\x07",
    "CSI": "\x9b",
    "right to left": "\u202e",
    "isolate": "\u2066",
    "carriage return": "\r",
    "backspace": "\x08",
    "mark of order": "\ufeff",
    "half a character": "\ud800",
    "tag": "\U000e0041",
}


def hidden(text: str) -> set[str]:
    """Find what must not be there, by Unicode's own word for it and not by the filter's."""
    kept = {"\n", "\t", "\u200c", "\u200d"}
    return {sign for sign in text if unicodedata.category(sign) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} - kept


@each("sign", CASES.values(), ids=CASES)
def test_what_steers_or_hides_becomes_a_mark(sign: str):
    """Its place can be seen, so that nobody takes the text for whole; in one line it is a space."""
    assert visible(f"GPU {sign}{sign} 1") == "GPU \ufffd 1"
    assert one_line(f"GPU{sign}\n1") == "GPU 1"


def test_nothing_of_unicode_is_forgotten():
    """Every control, line separator and invisible sign is known; only those of format that are drawn stay."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    drawn = {
        *map(chr, range(0x600, 0x606)),
        *"\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd",
        *map(chr, (*range(0x13430, 0x13440), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B))),
    }
    assert hidden(visible(every)) <= drawn  # an older Unicode knows fewer of them


@each(
    "text",
    ["显卡：英伟达 RTX 4090（24 GB）", "👩‍💻 🏳️‍🌈 ❤️", "می‌خواهم", "क्‍ष", "a\tb\nc\r\nd", "Straße − 5 µs", "", "عربى"],
)
def test_honest_text_stays(text: str):
    """Chinese, emoji, Persian, Indic scripts, tabs and both kinds of line ends pass as they are."""
    assert visible(text) == text


def test_data_are_spelled_and_stay_the_same():
    """JSON and TOML hold the same values after the filter as before it."""
    text = to_json({"name": EVIL})
    assert not hidden(text)
    assert json.loads(text) == {"name": EVIL}
    assert tomllib.loads(escape_hidden('name = "\u202e\U000e0041\x9b"', long=True)) == {"name": "\u202e\U000e0041\x9b"}


def test_the_drawing_console_cleans_every_way_of_drawing(capfd):
    """Plain text, Text, tables, markup, titles and progress bars; colours of our own are left."""
    console = Terminal(force_terminal=True, width=80, legacy_windows=False, _environ={})
    table = Table(EVIL, title=EVIL, caption=EVIL)
    table.add_row(Text(EVIL, style="red"))
    console.print(EVIL, markup=False)
    console.print(Text.assemble((EVIL, "bold"), EVIL), table, EVIL.encode(), [EVIL])
    with Progress(console=console, transient=True) as bars:
        bars.add_task(EVIL, total=None)
        bars.refresh()
    said = capfd.readouterr().out
    assert "\x1b[31m" in said
    assert hidden(OWN.sub("", said)) == set(), repr(said)
    assert "7;35m" in said
    assert "\x1b[7;35m" not in said


def test_the_wizard_cleans_what_it_escapes():
    """HTML holds no hidden character either."""
    assert hidden(plain(EVIL)) == set()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give a folder in which everything that can be named has an evil name or holds one."""
    machine = replace(
        DETECTION.machine,
        gpus=(replace(DETECTION.machine.gpus[0], name=f"RTX {EVIL}"),),
        os_version=EVIL,
        container=EVIL,
        env={"CUDA_VISIBLE_DEVICES": EVIL},
        packages={"torch": EVIL, EVIL: "1"},
        nvidia_driver_state=EVIL,
        nvidia_smi_output=EVIL,
    )
    (tmp_path / "machine.json").write_text(to_json(machine), encoding="utf-8")
    (tmp_path / "lines.jsonl").write_text(f"{to_json(machine)}\n{{\n", encoding="utf-8")
    (tmp_path / "log.txt").write_text(f"RuntimeError: CUDA out of memory {EVIL}\n{EVIL}\n", encoding="utf-8")
    (tmp_path / "pasted.txt").write_text(f"PyTorch version: 2.6\nOS: {EVIL}\nGPU 0: {EVIL}\n", encoding="utf-8")
    findings = (Finding(key=EVIL, severity=Severity.WARNING, text=EVIL),)
    plan = replace(PLAN, reasons=(EVIL,), warnings=(EVIL,))
    folder = tmp_path / f"env {EVIL}"
    folder.mkdir()
    state = State(
        statuses={step: StepStatus(phase=Phase.DONE) for step in Step if step is not Step.EXPORT},
        detected=Detected(detection=Detection(machine=machine, findings=findings)),
        planned=Planned(planning=Planning(choice=plan, plans=(plan,))),
        installed=Installed(environment=replace(ENVIRONMENT, path=str(folder), python=f"{folder}/bin/python")),
        verified=Verified(report=replace(REPORT, facts={**REPORT.facts, EVIL: EVIL})),
    )
    Store(tmp_path / "pytorch-setup-assistant").save(state)
    (tmp_path / "assistant.toml").write_text(config_text(setup(state)), encoding="utf-8")
    (tmp_path / "refused.toml").write_text(
        f'schema = "{escape_hidden(EVIL, long=True)}"\n"{EVIL[-4:]}" = 1\n', encoding="utf-8"
    )
    return tmp_path


def setup(state: State) -> Setup:
    """Put a state together as the export does."""
    assert state.detection
    assert state.plan
    assert state.environment
    assert state.report
    return Setup(
        machine=state.detection.machine,
        findings=state.detection.findings,
        plan=state.plan,
        environment=replace(state.environment, path="env", packages=ENVIRONMENT.packages),
        report=state.report,
        lock=LOCK,
    )


COMMANDS = {
    "plan": ["plan", "--machine", "machine.json", "--why"],
    "plan as JSON": ["plan", "--machine", "machine.json", "--json"],
    "many plans": ["plan", "--machines", "lines.jsonl"],
    "no such machine": ["plan", "--machine", EVIL],
    "a wrong option": ["plan", f"--{EVIL}"],
    "a wrong choice": ["plan", "--backend", EVIL],
    "a wrong requirement": ["plan", "--machine", "machine.json", "--pin", f"torch {EVIL}"],
    "a wrong command": [EVIL],
    "help": ["plan", "--help"],
    "detect": ["detect"],
    "detect as JSON": ["detect", "--json"],
    "a pasted report": ["detect", "--from", "pasted.txt"],
    "a fact": ["detect", "--replay", "linux-ubuntu2404-rtx4090", "--set", f"os_version={EVIL}"],
    "no fact": ["detect", "--set", EVIL],
    "no such recording": ["detect", "--replay", f"./{EVIL}"],
    "diagnose": ["diagnose", "log.txt", "--machine", "machine.json", "--report", "report.md"],
    "diagnose as JSON": ["diagnose", "log.txt", "--machine", "machine.json", "--json"],
    "an unknown log": ["diagnose", "pasted.txt", "--machine", "machine.json"],
    "doctor": ["doctor"],
    "export": ["export", "--to", "exported"],
    "no such format": ["export", EVIL],
    "check": ["check", "assistant.toml", "--no-verify"],
    "check as JSON": ["check", "assistant.toml", "--no-verify", "--json"],
    "a refused configuration": ["check", "refused.toml"],
    "apply": ["apply", "assistant.toml", "--dry-run", "--offline", "--target", f"t {EVIL}"],
    "setup": ["setup", "--dry-run", "--offline", "--backend", "cpu", "--target", f"t {EVIL}"],
    "verify": ["verify", "--target", f"env {EVIL}"],
    "environments": ["envs", "--remove", EVIL, "--yes"],
    "recover": ["recover", "--target", f"env {EVIL}"],
}


def variables(folder: Path, **more: str) -> dict[str, str]:
    """Give the variables of a user with that home, evil wherever the assistant looks."""
    evil = {"CUDA_VISIBLE_DEVICES": EVIL, "SETUP_ASSISTANT_STARTED_AS": f"start {EVIL}", "INFERENCE_DEVICE": EVIL}
    return forked.at_home(folder, COLUMNS="100", **evil, **more)


@pytest.mark.process
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_no_command_prints_or_writes_anything_hidden(home: Path, arguments: list[str]):
    """Whatever machine, log, model, path, variable or reason it tells of; there is no traceback either."""
    before = {path for path in home.rglob("*") if path.is_file()}
    done = forked.run(*arguments, env=variables(home), cwd=home)
    said = done.stdout + done.stderr
    assert said.strip()
    assert hidden(said) == set()
    assert "Traceback" not in said
    for path in {path for path in home.rglob("*") if path.is_file()} - before:
        if path.suffix not in {".png", ".lock"}:
            assert hidden(path.read_text(encoding="utf-8").replace("\r\n", "\n")) == set(), path


@pytest.mark.process
@pytest.mark.parametrize("name", ["plan", "detect", "diagnose", "check", "export", "a wrong choice", "setup"])
def test_a_terminal_gets_our_own_colours_only(home: Path, name: str):
    """On a terminal rich colours and moves; what stands in a name does neither."""
    said = at_a_terminal(COMMANDS[name], variables(home, TERM="xterm-256color"), cwd=home).decode()
    assert hidden(OWN.sub("", said)) == set(), said
    assert "\x1b[7;35m" not in said


@pytest.mark.process
def test_forced_colours_are_ours_only(home: Path):
    """FORCE_COLOR asks for colours where no terminal is."""
    command, env = [sys.executable, "-m", "assistant", *COMMANDS["plan"]], variables(home, FORCE_COLOR="1")
    said = subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, check=False).stdout
    assert "\x1b[" in said
    assert hidden(OWN.sub("", said)) == set(), repr(said)
    assert "\x1b[7;35m" not in said


def test_a_configuration_keeps_what_it_cannot_show(home: Path):
    """Exported and read back, an evil name is the same: nothing drifts because it was spelled."""
    told = read_config((home / "assistant.toml").read_text(encoding="utf-8"))
    assert isinstance(told, Config)
    assert told.machine.gpus[0].name == f"RTX {EVIL}"


def test_every_format_is_clean(home: Path):
    """Each file of each format, whatever the setup holds."""
    saved = from_json((home / "pytorch-setup-assistant" / "session.json").read_bytes(), Saved, "state")
    assert saved.state
    for path, text in texts(setup(saved.state)).items():
        assert hidden(text.replace("\r\n", "\n")) == set(), path
