"""The whole journey under a Windows Python: the first start, the setup, and what a person does with it afterwards."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest
from windows.conftest import EXPORTED, TARGET
from windows.wine import PYTHON, Done, Wine

pytestmark = pytest.mark.timeout(1200)

# Started as a kernel by Jupyter's own client; prints what the kernel says of itself.
KERNEL = """\
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name=sys.argv[1], startup_timeout=120)
said = []
code = "import sys, torch; print(ascii(sys.executable), torch.__version__, torch.ones(3).sum().item())"
heard = lambda message: said.append(message["content"].get("text", ""))
client.execute_interactive(code, timeout=120, output_hook=heard)
client.stop_channels()
manager.shutdown_kernel(now=True)
print(*said)
"""
HOLD = "import sys; file = open(sys.argv[1], 'rb'); print('held', flush=True); sys.stdin.read()"
REPORT = "import torch; print(torch.__version__, torch.linalg.solve(torch.eye(2), torch.ones(2)).tolist())"


def test_first_start_in_a_chinese_folder(assistant: Callable[..., Done], windows: Wine, project: str) -> None:
    """An unpacked copy makes its private environment by itself and answers in JSON what machine it is."""
    shutil.rmtree(windows.path(project) / ".assistant", ignore_errors=True)  # of other files' tests
    done = assistant("detect", "--json")
    assert done.code == 0, done
    machine = json.loads(done.out)
    assert (machine["os"], machine["arch"], machine["python"]) == ("windows", "x86_64", "3.11.9")
    assert machine["os_version"].startswith("Windows 10")
    assert project in done.err
    assert len(list(windows.path(project).glob(".assistant/python*/stamp"))) == 1


def test_setup(installed: Done, windows: Wine) -> None:
    """All six steps end well, in Chinese without being asked; the environment computes with its own Python."""
    assert "所有计算检查均已通过（cpu）" in installed.out
    assert len(re.findall(r"  通过  ", installed.out)) >= 10
    done = windows.run(rf"{TARGET}\Scripts\python.exe", "-c", REPORT)
    assert re.fullmatch(r"[\d.]+\+cpu \[1.0, 1.0\]\n", done.out), done
    assert {"requirements.txt", "report.md", "assistant.toml"} <= {
        path.name for path in windows.path(EXPORTED).iterdir()
    }


@pytest.mark.usefixtures("installed")
def test_exported_requirements_are_read_by_the_interpreters_own_pip(windows: Wine) -> None:
    """Pip 24.0, which comes with this Python, reads the files with their Chinese sentences under two code pages."""
    pip = [PYTHON, "-m", "pip", "--python", rf"{TARGET}\Scripts\python.exe", "install", "--dry-run", "--no-deps"]
    for code_page in (936, 1252):
        for words in (["-r", rf"{EXPORTED}\requirements.txt"], ["-c", rf"{EXPORTED}\constraints.txt", "torch"]):
            done = windows.run(*pip, *words, code_page=code_page)
            assert done.code == 0, done
            assert "UnicodeDecodeError" not in done.err, done
            assert code_page != 936 or "Requirement already satisfied: torch" in done.out  # nor can it print


@pytest.mark.usefixtures("installed")
def test_exported_batch_file_sets_its_variables(windows: Wine) -> None:
    """Cmd runs the launcher for a WebUI, and the program that it calls sees the variables."""
    launcher = rf"{EXPORTED}\launch\a1111"
    windows.path(rf"{launcher}\webui.bat").write_text("@set\r\n", encoding="ascii")
    done = windows.run("cmd", "/c", "webui-user.bat", folder=launcher)
    wanted = re.findall(r"^set (.+?)\r?$", windows.path(rf"{launcher}\webui-user.bat").read_text("ascii"), re.MULTILINE)
    assert "INFERENCE_DEVICE=cpu" in wanted
    assert set(wanted) <= set(done.out.splitlines()), done


@pytest.mark.usefixtures("installed")
def test_the_kernel_starts(windows: Wine, private: Callable[[str], str]) -> None:
    """Jupyter's own client starts the kernel that was registered, and it computes in the new environment."""
    (kernel,) = windows.path(rf"C:\users\{windows.user}\AppData\Roaming\jupyter\kernels").iterdir()
    windows.path(r"C:\kernel.py").write_text(KERNEL, encoding="ascii")
    done = windows.run(private("lab"), "-P", r"C:\kernel.py", kernel.name)
    assert ascii(rf"{TARGET}\Scripts\python.exe") in done.out, done
    assert "+cpu 3.0" in done.out


@pytest.mark.usefixtures("installed")
def test_check_finds_everything_as_it_was(assistant: Callable[..., Done]) -> None:
    """Nothing of the exported configuration differs from the machine that it was written on."""
    done = assistant("check", rf"{EXPORTED}\assistant.toml")
    assert (done.code, done.out.strip()) == (0, "没有任何变化。"), done


@pytest.mark.usefixtures("installed")
def test_apply_makes_the_same_environment_again(assistant: Callable[..., Done], windows: Wine) -> None:
    """The configuration is applied file by file, into another folder."""
    target = r"C:\又一个 环境"
    done = assistant("apply", rf"{EXPORTED}\assistant.toml", "--yes", "--target", target)
    assert done.code == 0, done
    packages = [windows.path(rf"{folder}\Lib\site-packages").glob("*.dist-info") for folder in (TARGET, target)]
    assert {path.name for path in packages[0]} == {path.name for path in packages[1]}


@pytest.fixture
def held(installed: Done, windows: Wine) -> Iterator[subprocess.Popen[bytes]]:
    """Have another process hold a file of the environment open, as a kernel that runs does."""
    assert installed.code == 0
    (file,) = windows.path(rf"{TARGET}\Lib\site-packages\markupsafe").glob("_speedups*.pyd")
    child = windows.start(PYTHON, "-c", HOLD, rf"{TARGET}\Lib\site-packages\markupsafe\{file.name}")
    assert child.stdout.readline().strip() == b"held"
    yield child
    child.communicate(b"")


def test_a_standing_environment_changes_while_a_file_of_it_is_open(
    held: subprocess.Popen[bytes], assistant: Callable[..., Done], windows: Wine
) -> None:
    """Another version of a package is installed, or a sentence says what to close; then it is."""
    words = ("install", "--yes", "--backend", "cpu", "--target", TARGET, "--pin", "markupsafe==3.0.2")
    done = assistant(*words)
    if done.code:
        assert "cannot be moved" in done.err, done
        held.communicate(b"")
        done = assistant(*words)
    assert done.code == 0, done
    asked = windows.run(rf"{TARGET}\Scripts\python.exe", "-c", "import markupsafe; print(markupsafe.__version__)")
    assert asked.out == "3.0.2\n", asked
    if held.poll() is None:
        held.communicate(b"")
    assert list(windows.path(TARGET).parent.glob(".*.new")) == []
