"""Every command into a pipe under a Windows Python, by code page and language."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from windows.conftest import EXPORTED, TARGET
from windows.wine import LOCALES, Done, Wine

pytestmark = pytest.mark.timeout(2400)

REPLAYED = "linux-arch-rx6700xt-directml"
LOG = r"C:\日志\失败.log"
TEXT = "RuntimeError: Found no NVIDIA driver on your system. 请检查 NVIDIA 驱动程序\n"
COMMANDS = (
    ("--help",),
    ("setup", "--help"),
    ("detect",),
    ("detect", "--json"),
    ("plan",),
    ("plan", "--why", "--replay", REPLAYED),
    ("plan", "--json", "--replay", REPLAYED),
    ("install", "--dry-run", "--backend", "cpu", "--target", TARGET),
    ("verify", "--target", TARGET),
    ("doctor",),
    ("doctor", "--json"),
    ("diagnose", LOG),
    ("diagnose", "--json", LOG),
    ("envs",),
    ("export", "--list"),
    ("check", rf"{EXPORTED}\assistant.toml"),
    ("recover",),
    ("recipes", "list"),
    ("fit", "--help"),
    ("labs", "list"),
    ("onnx", "check", r"C:\日志\none.onnx"),
)


@pytest.mark.usefixtures("installed")
def test_no_command_crashes_in_a_pipe(
    windows: Wine, assistant: Callable[..., Done], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of them says what it has to say, in either language, whatever the code page can spell."""
    log = windows.path(LOG)
    log.parent.mkdir()
    log.write_text(TEXT, encoding="gbk")
    fault = windows.path(rf"C:\users\{windows.user}\AppData\Local\pytorch-setup-assistant\fault.log")
    fault.unlink(missing_ok=True)  # of another test
    for kind in ("lab", "onnx"):  # made by one, so that the others do not wait for it
        assert assistant(kind, "--help").code == 0

    def crash(case: tuple[int, str, tuple[str, ...]]) -> str:
        code_page, language, words = case
        done = assistant("--lang", language, *words, code_page=code_page)
        fine = done.code in {0, 1, 2, 3} and "Error: " not in done.err and not fault.exists() and done.out + done.err
        return "" if fine else f"{code_page} {language} {' '.join(words)}: {done}"

    cases = [(page, language, words) for words in COMMANDS for page in LOCALES for language in ("en", "zh_CN")]
    with ThreadPoolExecutor(2) as pool:
        crashes = [told for told in pool.map(crash, cases) if told]
    with capsys.disabled():
        print(f"\n{len(cases)} commands, {len(crashes)} crashes", end="")
    assert crashes == []
