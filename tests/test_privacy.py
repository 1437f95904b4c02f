"""Nothing secret or private leaves the machine, whatever file it would leave in; what must be usable stays as it is."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from secrets_corpus import CONTEXTS, HOST, KEPT, KINDS, USER, VARIABLES, every, placed
from tables import each
from written import calls_in, name_of, writers_in

import assistant.start
from assistant.detect.common import Notes
from assistant.diagnose import read_log
from assistant.export import Setup
from assistant.export.setup import clean
from assistant.export.write import texts
from assistant.host.base import Host, RecordingHost, write_recording
from assistant.i18n import _
from assistant.install.site import Marker
from assistant.model.finding import Diagnosis, Finding, Remedy, Severity
from assistant.model.machine import Answer, Evidence, Machine
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace, to_json
from assistant.model.report import Check, Environment, Report, Status
from assistant.privacy import Lines, Policy, PrivateNames, redact, secret_values
from assistant.privacy.rules import RULES
from assistant.session.diagnosis import log_report
from assistant.session.state import Pasted, Phase, State
from assistant.session.store import Store
from assistant.verify.runner import Group, Results

ROOT = Path(__file__).parents[1] / "assistant"
KNOWN = PrivateNames(users=(USER,), hosts=(HOST,), secrets=secret_values(VARIABLES))
ENVIRONMENT = Environment(path="/opt/env", python="/opt/env/bin/python", packages={"torch": "2.6.0"})
LOCK = 'lock-version = "1.0"\npackages = []\n'
Producer = Callable[[str, Path], str]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch):
    """Be on a machine whose user, name and secret variables are those of the corpus."""
    named = {**VARIABLES, "USER": USER, "HOSTNAME": HOST}
    for name, value in named.items():
        monkeypatch.setenv(name, value)


class _Says(Host):
    """A machine whose nvidia-smi says one thing."""

    def __init__(self, text: str) -> None:
        self.text = text

    def ask(self, kind: str, *_arguments: str) -> Answer:
        """Answer every question with the text."""
        if kind == "identity":
            return Answer(text=json.dumps({"users": [USER], "hosts": [HOST], "date": "2026-11-22"}))
        return Answer(text=self.text)


def _machine(text: str) -> Machine:
    evidence = (Evidence(fact="gpus", source=text, text=text),)
    return Machine(os="linux", nvidia_smi_output=text, env={"NOTE": text}, evidence=evidence)


def _plan(text: str) -> Plan:
    return Plan(
        backend=Backend.CPU,
        variant="cpu",
        torch="2.6.0",
        python="3.12",
        index_url="https://download.pytorch.org/whl/cpu",
        requirements=("torch==2.6.0",),
        env={"NOTE": text},
        reasons=(text, _("Found in {place}.", place=text)),
        warnings=(text,),
    )


def _recording(text: str, _folder: Path) -> str:
    host = RecordingHost(_Says(text))
    for question in (("run", "nvidia-smi"), ("run", "env"), ("read", "/etc/hostname"), ("server",), ("platform",)):
        host.ask(*question)
    return write_recording(host, "x")


def _report(text: str, _folder: Path) -> str:
    log, machine = read_log(text), _machine(text)
    return log_report(log, machine, _shown(text))


def _shown(text: str) -> list[tuple[Diagnosis, int | None]]:
    """Return a cause that holds a text wherever one can, shown by the first line."""
    fix = Remedy(text=text, commands=(text,), env={"NOTE": text}, check=(text,))
    return [(Diagnosis(key="x", title=text, cause=text, evidence=(text,), remedies=(fix,)), 0)]


def _export(text: str, _folder: Path) -> str:
    finding = Finding(key="x", severity=Severity.INFO, text=_("See {path}.", path=text), evidence=(text,))
    setup = Setup(
        machine=_machine(text),
        findings=(finding,),
        plan=_plan(text),
        environment=ENVIRONMENT,
        report=Report(
            device="cpu",
            checks=(Check(key="import", status=Status.FAILED, detail=text),),
            facts={"torch": "2.6.0", "note": text},
        ),
        lock=LOCK,
    )
    return "\n".join(texts(clean(setup, KNOWN)).values())  # what `export` writes; it does so durably, which takes time


def _lock(text: str, _folder: Path) -> str:
    plan = replace(_plan(""), requirements=(text,), index_url=text)
    lock = f"{LOCK}note = {json.dumps(text)}\n"
    setup = Setup(machine=Machine(), plan=plan, environment=ENVIRONMENT, report=Report(device="cpu"), lock=lock)
    cleaned = clean(setup, KNOWN)
    return "\n".join((cleaned.lock, *cleaned.plan.requirements, cleaned.plan.index_url or ""))


def _log(text: str, folder: Path) -> str:
    store = Store(folder)
    for line in text.splitlines():
        store.write_log(line)
    return store.log.read_text("utf-8")


def _fault(text: str, folder: Path) -> str:
    return Store(folder).keep_fault(text).read_text("utf-8")


def _started(text: str, folder: Path) -> str:
    """Say it in a child of start.py, whose output goes to its log; it knows no names before anything is installed."""
    log, assistant.start.LOG = assistant.start.LOG, folder / "start.log"
    (folder / "said").write_text(text, "utf-8")
    code = "import pathlib, sys; print(pathlib.Path(sys.argv[1]).read_text('utf-8'))"
    try:
        assistant.start._run_logged([sys.executable, "-I", "-S", "-c", code, str(folder / "said")], {})
        return assistant.start.LOG.read_text("utf-8")
    finally:
        assistant.start.LOG = log


def _evidence(text: str, _folder: Path) -> str:
    notes = Notes()
    notes.record_evidence("gpus", "tool", text)
    notes.inform("x", "", text)
    notes.warn("y", "", "", evidence=text)
    return to_json([notes.evidence, notes.findings])


def _marker(text: str, _folder: Path) -> str:
    return to_json(redact(Marker(plan=_plan(text), environment=ENVIRONMENT), Policy.USABLE))


def _stray(text: str, _folder: Path) -> str:
    heard: list[object] = []
    group = Group(Results("cpu", (), heard.append), ())
    for line in text.splitlines():
        group.read_line(line)
    return to_json(heard)


def _child(text: str, _folder: Path) -> str:
    return "\n".join(map(Lines(Policy.USABLE), text.splitlines()))


# Where text from outside leaves in a file: who writes it, and how to make it.
PRODUCERS: dict[str, Producer] = {
    "cli/detect.py:detect": _recording,
    "cli/diagnose.py:diagnose": _report,
    "export/write.py:write_all": _export,
    "session/store.py:write_log": _log,
    "session/store.py:keep_fault": _fault,
}
# Of these only the secrets are taken out: names and paths in them are used on this machine.
LOCAL: dict[str, Producer] = {
    "export/write.py:write_all, requirements": _lock,
    "install/site.py:write_marker": _marker,
    "verify/runner.py:read_line": _stray,
    "install/uv.py:call": _child,
}
NAMELESS = frozenset({"own user", "own host", "own variable", "own proxy"})  # that only a machine knows
# Who else writes, and why nothing private goes out with it.
EXEMPT = {
    "catalog/tables.py:write_tables": "versions and tags of wheels, strictly decoded",
    "cli/terminal.py:write_file": "it writes what the commands above give it",
    "cli/lab.py:_put_copy": "a notebook of the project",
    "cli/lab.py:put_copies": "private: names of notebooks and their hashes",
    "host/files.py:copy_output_to_log": "what was typed, in the user's own log",
    "host/files.py:write": "what stands on the user's terminal, in their own log",
    "host/files.py:is_writable": "nothing: the file is empty, and is deleted at once",
    "host/files.py:write_to_path": "it is the writer",
    "start.py:_write_relative_path": "Python obeys it: the way to the project",
    "host/files.py:write_atomically": "it is the writer",
    "install/uv.py:resolve_command": "in the private folder, obeyed by uv, then deleted",
    "install/installation.py:build_anew": "in the private folder, obeyed by uv, then deleted",
    "install/contents.py:install_once": "in the private folder, obeyed by uv, then deleted",
    "install/journal.py:write": "private and obeyed",
    "install/journal.py:delete_later": "private and obeyed: a folder",
    "install/kernel.py:_write_kernelspec": "Jupyter obeys it: an interpreter and the plan's variables",
    "install/kernel.py:register_kernel": "a picture",
    "install/in_place.py:restore_on_failure": "private and obeyed: names and versions of packages",
    "export/first_steps.py:write_first_notebook": "the user's own, beside the notebook: the name of a kernel",
    "install/kernel.py:restore_kernel": "it puts back what had been there",
    "install/guards.py:write_variables": "the folder of the environment and the plan's variables",
    "install/guards.py:remove_guards": "the user's own settings of pip, without what was added",
    "install/guards.py:write_guards": "names and versions of packages",
    "install/projects.py:guard_project": "the user's own project, with versions of packages and torch's index",
    "install/projects.py:guard_tools": "names and versions of packages",
    "install/projects.py:unguard_project": "the user's own project, without what was added",
    "session/store.py:store_log": "private: the user's own log, kept whole until it is diagnosed, and never sent",
    "session/store.py:save": "private and obeyed: a setup goes on with the addresses that the user gave",
    "start.py:_make_environment": "a name of a folder",
}


def _left(
    name: str, producer: Producer, folder: Path, *, usable: bool, without: frozenset[str] = frozenset()
) -> list[str]:
    """List what of the corpus is found in what a producer makes; each kind of text comes in one of the contexts."""
    found = []
    for number, (kind, row) in enumerate(KINDS.items()):
        if (usable and not row.usable) or kind in without:
            continue
        context = CONTEXTS[number % len(CONTEXTS)]
        place = folder / str(number)
        place.mkdir()
        written = producer(placed(row, context), place)
        assert written
        found += [f"{name}: {kind} as {context}" for secret in row.secrets if secret in written]
    return found


def test_the_corpus_is_wide():
    """At least sixty kinds in five contexts, and each text holds what is looked for."""
    assert len(KINDS) >= 60
    assert len(CONTEXTS) == 5
    for name, context, text, kind in every():
        flat = json.loads(text)["detail"] if context == "json" else text
        assert any(secret in flat for secret in kind.secrets), (name, context)


def test_no_kind_is_left_in_any_context():
    """Every secret, name and address is taken out wherever it is met; what must be usable loses its secrets."""
    left = []
    for name, context, text, kind in every():
        for policy in Policy:
            once = redact(text, policy, KNOWN)
            left += [
                (name, context, policy)
                for secret in kind.secrets
                if kind.usable or policy is Policy.FREE
                if secret in once
            ]
            assert redact(once, policy, KNOWN) == once, "what was cleaned is changed once more"
    assert left == []


@pytest.mark.parametrize("name", PRODUCERS)
def test_nothing_leaves_the_machine(name: str, tmp_path: Path):
    """No kind of secret, name or address is in any file that is made to be kept, sent or pasted."""
    assert _left(name, PRODUCERS[name], tmp_path, usable=False) == []


@pytest.mark.parametrize("name", LOCAL)
def test_no_secret_stays_in_what_is_used_here(name: str, tmp_path: Path):
    """What children print, and what lies in an environment, keeps paths and loses secrets."""
    assert _left(name, LOCAL[name], tmp_path, usable=True, without=NAMELESS) == []


def test_no_evidence_holds_any(tmp_path: Path):
    """What detection keeps of a tool's words, before anybody asks who uses the machine."""
    assert _left("evidence", _evidence, tmp_path, usable=False, without=NAMELESS) == []


@pytest.mark.process
def test_the_log_of_start_py_holds_nothing(tmp_path: Path):
    """What is printed while the assistant is being installed: all of the corpus in one child."""
    kinds = [(text, row) for kind, _context, text, row in every() if kind not in NAMELESS]
    written = _started("\n".join(text for text, _row in kinds), tmp_path)
    assert [secret for _text, row in kinds for secret in row.secrets if secret in written] == []
    assert len(written) > 10_000


def test_every_writer_of_a_file_is_known():
    """Somebody who writes a new file says here how it is made, or why nothing private can be in it."""
    found = writers_in(ROOT)
    outside = {  # what is handed out without a file of ours, or in lines
        "export/write.py:write_all, requirements",
        "verify/runner.py:read_line",
        "install/uv.py:call",
    }
    assert found == {*PRODUCERS, *LOCAL, *EXEMPT} - outside


def test_every_line_of_a_child_is_cleaned():
    """Who logs the output of a program cleans it first; other lines of the log are the assistant's own sentences."""
    loggers = {
        f"{path.relative_to(ROOT).as_posix()}:{function}"
        for path, function, call in calls_in(ROOT)
        if name_of(call) == "LogLine"
    }
    own = {"install/uv.py:log", "session/remediation.py:_change_packages", "session/steps.py:_verify"}
    children = {"install/uv.py:call", "session/remediation.py:run", "verify/runner.py:read_line"}
    assert loggers == own | children
    for place in children:
        file, function = place.split(":")
        text = (ROOT / file).read_text("utf-8")
        assert re.search(rf"def {function}\(.*?cleaned[,(]", text, re.DOTALL), place


@each("text", KEPT)
def test_what_is_no_secret_stays(text: str):
    """Requirements, hashes, addresses, versions, paths without a user, names of GPUs and places to fill in."""
    assert redact(text, Policy.FREE, KNOWN) == text
    assert redact(text, Policy.USABLE, KNOWN) == text


LABELS = (
    "password", "DB_PASSWORD", "Passwort", "Mot de passe", "contraseña", "пароль", "パスワード", "密码", "口令",
    "SMTP_PASS", "api key", "apiKey", "API_KEY", "client_secret", "HF_TOKEN", "license key", "令牌", "密钥", "clé API",
)  # fmt: skip
GIVEN = (
    "{label}={value}", "{label}: {value}", "{label}：{value}", "{label} = '{value}'",
    '"{label}": "{value}"', "{label}: >\n  {value}",
    "<x><{label}>{value}</{label}></x>", '{label} = """\n{value}', "{label}: str = '{value}'",
    "--x {label}={value} --y",
)  # fmt: skip


def test_a_label_in_any_language_takes_its_value_out():
    """Labels as settings, tools and people write them, in three cases, with each sign that may stand between."""
    value = "vK3-hunter2x"
    texts = [
        given.format(label=case(label), value=value)
        for label in LABELS
        for given in GIVEN
        for case in (str, str.lower, str.upper)
    ]
    assert [text for text in texts if value in redact(text)] == []


@each("text", ("your API key is 9f8e7d6c5b", "mein Passwort lautet hunter2x9", "密码是 123456", "令牌为 abcd1234efgh"))
def test_a_sentence_loses_its_secret(text: str):
    """People tell it in words, too."""
    assert redact(text).split()[-1].endswith("SECRET")


PLACES = {
    "/data/jane/anaconda3/bin/python": "jane", "/scratch/jane/run.py": "jane", "/gpfs/home1/jane/x": "jane",
    "/nfs/home/j/jane/x": "jane", r"D:\张伟\ComfyUI\main.py": "张伟", r"C:\用户\王芳\x": "王芳",
    r"\\server\jane$\x": "jane",
    r"C:\Utilisateurs\jane\x": "jane", "smb://server/jane/x": "jane", "-I/home/jane/x": "jane",
    r"C:\Users\user\OneDrive - Contoso Ltd\x": "Contoso", "Janes-MacBook-Pro:~ x": "Janes",
    "SLURM_JOB_USER=jane": "jane", "主机名: jane-pc": "jane", "注册的所有人:     张伟": "张伟",
    "SN: PF3ABC12": "PF3ABC12",
    "node17:1234:1300 [0] NCCL INFO Bootstrap : Using eth0:10.42.17.6<0>": "node17", "MAC a45e.60c1.2233": "60c1",
    "eth0:10.42.17.6<34567>": "10.42", "S-1-12-1-1234567890-1234567890-1234567890-1234567890": "1234567890",
}  # fmt: skip


def test_what_was_taken_out_is_no_label() -> None:
    """Evidence is cleaned where it is read and where it is written."""
    text = "directory SECRET abc123def"
    assert redact(text) == text


@each("text", PLACES)
def test_a_name_is_found_where_people_and_machines_stand(text: str):
    """On the disks of clusters and companies, in variables, in other languages, and in the lines of tools."""
    assert PLACES[text] not in redact(text)


def test_an_own_name_is_found_in_any_case():
    """Windows writes accounts in capitals, whatever the user typed."""
    assert "MARGARET" not in redact(rf"CORP\{USER.upper()} logged on", known=KNOWN)


def test_a_line_loses_its_secret_and_stays_a_line():
    """A requirement, an index and a command are read as before, or say which part to fill in."""
    lines = {
        f"own @ https://jdoe:x9@h.example/own.whl?sig=abc#sha256={'0' * 64}": (
            f"own @ https://h.example/own.whl?sig=SECRET#sha256={'0' * 64}"
        ),
        "https://jdoe:x9@h.example/simple": "https://h.example/simple",
        '{"token": "abcdef", "n": 1}': '{"token": "SECRET", "n": 1}',
        "own @ file:///home/jdoe/own.whl": "own @ file:///home/user/own.whl",
        "/home/jdoe/env/bin/python -m pip install torch": "/home/jdoe/env/bin/python -m pip install torch",
    }
    assert {line: redact(line, Policy.USABLE) for line in lines} == lines


@each("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_takes_its_sample_out(rule):
    """A rule's own sample, and the words without which it is not tried, belong to it."""
    assert rule.reason
    assert rule.apply(rule.sample, rule.sample.lower()) != rule.sample
    for _kind, _context, text, _row in every():
        assert rule.apply(text, text.lower()) == re.sub(rule.pattern, rule.instead, text)


def test_values_of_all_shapes_are_walked():
    """Dicts, lists, tuples, named tuples, records and messages keep their kind; numbers and enums are left alone."""
    secret = "password=hunter2x9"  # noqa: S105 - made up
    said = _("See {path} of {count}.", path=secret, count=3)
    value = {"a": [secret, 1, None, Phase.DONE], secret: (said, State(pasted=Pasted(text=secret), question=said))}
    cleaned = redact(value)
    assert "hunter2x9" not in repr(cleaned)
    assert cleaned["a"][1:] == [1, None, Phase.DONE]
    message, state = cleaned["password=SECRET"]
    assert (message.id, message.params) == (said.id, {"path": "password=SECRET", "count": 3})
    assert state == State(pasted=Pasted(text="password=SECRET"), question=message)


def test_versions_in_a_record_are_no_addresses():
    """A driver of Windows has four numbers as an address has, and stands in a field of its own."""
    machine = Machine(nvidia_driver="192.168.1.1", packages={"x": "192.168.1.1"}, container="192.168.1.1")
    assert redact(machine) == Machine(nvidia_driver="192.168.1.1", packages={"x": "192.168.1.1"}, container="0.0.0.0")  # noqa: S104


def test_a_key_over_many_lines_is_taken_out_line_by_line():
    """Its lines look like nothing; the text after it goes on, also where its end never came."""
    lines = Lines()
    key = ["a", "-----BEGIN PRIVATE KEY-----", "Pl4nted/key+line", "-----END PRIVATE KEY-----", "b"]
    assert list(map(lines, key)) == ["a", "SECRET", "SECRET", "SECRET", "b"]
    endless = list(map(Lines(), [key[1], *["x"] * 500]))
    assert endless[-1] == "x"


def test_long_texts_take_their_length():
    """Four times the text takes some four times the time, whatever it repeats."""
    for unit in (
        "a",
        "token=",
        "https://a:b",
        "-----BEGIN PRIVATE KEY-----\n",
        "/home/",
        "1.",
        "user@",
        "password ",
        "\\",
        "eyJa.",
    ):
        short, long = (min(_seconds(unit * (size // len(unit))) for _try in range(2)) for size in (20_000, 80_000))
        assert long < max(10 * short, 0.1), unit


def _seconds(text: str) -> float:
    begun = time.process_time()
    redact(text, known=KNOWN)
    return time.process_time() - begun
