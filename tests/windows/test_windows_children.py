"""What the assistant starts on Windows ends with it, is read right, and files that others have open are waited for."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from windows.wine import PYTHON, Wine

pytestmark = pytest.mark.timeout(1800)

FOLDER = r"C:\children"
# Writes into a file for half a minute; with a second program it starts that first.
WRITER = """\
import subprocess, sys, time
if len(sys.argv) > 2:
    subprocess.Popen([sys.executable, __file__, sys.argv[2]], stdin=-3, stdout=-3, stderr=-3)
for _ in range(600):
    with open("C:/children/" + sys.argv[1], "a") as file:
        file.write("x")
    time.sleep(0.05)
"""
HOLDER = """\
import sys
from pathlib import Path
import assistant.host.windows as windows
from assistant.host.lock import Lock
from assistant.host.process import running
if "jobless" in sys.argv:
    windows._KILL_ON_JOB_CLOSE = 0
lock = Lock(Path(r"C:\\children\\lock"))
assert lock.take() is None
with running([sys.executable, r"C:\\children\\writer.py", "child", "grandchild"], lock=lock) as child:
    print(*child)
"""
BECOMES = """\
import sys
from assistant.host.process import replace_process
replace_process([sys.executable, r"C:\\children\\writer.py", "child", "grandchild"])
"""
# Ends a program as Task Manager does, once what it started writes, and tells which files still grow: at once, and after
# the next has taken the lock.
OUTSIDE = """\
import json, subprocess, sys, time
from pathlib import Path
from assistant.host.lock import Lock
folder = Path(r"C:\\children")
child = subprocess.Popen([sys.executable, *sys.argv[1:]], stdin=-3, stdout=-3, stderr=-3)
while not all((folder / name).exists() for name in ("child", "grandchild")):
    assert child.poll() is None
    time.sleep(0.05)
child.kill()
child.wait()
def growing():
    time.sleep(0.5)
    before = {name: (folder / name).stat().st_size for name in ("child", "grandchild")}
    time.sleep(1)
    return [name for name in before if (folder / name).stat().st_size > before[name]]
told = {"at once": growing()}
lock = Lock(folder / "lock")
told["taken"] = lock.take() is None
told["afterwards"] = growing()
lock.release()
print(json.dumps(told))
"""
# Asks to stop in one of Windows' manners while a child says nothing.
SILENT = """\
import os, signal, sys, threading, time
from assistant.host.process import interrupt_on_signals
from assistant.host.process import running
interrupt_on_signals()
def request():
    time.sleep(1)
    if sys.argv[1] == "close":
        import assistant.host.windows as windows
        windows._handlers[-1](2)  # CTRL_CLOSE_EVENT, as Windows calls it, on a thread of its own
    else:
        signal.raise_signal(signal.SIGBREAK)
threading.Thread(target=request, daemon=True).start()
try:
    with running([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        print(*child)
except KeyboardInterrupt:
    print("heard", flush=True)
    os._exit(0)
"""
OPENED = """\
import ctypes, sys
kernel = ctypes.WinDLL("kernel32")
kernel.CreateFileW.restype = ctypes.c_void_p
kernel.CreateFileW(sys.argv[1], 0x80000000, 1, None, 3, 0, None)  # for reading; others may read, not rename or remove
print("open", flush=True)
sys.stdin.read(1)
"""
IN_USE = """\
import json, subprocess, sys, threading
from pathlib import Path
from assistant.host.files import discard_folder, write_atomically
folder = Path(r"C:\\children\\used")
(folder / "inner").mkdir(parents=True)
for name in ("state.json", "inner/torch.dll"):
    (folder / name).write_text("old")
def opened(name):
    words = [sys.executable, r"C:\\children\\opened.py", str(folder / name)]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline().strip() == b"open"
    return child
def tried(name, change, let_go):
    child = opened(name)
    timer = threading.Timer(0.5, child.communicate, (b"x",))
    if let_go:
        timer.start()
    try:
        change()
        return "done"
    except OSError as error:
        return error.winerror
    finally:
        if not let_go:
            child.communicate(b"x")
        timer.join() if let_go else None
change = {"state.json": lambda: write_atomically(folder / "state.json", "new"),
          "inner/torch.dll": lambda: discard_folder(folder / "inner")}
told = {name: [tried(name, change[name], let_go=False), tried(name, change[name], let_go=True)] for name in change}
print(json.dumps({**told, "left": sorted(path.name for path in folder.iterdir())}))
"""
# What `pip config set` writes on a Chinese Windows, in GBK, and how it is read.
SETTINGS = """\
import json, subprocess, sys
from pathlib import Path
from assistant.host.live import LiveHost
from assistant.host.pip_settings import read_pip_settings
found = LiveHost().run(sys.argv[1], "-m", "pip", "config", "list")
print(json.dumps(read_pip_settings(found.text).find_links))
"""


@pytest.fixture
def told(windows: Wine, private: Callable[[str], str]) -> Callable[..., object]:
    """Give a function that runs a script by the assistant's own Python, in a folder of its own; it prints JSON."""
    python, folder = private("core"), windows.path(FOLDER)
    scripts = {
        "writer": WRITER,
        "holder": HOLDER,
        "becomes": BECOMES,
        "outside": OUTSIDE,
        "silent": SILENT,
        "opened": OPENED,
        "used": IN_USE,
        "settings": SETTINGS,
    }
    folder.mkdir(exist_ok=True)
    for name in ("child", "grandchild", "lock"):
        (folder / name).unlink(missing_ok=True)
    for name, text in scripts.items():
        (folder / f"{name}.py").write_text(text, encoding="ascii")

    def run(name: str, *words: str, **environment: str) -> object:
        done = windows.run(python, rf"{FOLDER}\{name}.py", *words, environment=environment)
        assert done.code == 0, done
        return json.loads(done.out)

    return run


def test_what_a_killed_holder_started_ends_with_it(told: Callable[..., object]) -> None:
    """Neither the installer nor what that started writes on, and the lock is free at once."""
    assert told("outside", rf"{FOLDER}\holder.py") == {"at once": [], "taken": True, "afterwards": []}


def test_without_a_job_the_next_holder_ends_it(told: Callable[..., object]) -> None:
    """Where Windows refuses a job, the whole tree goes on, until the next one takes the lock."""
    both = ["child", "grandchild"]
    assert told("outside", rf"{FOLDER}\holder.py", "jobless") == {"at once": both, "taken": True, "afterwards": []}


def test_a_program_ends_with_its_launcher_and_its_browser_stays(told: Callable[..., object], windows: Wine) -> None:
    """`start.py` killed takes JupyterLab along, not what JupyterLab has opened for the user."""
    found = told("outside", rf"{FOLDER}\becomes.py")
    windows.restart()
    assert found == {"at once": ["grandchild"], "taken": True, "afterwards": ["grandchild"]}


@pytest.mark.parametrize("how", ["break", "close"])
def test_a_request_to_end_is_heard_while_a_child_is_silent(
    how: str, windows: Wine, private: Callable[[str], str], told: Callable[..., object]
) -> None:
    """Ctrl-Break and the closing of the console window are as Ctrl-C."""
    assert told
    assert windows.run(private("core"), rf"{FOLDER}\silent.py", how).out.strip() == "heard"


def test_a_file_that_is_open_for_a_moment_is_waited_for(told: Callable[..., object]) -> None:
    """One that stays open is an error that Windows names, and no draft stays behind."""
    expected = {"state.json": [5, "done"], "inner/torch.dll": [32, "done"], "left": ["state.json"]}
    assert told("used") == expected


def test_pips_settings_in_chinese_are_read(told: Callable[..., object], windows: Wine) -> None:
    """The file is in the code page of the system, and a folder of a Chinese user's stands in it."""
    wheels = r"C:\用户\张三\wheels"
    windows.path(rf"{FOLDER}\pip.ini").write_text(f"[global]\nfind-links = {wheels}\n", encoding="gbk")
    found = told("settings", PYTHON, PIP_CONFIG_FILE=rf"{FOLDER}\pip.ini", PIP_FIND_LINKS="")
    assert wheels in found
