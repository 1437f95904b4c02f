"""The door to the machine: questions and their raw answers, whether the live machine answers or a recording.

What a recording keeps of each answer, how private data are removed from it, and how it is read is here, too.
"""

from __future__ import annotations

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Answer, Exchange, Recording
from assistant.model.record import from_json, replace, to_json
from assistant.privacy import PrivateNames, redact


class Host(ABC):
    """A machine to which questions can be put. Asking raises nothing: an answer's status says what failed."""

    replayed: bool = False

    @abstractmethod
    def ask(self, kind: str, *arguments: str) -> Answer:
        """Return the answer to one question; raise nothing: its status says what failed.

        `kind` is the name of a method below that takes the same arguments, or one of the following: `platform`,
        `server`, `memory`, `disk PATH`, `folder PATH`, `packages`, `kernels`, `nvml`, `dxgi`, `identity` are answered
        by a JSON object as the answer's text; `pci`, `groups`, `file_version PATH` by plain text.
        """

    def run(self, *argv: str) -> Answer:
        """Run a read-only command in English, for 8 seconds at most; return its output: stdout, then stderr."""
        return self.ask("run", *argv)

    def read(self, path: str) -> Answer:
        """Return the text of a small file (1 MiB at most, undecodable bytes replaced)."""
        return self.ask("read", path)

    def names(self, path: str) -> Answer:
        """Return the names in a directory, one per line, sorted."""
        return self.ask("names", path)

    def link(self, path: str) -> Answer:
        """Return the real path of a path, with all links resolved."""
        return self.ask("link", path)

    def access(self, path: str) -> Answer:
        """Return whether this user may read and write a path, as an answer's status: "ok", "denied" or "missing"."""
        return self.ask("access", path)

    def which(self, name: str) -> Answer:
        """Return the path of an executable on PATH."""
        return self.ask("which", name)

    def variable(self, name: str) -> Answer:
        """Return the value of an environment variable."""
        return self.ask("variable", name)

    def registry(self, key: str) -> Answer:
        """Return a Windows registry key with its direct subkeys, as JSON `{"values": {…}, "keys": {name: {…}}}`."""
        return self.ask("registry", key)

    def facts(self, kind: str, *arguments: str) -> dict[str, object]:
        """Return the JSON object that answers a question, as a dict; {} if the answer's status is not "ok"."""
        answer = self.ask(kind, *arguments)
        return msgspec.json.decode(answer.text, type=dict[str, object]) if answer else {}


class RecordingHost(Host):
    """Passes each question on to another host once, and keeps the answer for when it is asked again."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._answers: dict[tuple[str, ...], Answer] = {}
        self._lock = threading.Lock()
        self.replayed = host.replayed

    def ask_unrecorded(self, kind: str, *arguments: str) -> dict[str, object]:
        """Return facts from the other host without recording them."""
        return self._host.facts(kind, *arguments)

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Return the answer recorded for a question; the first time, ask the other host and record its answer."""
        question = (kind, *arguments)
        if question not in self._answers:
            answer = self._host.ask(kind, *arguments)
            with self._lock:
                self._answers.setdefault(question, answer)
        return self._answers[question]

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return all questions that were asked so far with their answers, sorted by question."""
        return tuple(Exchange(ask=question, answer=self._answers[question]) for question in sorted(self._answers))


class ReplayHost(Host):
    """Answers from a recording; a question that is not in it has the status "unrecorded"."""

    replayed = True

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._answers = {said.ask: said.answer for said in recording.said}

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Return the recorded answer to a question; "unrecorded" if there is none."""
        return self._answers.get((kind, *arguments), Answer(status="unrecorded"))


Keys = Mapping[str, "Keys | None"]  # of a JSON object, "*" for any; None keeps the value, a mapping goes on inside


def _keep_values(names: str) -> Keys:
    """Return `Keys` that keep the values under some names, which a space separates."""
    return dict.fromkeys(names.split())


_ADAPTER = _keep_values(
    "DriverDate DriverDesc DriverVersion HardwareInformation.qwMemorySize MatchingDeviceId ProviderName"
)
_WINDOWS = _keep_values(
    "CurrentBuild CurrentBuildNumber CurrentVersion DisplayVersion ProductName ReleaseId SystemRoot"
)
_PLATFORM = _keep_values(
    "system release version machine libc libc_version mac_version python implementation bits free_threaded"
    " executable base_executable prefix base_prefix build"
)
_NVML = {
    "driver": None,
    "cuda": None,
    "devices": _keep_values("name bus pci_id memory compute_capability"),
}
_DXGI = {"adapters": _keep_values("name pci_id revision memory shared_memory software remote d3d12")}
_ENVIRONMENT = _keep_values("NUMBER_OF_PROCESSORS OS PROCESSOR_ARCHITECTURE")
_RUNTIMES = _keep_values("Installed Major Minor Version")
# Answers that are JSON objects: the kind of the question, the pattern that its argument matches whole, what is kept.
_OBJECTS: tuple[tuple[str, str, Keys], ...] = (
    ("platform", "", _PLATFORM),
    ("server", "", _keep_values("executable")),
    ("memory", "", _keep_values("total available")),
    ("disk", ".*", _keep_values("free total")),
    ("packages", "", {"*": None}),
    ("kernels", "", {"*": _keep_values("program language works")}),
    ("nvml", "", _NVML),
    ("dxgi", "", _DXGI),
    ("registry", r".*\\Windows NT\\CurrentVersion", {"values": _WINDOWS, "keys": {}}),
    ("registry", r".*\\Control\\Class\\\{[\w-]+\}", {"values": _keep_values("Class"), "keys": {"*": _ADAPTER}}),
    ("registry", r".*\\Session Manager\\Environment", {"values": _ENVIRONMENT, "keys": {}}),
    ("registry", r".*\\VC\\Runtimes", {"values": {}, "keys": {"*": _RUNTIMES}}),
)
_NUMBER = r"[\w.+:-]{1,80}"
_PATH = r"[^\n]{1,400}"
# Answers that are text: the kind of the question, the pattern of its argument, and that of the lines that are kept.
# Reports of programs that are read as they are keep every line; "(?!)" keeps none.
TEXTS: tuple[tuple[str, str, str], ...] = (
    ("access", ".*", "(?!)"),
    ("link", ".*", _PATH),
    ("which", ".*", _PATH),
    ("file_version", ".*", _NUMBER),
    ("groups", "", "render|video|kfd|root|wheel|sudo|adm|docker"),
    ("names", "/dev/dri", r"(?:card|renderD)\d+|by-path"),
    ("names", "/lib", r"ld-musl-[\w.-]+|libc\.musl-[\w.-]+|apk|firmware"),
    ("names", ".*/topology/nodes", r"\d+"),
    ("pci", "", r"(?:DRIVER|MODALIAS|PCI_CLASS|PCI_ID|PCI_SLOT_NAME|PCI_SUBSYS_ID|REVISION)=.*|"),
    (
        "read",
        "/etc/os-release",
        r"(?:(?:PRETTY_)?NAME|(?:VARIANT_|VERSION_|BUILD_)?ID|ID_LIKE|VERSION|VERSION_CODENAME)=.*",
    ),
    ("read", "/proc/meminfo", r"Mem(?:Total|Free|Available):.*"),
    ("read", ".*/properties", r"(?!unique_id)[\w ]+"),
    ("read", "/proc/driver/nvidia/version|/etc/nv_tegra_release|/proc/device-tree/model", ".*"),
    ("read", "/sys/firmware/efi/efivars/SecureBoot-.*", ".*"),
    ("read", r".*/(?:version|memory\.max|memory\.limit_in_bytes|mem_info_vram_total)", _NUMBER),
    ("run", r"(?:/usr/lib/wsl/lib/)?nvidia-smi|rocminfo|sw_vers|/lib/ld-musl-[\w.-]+", ".*"),
    ("run", "system_profiler -json SPDisplaysDataType|amd-smi static .*|xpu-smi discovery .*", ".*"),
    ("run", "sysctl .*", r"(?:hw|sysctl|machdep)\.[\w.]+: .*"),
    ("run", "reg.exe query .*", rf"HKEY_.*|\s+(?:{'|'.join(map(re.escape, (*_ADAPTER, *_WINDOWS)))})\s.*|\s*"),
    ("variable", "(?:CUDA|HIP|ROCR|GPU|HSA|ONEAPI|ZE|DML|PYTORCH|NVIDIA|INFERENCE)_[A-Z_]+|container", ".*"),
    ("variable", "KUBERNETES_SERVICE_HOST", "(?!)"),
)


def reduce_exchange(exchange: Exchange) -> Exchange | None:
    """Return an exchange whose answer keeps only what parsers read; None for a question that is in no table here.

    Kept are the keys that `_OBJECTS` has for the question, or the lines that match its pattern in `TEXTS`; of an object
    that cannot be decoded, nothing. The answer's status stays.
    """
    kind, argument, answer = exchange.ask[0], " ".join(exchange.ask[1:]), exchange.answer
    for expected, pattern, keys in _OBJECTS:
        if kind == expected and re.fullmatch(pattern, argument):
            text = "{}" if answer else ""
            with suppress(msgspec.DecodeError):
                text = (
                    msgspec.json.encode(_keep_keys(msgspec.json.decode(answer.text), keys)).decode() if answer else ""
                )
            return replace(exchange, answer=replace(answer, text=text))
    for expected, pattern, line in TEXTS:
        if kind == expected and re.fullmatch(pattern, argument):
            lines = answer.text.splitlines(keepends=True)
            kept_lines = [text for text in lines if re.fullmatch(line, text.rstrip("\r\n"))]
            return replace(exchange, answer=replace(answer, text="".join(kept_lines)))
    return None


def _keep_keys(value: object, keys: Keys | None) -> object:
    """Return decoded JSON with only the objects' `keys`, also inside lists; `keys` of None keeps all of it.

    Where `keys` are given, what is neither an object nor a list becomes None.
    """
    if keys is None:
        return value
    if isinstance(value, list):
        return [_keep_keys(item, keys) for item in value]
    if not isinstance(value, dict):
        return None
    expected = {name: name if name in keys else "*" for name in value}
    return {name: _keep_keys(item, keys[expected[name]]) for name, item in value.items() if expected[name] in keys}


def read_recording(text: str, what: str) -> Recording:
    """Return the recording in a text; raise `BadInput` for another schema, a cut-off text or no answers.

    `what` is its name in the error.
    """
    recording = from_json(text, Recording, what)
    if not recording.said:
        raise BadInput(
            _("{file} contains no recorded answers.", file=what),
            hint=_(
                "`assistant detect --record FILE` makes a recording; `assistant plan --machine` takes a description."
            ),
        )
    return recording


def write_recording(host: RecordingHost, label: str) -> str:
    """Return, as JSON, a recording of all that a host was asked so far; no file is written.

    `label` names the machine for people. Names of users and hosts, serials, addresses and secrets are removed. Of each
    answer only what the parsers read is kept; questions that no parser asks are left out.
    """
    identity = host.ask_unrecorded("identity")
    exchanges = tuple(kept for exchange in host.exchanges() if (kept := reduce_exchange(exchange)) is not None)
    said = redact(exchanges, known=PrivateNames.of(identity, os.environ))
    text = to_json(Recording(label=label, date=str(identity.get("date", "")), said=said))
    return text.replace('{"ask"', '\n{"ask"') + "\n"  # one line per question; inside a string the quote is escaped
