"""A recording gives away neither who nor where, and still replays to the same machine."""

from __future__ import annotations

import json

import pytest
from tables import each

from assistant.detect import detect
from assistant.host.base import Host, RecordingHost, ReplayHost, read_recording, write_recording
from assistant.host.live import LiveHost
from assistant.machines import load
from assistant.model.errors import BadInput
from assistant.model.machine import Answer
from assistant.model.record import to_json
from assistant.privacy import redact

PLANTED = {
    "user": "margaret",
    "host": "workbench-17",
    "home": "/home/margaret/project",
    "windows home": r"C:\Users\Margaret Hamilton\AppData",
    "mac home": "/Users/mhamilton/Library",
    "serial": "Serial Number                         : 1650522003820",
    "system serial": "Serial Number (system): C02XK0ABJG5H",
    "uuid": "GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16",
    "amd uuid": "Uuid:                    GPU-8e1a5a8c5b2f4d11",
    "unique id": "unique_id 1234567890123456789",
    "address": "inet 192.168.17.23 brd",
    "address 6": "inet6 fe80::1ff:fe23:4567:890a scope link",
    "mac address": "link/ether 52:54:00:12:34:56",
    "mail": "built by margaret@example.org",
    "token": "HF_TOKEN=hf_abcdefghijklmnopqrstuvwx",
    "github token": "ghp_0123456789abcdefghijABCDEFGHIJ",
    "password": "password: correcthorse",
    "credentials in an address": "http://margaret:s3cr3t@proxy.example.org:8080",
}
SECRETS = (
    "argaret", "amilton", "workbench-17", "1650522003820", "C02XK0ABJG5H", "7fdaf0a5", "8e1a5a8c5b2f4d11",
    "1234567890123456789", "192.168.17.23", "fe23:4567", "52:54:00:12:34:56", "hf_abcdef", "ghp_0123", "correcthorse",
    "s3cr3t", "mhamilton",
)  # fmt: skip


class Planted(Host):
    """A machine whose every answer holds private things."""

    def __init__(self, answers):
        self.answers = answers

    def ask(self, kind, *arguments):
        """Answer as planted."""
        if kind == "identity":
            return Answer(text=json.dumps({"users": ["margaret"], "hosts": ["workbench-17"], "date": "2026-11-21"}))
        return self.answers.get((kind, *arguments), Answer(status="missing"))


def test_nothing_planted_is_found_in_a_recording():
    """Names, home paths, serials, UUIDs, addresses, tokens: each is planted in an answer, and none is written."""
    host = RecordingHost(Planted({("run", "nvidia-smi"): Answer(text="\n".join(PLANTED.values()))}))
    assert host.run("nvidia-smi")
    host.read("/home/margaret/.config/file")
    written = write_recording(host, "planted")
    assert "Serial Number" in written
    assert [secret for secret in SECRETS if secret in written] == []


@each(
    "question",
    [
        ("run", "env"),
        ("run", "reg.exe", "export", "HKCU"),
        ("read", "/etc/passwd"),
        ("read", "/home/margaret/version"),
        ("names", "/home"),
        ("variable", "AWS_SECRET_ACCESS_KEY"),
        ("registry", "HKCU\\Software"),
        ("something new",),
    ],
)
def test_an_answer_of_an_unknown_kind_is_not_written(question):
    """What no parser is known to read is left out, whatever it looks like."""
    host = RecordingHost(Planted({question: Answer(text="plain words")}))
    host.ask(*question)
    host.ask("platform")
    assert "plain words" not in write_recording(host, "planted")


def test_of_a_known_kind_only_what_is_read_is_written():
    """The command line of the Jupyter server holds its token; other keys, lines and groups are nobody's business."""
    answers = {
        ("server",): Answer(text='{"executable": "/usr/bin/python3", "command": ["jupyter", "plain words"]}'),
        ("read", "/etc/os-release"): Answer(text="ID=debian\nLOGO=plain words\n"),
        ("groups",): Answer(text="render\nplain words"),
        ("platform",): Answer(text='["plain words"]'),
        ("nvml",): Answer(text="plain words"),
    }
    host = RecordingHost(Planted(answers))
    for question in answers:
        host.ask(*question)
    written = write_recording(host, "planted")
    assert "plain words" not in written
    assert all(kept in written for kept in ("/usr/bin/python3", "ID=debian", "render"))


@each("name", ["linux-arch-rx6700xt-directml", "wsl-ubuntu2404-rx7900xtx", "windows11-rtx3060", "macos14-m1"])
def test_what_was_redacted_replays_to_the_same_machine(name):
    """A recording made of a machine with private names gives that machine's JSON, byte for byte."""
    answers = {said.ask: said.answer for said in load(name).said}
    answers["variable", "CUDA_VISIBLE_DEVICES"] = Answer(text=PLANTED["uuid"])
    answers["read", "/sys/firmware/serial"] = Answer(text=PLANTED["serial"])
    host = RecordingHost(Planted(answers))
    live = detect(host)
    written = write_recording(host, name)
    replayed = detect(ReplayHost(read_recording(written, name)))
    assert to_json(replayed.machine) == to_json(live.machine)
    assert "7fdaf0a5" not in written


@pytest.mark.process
def test_this_machine_replays_byte_for_byte():
    """Recording and replaying the machine at hand gives the same JSON."""
    host = RecordingHost(LiveHost())
    live = detect(host)
    written = write_recording(host, "here")
    assert to_json(detect(ReplayHost(read_recording(written, "here"))).machine) == to_json(live.machine)
    assert write_recording(host, "here") == written


def test_default_account_names_are_left_alone():
    """An account called nvidia, as on Jetson boards, does not blot out the driver's own name."""

    class Jetson(Planted):
        """A board whose account and host have the names it was sold with."""

        def ask(self, kind, *arguments):
            """Answer with default names."""
            if kind == "identity":
                return Answer(text='{"users": ["nvidia"], "hosts": ["ubuntu"], "date": "2026-11-21"}')
            return super().ask(kind, *arguments)

    host = RecordingHost(Jetson({("run", "rocminfo"): Answer(text="nvidia driver on ubuntu, /home/nvidia/x")}))
    host.run("rocminfo")
    assert "nvidia driver on ubuntu, /home/user/x" in write_recording(host, "board")


@each(
    "text",
    [
        '"DriverVersion":"31.0.112.0"',
        "    DriverVersion    REG_SZ    31.0.112.0",
        "0000:01:00.0 00000000:01:00.0",
        "6.6.87.2-microsoft-standard-WSL2",
        "NVIDIA GeForce RTX 4090, gfx90a:sramecc+:xnack-",
        "Python 3.12.3 (main) [GCC 13.3.0]",
    ],
)
def test_technical_text_is_left_alone(text):
    """Driver versions of four numbers, PCI addresses, kernel releases and names of GPUs are no secrets."""
    assert redact(text) == text


@each(
    ("text", "reason"),
    [
        ("", "truncated"),
        ('{"schema": 1, "said": [{"ask": ["pci"]', "truncated"),
        ('{"schema": 2}', "written for another version"),
        ('{"schema": 1, "said": "x"}', "Expected `array`"),
        ('{"schema": 1, "shape": 1}', "unknown field `shape`"),
        ("<html>", "malformed"),
        ("[" * 100_000, ""),
        (b"\xff\xfe\x00", ""),
    ],
)
def test_a_bad_recording_is_refused_in_one_sentence(text, reason):
    """A newer schema, a cut-off file, a wrong type, an unknown key and noise each name what is wrong."""
    with pytest.raises(BadInput) as raised:
        read_recording(text, "machine.json")
    assert str(raised.value.message).startswith("machine.json ")
    assert reason in str(raised.value.message)
