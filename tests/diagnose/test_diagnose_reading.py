"""Logs as they come: other encodings, colours, binary files, very long ones."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnose import diagnose, load_rules, log, read_log
from assistant.model.errors import BadInput
from assistant.model.machine import Machine
from assistant.parsers import text_pieces
from assistant.session import diagnosis

LINE = (
    "OSError: [WinError 126] The specified module could not be found. "
    'Error loading "C:\\v\\fbgemm.dll" or one of its dependencies.'
)


@pytest.mark.parametrize(
    "data",
    [
        LINE.encode("utf-16"),
        LINE.encode("utf-16-le"),
        LINE.encode("utf-16-be"),
        LINE.encode("utf-8-sig"),
        ("正在加载\r\n" + LINE).encode("gb18030"),
        b"gr\xf6\xdfer als erlaubt\n" + LINE.encode(),
        "已完成\n".encode() + "找不到\n".encode("gbk") + LINE.encode(),
        f"\x1b[31m{LINE[:40]}\x1b[0m\x1b[1;33m{LINE[40:]}\x1b[0m".encode(),
        f"downloading 1%\rdownloading 99%\r{LINE}\r\n".encode(),
        b"plain\n" + LINE.encode("utf-16-le"),
        LINE.replace("The specified module could not be found.", "找不到指定的模块。").encode("gb18030"),
    ],
)
def test_a_log_is_read_in_any_encoding(data: bytes) -> None:
    """PowerShell's UTF-16, Chinese and Western code pages, colours and progress bars do not hide the line."""
    assert diagnose(data)[0].key == "libomp140-missing"


@pytest.mark.parametrize(
    ("own", "text", "encoding"),
    [
        ("cp932", "エラー: 指定されたモジュールが見つかりません。", "cp932"),
        ("cp949", "오류: 지정된 모듈을 찾을 수 없습니다.", "cp949"),
        ("cp1252", "Größer als erlaubt, dépassé", "cp1252"),
        ("cp1252", "错误：找不到指定的模块。", "gbk"),
        ("cp1251", "Ошибка: файл не найден", "utf-8"),
        ("cp936", "错误：找不到指定的模块，“朱镕基”", "gbk"),
        ("UTF-8", "错误：找不到指定的模块，“朱镕基”", "gbk"),
    ],
)
def test_the_code_page_of_this_computer_counts(
    own: str, text: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its programs have written is read, and so is what came from China."""
    monkeypatch.setattr("locale.getencoding", lambda: own)
    assert "".join(text_pieces(text.encode(encoding))) == text


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_may_be_chinese(order: str) -> None:
    """Where few letters are ASCII, too; ASCII to which UTF-16 was appended is none."""
    text = "# 这个项目需要的软件包，由我自己手工整理\r\nnumpy\r\n"
    assert "".join(text_pieces(text.encode(order))) == text.replace("\r\n", "\n")
    mixed = b"numpy\r\nscipy\r\ntorch\r\npandas\r\n" + "timm\r\n".encode(order)
    assert "".join(text_pieces(mixed)).split() == ["numpy", "scipy", "torch", "pandas", "timm"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF" + bytes(200),
        b"MZ\x90\x00" + bytes(range(256)),
        b"PK\x03\x04abc",
        zlib.compress(" ".join(map(str, range(5000))).encode()),
        gzip.compress(b"some text"),
    ],
    ids=["elf", "exe", "zip", "noise", "gzip"],
)
def test_a_binary_file_is_refused_in_one_sentence(data: bytes) -> None:
    """It is no log, and the sentence says so."""
    with pytest.raises(BadInput, match="binary") as refusal:
        read_log(data)
    assert refusal.value.hint


@pytest.mark.parametrize("data", [b"", b"\n\n", b" ", "…".encode()])
def test_an_empty_log_has_no_cause(data: bytes) -> None:
    """Nothing is found in nothing."""
    assert diagnose(data) == ()


@pytest.mark.parametrize("filler", ["A", "9", ".", '"', "/a-b.c:1 "])
def test_of_an_endless_line_the_ends_are_read(filler: str) -> None:
    """A megabyte on one line, or on lines too long for people, is cut before rules search it; its ends are kept."""
    words = filler * (10**6 // len(filler))
    for text in (f"{LINE} {words}", f"{words} {LINE}", "\n".join([words[:20000]] * 50 + [LINE])):
        found = read_log(text)
        assert len(found.text) < 300_000
        assert diagnose(found)[0].key == "libomp140-missing"


def test_blank_lines_by_the_million_count_and_cost_nothing() -> None:
    """The line that failed keeps its number below millions of line breaks."""
    number = next(number for number, line in read_log(b"\n" * 9_000_000 + LINE.encode()).lines if line)
    assert number == 9_000_001


def test_the_failing_line_of_a_long_log_is_found_with_its_number() -> None:
    """One line among two hundred thousand others is found, and its number is the one in the file."""
    lines = [f"2026-11-21 12:00:{n % 60:02} INFO step {n} loss {n / 7:.3f} time {n}ms" for n in range(200_000)]
    lines[123_456] = LINE
    log = read_log("\n".join(lines).encode())
    assert diagnose(log)[0].key == "libomp140-missing"
    assert (123_457, LINE) in log.lines
    assert len(log.lines) < 2000


@pytest.mark.parametrize("fast", [True, False], ids=["aho-corasick", "plain"])
def test_every_text_of_a_rule_is_seen_in_a_long_log(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    """Whatever a pattern of a sign holds literally keeps its line: in a word, or at its beginning if it is brief."""
    if not fast:
        monkeypatch.setattr(log, "find_spec", lambda _name: None)
    texts = sorted(load_rules().marks, key=lambda text: (len(text), text))
    inside = [("_" if len(text) <= log.BRIEF else "") + text for text in texts]
    planted = [f"<{'a' * (number % 40)}{text}_{'z' * (number // 40)}>" for number, text in enumerate(inside)]
    lines = [line for text in planted for line in (*[f"{len(text):050}"] * 25, text)]
    assert set(planted) <= {line for _number, line in read_log("\n".join(lines).encode()).lines}


def test_error_numbers_are_told_apart_in_a_long_log() -> None:
    """Other digits do not make a line new, those of the text that is looked for do."""
    prefiltered = log.Prefilter(["0x80070057", "0x80004005"])
    assert prefiltered.lines("at 1: 0x80070057\nat 2: 0x80070057\nat 3: 0x80004005") == {0, 2}


def test_a_brief_text_has_to_begin_a_word() -> None:
    """Three letters stand in any long word and in any encoded picture; they count in words that they begin."""
    prefiltered = log.Prefilter(["gpu", "fail"])
    lines = ["xxgpuxx", "no gpus", "gpuxyzwq", "failure", "rtx_gpu0", "onfail"]
    assert prefiltered.lines("\n".join(lines)) == {1, 3, 4}


def test_the_cause_is_found_among_many_other_errors() -> None:
    """A hundred thousand lines of another trouble do not push it out."""
    noise = [f"ERROR worker {n} could not open file {n}: not found, request failed" for n in range(100_000)]
    log = "\n".join([*noise[:50_000], LINE, *noise[50_000:]])
    assert diagnose(log.encode())[0].key == "libomp140-missing"


def test_one_endless_line_is_read() -> None:
    """A log without a line break is cut into pieces, not refused."""
    assert diagnose((b"x" * 3_000_000) + b"\n" + LINE.encode())[0].key == "libomp140-missing"


def test_a_huge_log_keeps_what_the_installers_say() -> None:
    """The lines that tell an address and what it lacks survive when a log of megabytes is cut down."""
    noise = "".join(f"step {n}: loss {n / 7:.6f} of the training goes down and down\n" for n in range(30_000))
    index = "https://download.pytorch.org/whl/cuda128"
    said = f"Looking in indexes: {index}\nERROR: No matching distribution found for torch\n"
    assert [one.key for one in diagnose(noise + said + noise, Machine(os="linux", python="3.12"))] == ["index-wrong"]


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
    "139",
]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=40).map("".join))
def test_what_rules_read_has_the_lines_of_the_log(text: str) -> None:
    """Whatever is taken away or translated, each line stays in its place, or another one would be shown as evidence."""
    assert log.normalized_text(text).count("\n") == text.count("\n")


def test_a_pasted_log_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On its way from the paste to the causes, its reports and what it mentions are each read one time."""
    readings: list[str] = []

    def counted(name: str, reader: Callable[[str], object]) -> Callable[[str], object]:
        return lambda text: readings.append(name) or reader(text)

    monkeypatch.setattr(diagnosis, "read_report", counted("reports", diagnosis.read_report))
    monkeypatch.setattr(log, "read_mentioned", counted("mentions", log.read_mentioned))
    read = read_log("PyTorch version: 2.5.1+cpu\nOS: Windows 11\nPython version: 3.12\nIs debug build: False\n" + LINE)
    machine = diagnosis.machine_of_log(read, Machine(), "unknown")
    assert diagnosis.find_causes(read, machine)[0].key == "libomp140-missing"
    assert sorted(readings) == ["mentions", "reports"]
