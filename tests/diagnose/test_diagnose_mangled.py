"""Logs that went through browsers, terminals, editors and chats on their way name the same causes."""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnose import diagnose
from assistant.diagnose.log import normalized_text
from assistant.model.machine import Machine
from assistant.model.record import from_plain

CASES = [json.loads(line) for line in Path(__file__).with_name("cases.jsonl").read_text(encoding="utf-8").splitlines()]


def every_line(change: Callable[[str], str]) -> Callable[[str], str]:
    """Change a log line by line."""
    return lambda log: "\n".join(map(change, log.split("\n")))


def broken(width: int, indent: str = "") -> Callable[[str], str]:
    """Break lines between words, as uv and editors do."""
    lines = textwrap.TextWrapper(width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return every_line(lines.fill)


def cut(width: int) -> Callable[[str], str]:
    """Break lines wherever a terminal ends."""
    return every_line(lambda line: "\n".join(line[at : at + width] for at in range(0, len(line), width)) or "")


MANGLED: dict[str, Callable[[str], str]] = {
    "coloured words": lambda log: " ".join(f"\x1b[31m{word}\x1b[39m" for word in log.split(" ")),
    "a web page's spaces": lambda log: log.replace(" ", "\u00a0"),
    "a web page's entities": html.escape,
    "an editor's quotes": lambda log: log.replace("'", "\u2019").replace('"', "\u201d"),
    "a Chinese keyboard's marks": lambda log: log.replace(":", "\uff1a"),
    "a mail's quotation": lambda log: every_line("> {}".format)(broken(78)(log)),
    "a frame": every_line(lambda line: f"│ {line.ljust(96)} │"),
    "a build's clock": every_line("2026-01-02T03:04:05.1234567Z {}".format),
    "a container's name": every_line("webui-1  | {}".format),
    "narrow lines": broken(80, "      "),
    "a narrow terminal": cut(100),
}


@pytest.mark.parametrize("mangle", MANGLED.values(), ids=MANGLED)
def test_a_mangled_log_names_the_same_cause(mangle: Callable[[str], str]) -> None:
    """Of a hundred cases at most one is lost, whatever the log went through."""
    lost = []
    for case in CASES:
        found = diagnose(mangle(case["log"]), from_plain(case["machine"], Machine, "the case"))
        if [best.key for best in found[:1]] != [case["key"]]:
            lost.append(case)
    assert len(lost) <= 0.01 * len(CASES), lost


PIECES = [
    "\n",
    " ",
    "\t",
    "| ",
    "2026-01-02T03:04:05Z",
    "a-1  |",
    "&lt;",
    "is_available() is",
    "False",
    "已杀死",
    "exit code",
    "139",
]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=40).map("".join))
def test_what_rules_read_has_the_lines_of_the_log(text: str) -> None:
    """Whatever is taken away or translated, each line stays in its place, or another one would be shown as evidence."""
    assert normalized_text(text).count("\n") == text.count("\n")


def test_the_line_of_a_broken_message_is_shown_as_it_stands() -> None:
    """The evidence is the beginning of the message in the log, not what was put together to find it."""
    log = "loading\nOSError: libd3d12.so: cannot open shared\nobject file: No such file or directory\ndone"
    best = diagnose(log, Machine(os="linux", wsl=False))[0]
    assert best.key == "directml-on-native-linux"
    assert "OSError: libd3d12.so: cannot open shared" in best.evidence


@pytest.mark.parametrize(
    ("log", "key"),
    [
        ("ImportError: DLL load failed while importing _C: Não foi possível encontrar o módulo especificado.", "vc"),
        ("libomp.so.5: kann die Shared-Object-Datei nicht öffnen: Datei oder Verzeichnis nicht gefunden", "missing"),
        ("Unable to open /dev/kfd read-write: 权限不够", "kfd"),
        ("На устройстве не осталось свободного места", "disk"),
    ],
)
def test_systems_speak_many_languages(log: str, key: str) -> None:
    """What Windows and the C library say in other languages is known by its English."""
    assert diagnose(log)[0].key.startswith(key)


@pytest.mark.parametrize(
    ("log", "key"),
    [
        ("6.62 GiB already allocated; 0 bytes free; 6.89 GiB reserved in total by PyTorch)", "oom"),
        ("To support both 1.x and 2.x\nversions of NumPy, modules must be compiled with NumPy 2.0.", "numpy2-abi"),
        (
            "to install a PyTorch version that has been compiled with your version of the CUDA driver.",
            "nvidia-driver-too",
        ),
        ("If you want to use the RTX 5090 GPU with PyTorch, please check the instructions", "sm-not-in-wheel"),
        ("set the environment variable `PYTORCH_ENABLE_MPS_FALLBACK=1` to use the CPU as a fallback", "mps-op-missing"),
        (
            "or OS distribution provider. You can override this by passing --break-system-packages.",
            "externally-managed",
        ),
    ],
)
def test_the_rest_of_a_message_is_enough(log: str, key: str) -> None:
    """What was pasted without its beginning is known by the sentences that follow."""
    assert diagnose(log)[0].key.startswith(key)
