"""The start without Python: install.sh and the .pyz are run, install.ps1 is held to its grammar and its siblings."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_powershell
from newcomer import INSTALLER, PIN, Newcomer
from pip._internal.models.index import PyPI

pytestmark = pytest.mark.process

SHELL = (INSTALLER / "install.sh").read_text("utf-8")
POWERSHELL = (INSTALLER / "install.ps1").read_bytes()
PYZ = runpy.run_path(str(INSTALLER / "pyz" / "__main__.py"))
posix = pytest.mark.skipif(sys.platform == "win32", reason="install.sh is for Linux and macOS")
SHELLS = [pytest.param("dash", marks=posix), pytest.param("bash", marks=posix)]
both_programs = pytest.mark.parametrize("newcomer", [SHELLS[0], "pyz"], indirect=True)
every_way = pytest.mark.parametrize("newcomer", [*SHELLS, "pyz"], indirect=True)
in_a_shell = pytest.mark.parametrize("newcomer", SHELLS[:1], indirect=True)


@pytest.fixture
def newcomer(tmp_path, loopback_index, request):
    """Have a newcomer who starts in the way that the test names."""
    return Newcomer(tmp_path, loopback_index, request.param)


@every_way
def test_one_line_opens_the_guided_setup(newcomer):
    """Uv and the assistant are brought; the second start fetches no uv and does the same; nothing else lies about."""
    first, second = newcomer.start(), newcomer.start()
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert first.stdout.splitlines()[0] == second.stdout.splitlines()[0] == "lab"
    assert "Fetching uv" in first.stderr
    assert "Fetching uv" not in second.stderr
    assert newcomer.index.requests.count("/simple/uv/") == 1
    assert not [line for line in first.stderr.splitlines() if "rror" in line]
    assert newcomer.left() in (["uv"], ["uv.exe"])
    assert {path.name for path in newcomer.home.iterdir()} <= {".cache", ".local", "pytorch-setup-assistant", "uv"}


@every_way
def test_words_and_exit_code_are_the_assistants(newcomer):
    """What follows is handed on as it stands, spaces included; to a failure of the assistant's own nothing is added."""
    done = newcomer.start("setup", "--yes", "--target", "my folder", "fail")
    assert done.returncode == 7
    assert done.stdout.splitlines()[0] == "setup|--yes|--target|my folder|fail"
    assert "network" not in done.stderr


@both_programs
def test_the_assistants_commands_can_be_typed_again(newcomer):
    """What the assistant is told to call itself starts it."""
    typed = newcomer.start().stdout.splitlines()[1]
    shell = ["cmd", "/c"] if sys.platform == "win32" else [str(newcomer.programs / "dash"), "-c"]
    done = subprocess.run(
        [*shell, f"{typed} doctor"], env=newcomer.environment(), capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[:1] == ["doctor"], done.stderr


@posix
@both_programs
def test_a_uv_on_path_is_used(newcomer):
    """Who has uv keeps it, and nothing is fetched in its place; one that does not start is none."""
    newcomer.have("uv", "#!/bin/sh\nexit 1\n")
    assert "Fetching uv" in newcomer.start().stderr
    newcomer.lack("uv")
    shutil.rmtree(newcomer.home / ".local", ignore_errors=True)
    (newcomer.programs / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    done = newcomer.start()
    assert done.returncode == 0
    assert "Fetching uv" not in done.stderr
    assert newcomer.left() == []


# Knows no --version, and crashes at -T as some of them do.
BUSYBOX_WGET = """#!/bin/sh
[ "$1" != --version ] || exit 1
case "$*" in *-T*) kill -SEGV $$;; esac
exec {wget} "$@"
"""


@in_a_shell
@pytest.mark.parametrize("script", ["", BUSYBOX_WGET], ids=["GNU", "busybox"])
def test_wget_serves_as_well_as_curl(newcomer, script):
    """Ubuntu's desktop has no curl, and Alpine only busybox."""
    newcomer.lack("curl")
    newcomer.have("wget", script.format(wget=shutil.which("wget")))
    assert newcomer.start().returncode == 0


UNPACKS = f"""#!/bin/sh
for word; do case $word in *.whl) zip=$word;; */part.*) to=$word;; esac; done
exec {sys.executable} -m zipfile -e "$zip" "$to"
"""


@in_a_shell
@pytest.mark.parametrize("instead", ["bsdtar", "busybox", "python3"])
def test_the_archive_is_unpacked_by_what_is_there(newcomer, instead):
    """Debian's small images have no unzip; where this machine lacks the other program, Python plays its part."""
    newcomer.lack("unzip")
    newcomer.have(instead, UNPACKS)
    done = newcomer.start()
    assert done.returncode == 0, done.stderr


def absent(newcomer):
    """Let the index have another uv only."""
    newcomer.wheel.rename(newcomer.wheel.with_name("uv-0.1.0-py3-none-any.whl"))


def damaged(newcomer):
    """Let a byte of the archive have changed on the way."""
    with newcomer.wheel.open("r+b") as file:
        file.seek(1000)
        file.write(b"changed")


def another(newcomer):
    """Let somebody have put another program in uv's place."""
    pinned = newcomer.text
    newcomer.pin_uv(b"#!/bin/sh\ntouch obeyed\n")
    newcomer.text = pinned


def broken(newcomer):
    """Let uv be a program that does not start here, as where no program may run from a home folder."""
    newcomer.pin_uv(b"#!/nowhere\n")


FAULTS = {
    "no network": (
        lambda _one: {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple"},
        "/simple/uv/ cannot be fetched",
        "无法下载",
    ),
    "half of the archive": (lambda one: one.index.trouble.update(uv="half"), ".whl cannot be fetched", "无法下载"),
    "a refusal": (
        lambda one: one.index.trouble.update(uv=403),
        "/simple/uv/ cannot be fetched",
        "无法下载",
    ),
    "another release": (absent, "/simple/uv/ does not have uv-", "没有 uv-"),
    "no page of links": (lambda one: one.index.trouble.update(uv="page"), "/simple/uv/ does not have uv-", "没有 uv-"),
    "a damaged archive": (damaged, "arrived damaged", "已损坏"),
    "another program": (another, "arrived damaged", "已损坏"),
    "no folder": (lambda _one: {"HOME": os.devnull, "LOCALAPPDATA": os.devnull}, "cannot be written to", "无法写入"),
    "no program may run": (broken, "uv does not run in", "中运行"),
    "no assistant": (
        lambda one: one.index.trouble.update({"torch-setup-assistant": 404}),
        "its own words are above",
        "uv 的提示",
    ),
}


@both_programs
@pytest.mark.parametrize("fault", FAULTS)
def test_a_failure_is_one_sentence_with_the_next_step(newcomer, fault):
    """In English and in Chinese; nothing half-made stays, and what is mended then works."""
    spoil, english, chinese = FAULTS[fault]
    more = spoil(newcomer) or {}
    done = newcomer.start(**more)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert done.stdout == ""
    assert english in last
    assert re.search(r"Set |set |Start again", last)
    assert "Traceback" not in done.stderr
    assert newcomer.left() in ([], ["uv"], ["uv.exe"])
    assert not (newcomer.folder / "obeyed").exists()
    if sys.platform != "win32":  # there the system's language decides, which a test does not change
        assert chinese in newcomer.start(**more, LANG="zh_CN.UTF-8").stderr.splitlines()[-1]


@in_a_shell
@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ("curl", "curl, wget."),
        ("sha256sum", "sha256sum, shasum, openssl."),
        ("unzip", "unzip, bsdtar, busybox, python3."),
    ],
)
def test_a_program_that_is_needed_is_named(newcomer, lacking, said):
    """With all that would do in its place."""
    newcomer.lack(lacking)
    done = newcomer.start()
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
    assert newcomer.left() == []


@in_a_shell
def test_a_machine_without_pytorch_is_refused(newcomer):
    """With the exit code that says that nothing fits."""
    newcomer.have("uname", '#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo mips\n')
    done = newcomer.start()
    assert done.returncode == 3
    assert "no PyTorch for this machine (linux, mips)" in done.stderr


@in_a_shell
@pytest.mark.parametrize(("silicon", "wheel"), [("1", "macosx_11_0_arm64"), ("0", "macosx_10_12_x86_64")])
def test_a_mac_gets_the_uv_of_its_processor(newcomer, silicon, wheel):
    """Also from a shell under Rosetta, to which the system says x86_64; its folder is the Mac's own."""
    newcomer.have("uname", '#!/bin/sh\n[ "$1" = -s ] && echo Darwin || echo x86_64\n')
    newcomer.have("sysctl", f"#!/bin/sh\necho {silicon}\n")
    done = newcomer.start()
    assert wheel in done.stderr.splitlines()[-1]
    assert (newcomer.home / "Library" / "Application Support" / "pytorch-setup-assistant").is_dir()


@both_programs
@pytest.mark.parametrize(
    ("variables", "chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "zh_CN.UTF-8"}, True),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en"}, False),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "zh_CN.GB2312", "PYTHONIOENCODING": "ascii"}, False),
    ],
)
@posix
def test_the_systems_language_is_spoken(newcomer, variables, chinese):
    """As gettext finds it; never in an encoding that the terminal cannot show."""
    newcomer.index.trouble["uv"] = 404
    assert ("正在下载" in newcomer.start(**variables).stderr) == chinese


@both_programs
def test_an_index_of_ones_own_is_asked(newcomer):
    """Named for pip or for uv, with a password, with links from the root or from elsewhere; no password is shown."""
    newcomer.index.login = "ann:hunter2secret"
    index = newcomer.index.url.replace("//", "//ann:hunter2secret@")
    assert newcomer.start(UV_DEFAULT_INDEX="", PIP_INDEX_URL=f"{index}/").returncode == 0
    shutil.rmtree(newcomer.home)
    newcomer.home.mkdir()
    newcomer.index.login = ""
    newcomer.index.upstream = "/simple"
    assert newcomer.start(UV_DEFAULT_INDEX="", UV_INDEX_URL=newcomer.index.url).returncode == 0
    shutil.rmtree(newcomer.home)
    newcomer.home.mkdir()
    newcomer.index.upstream = newcomer.index.url
    assert newcomer.start().returncode == 0
    for trouble in (404, "page"):
        shutil.rmtree(newcomer.home)
        newcomer.home.mkdir()
        newcomer.index.trouble["uv"] = trouble
        failed = newcomer.start(UV_DEFAULT_INDEX=index)
        assert failed.returncode == 1
        assert f"{newcomer.index.url}/uv/" in failed.stderr.splitlines()[-1]
        assert "hunter2secret" not in failed.stderr


@in_a_shell
def test_a_stopped_download_leaves_nothing(newcomer):
    """Closing the terminal ends it and takes back what was begun."""
    newcomer.index.trouble["uv"] = "stall"
    child = newcomer.begin()
    child.stdin.close()
    child.stdin = None
    deadline = time.monotonic() + 30
    while not newcomer.index.requests and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGTERM)
    child.communicate(timeout=30)
    assert child.returncode == 143
    assert newcomer.left() == []
    assert not list(newcomer.home.rglob("part.*"))


@in_a_shell
def test_half_a_script_does_nothing(newcomer):
    """A download that breaks off anywhere changes nothing and fetches nothing."""
    whole = newcomer.text.encode()
    for cut in [*range(0, len(whole) - 10, len(whole) // 20), len(whole) - 12]:
        newcomer.text = whole[:cut].decode("utf-8", "ignore")
        newcomer.start()
        assert newcomer.index.requests == [], cut
        assert list(newcomer.home.iterdir()) == [], cut


@in_a_shell
def test_questions_are_asked_at_the_terminal(newcomer, tmp_path):
    """`curl … | sh` leaves the assistant no input: the terminal is one."""
    (tmp_path / "install.sh").write_text(newcomer.text, encoding="utf-8")
    newcomer.have("cat")
    line = [newcomer.programs / "dash", "-c", "cat install.sh | dash -s -- ask"]
    done = subprocess.run(
        [sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])", *line],
        cwd=tmp_path,
        env=newcomer.environment(),
        input="yes\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "answered yes" in done.stdout


@posix
def test_shellcheck_finds_nothing():
    """The script is POSIX sh, for every shell that a system calls so."""
    tool = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([tool, INSTALLER / "install.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_pyz_is_for_old_pythons():
    """Its syntax is that of Python 3.8, and it imports the standard library alone."""
    tree = ast.parse((INSTALLER / "pyz" / "__main__.py").read_text("utf-8"), feature_version=(3, 8))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {getattr(node, "module", None) or node.names[0].name for node in imports}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_all_three_bring_the_same_uv():
    """The same release, with the same digests, for the same machines."""
    texts = [SHELL, POWERSHELL.decode("ascii"), (INSTALLER / "pyz" / "__main__.py").read_text("utf-8")]
    pins = [PIN.findall(text) for text in texts]
    assert pins[0] == pins[1] == pins[2]
    assert len(pins[0]) == 6
    (version,) = {wheel.split("-")[1] for _machine, wheel, _sum in pins[0]}
    assert f"\nUV_VERSION={version}\n" in texts[0]
    assert f"$version = '{version}'\n" in texts[1]
    assert PYZ["UV_VERSION"] == version


def test_all_three_say_the_same_sentences():
    """In both languages, apart from the names of values; what one alone needs, one alone says."""
    plain = {(blank(english), blank(chinese)) for english, chinese in PYZ["SENTENCES"].values()}
    shell = {
        (blank(english), blank(chinese))
        for english, chinese in re.findall(r'(?:say|fail \d) "([^"\n]+)"[\s\\]+"([^"\n]+)"', SHELL)
    }
    found = re.findall(r"@\(\s+'(.+)'\s+'(.+)'\s+\)", POWERSHELL.decode("ascii"))
    windows = {(blank(english), blank(chinese.encode().decode("unicode_escape"))) for english, chinese in found}
    assert plain < shell
    assert plain < windows
    assert {english for english, _chinese in shell - plain} == {
        "One of these programs is needed here: {}. Install one, then start again."
    }
    assert len(windows - plain) == 2
    for english, chinese in plain | shell | windows:
        assert re.search(r"[\u4e00-\u9fff]", chinese)
        assert english.count("{}") == chinese.count("{}")


def blank(sentence):
    """Take the names of values out of a sentence."""
    return re.sub(r"\$\d|\$\{?\w+\}?|\{\w+\}|\bHOME\b|\b(?<!LC_)LOCALAPPDATA\b", "{}", sentence)


# What Windows PowerShell 5.1 does not know; where it is syntax other than `&&`, the grammar does not know it either.
# https://learn.microsoft.com/powershell/scripting/whats-new/differences-from-windows-powershell
NEWER = rb"\$Is(Windows|Linux|MacOS)\b|-(Parallel|AsHashtable|SkipCertificateCheck|SkipHttpErrorCheck)\b"


def test_powershells_grammar_reads_the_script_for_windows():
    """Without a fault, in ASCII, with nothing that Windows PowerShell 5.1 lacks, and with one place to exit from."""
    tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language())).parse(POWERSHELL)
    assert not tree.root_node.has_error
    assert POWERSHELL.isascii()
    assert not re.search(NEWER, POWERSHELL)
    kinds, nodes = [], [tree.root_node]
    while nodes:
        nodes += (node := nodes.pop()).children
        kinds.append(node.type)
    assert "pipeline_chain_tail" not in kinds
    assert kinds.count("exit") == 1


def test_the_script_for_windows_calls_what_is_there():
    """Its own functions, and commands that Windows PowerShell 5.1 has; each sentence is said somewhere."""
    text = POWERSHELL.decode("ascii")
    code = re.sub(r"'[^'\n]*'|# .*", "", text)
    called = {*re.findall(r"\b[A-Z][a-z]+-[A-Z]\w+", code)}
    assert called - {*re.findall(r"function ([\w-]+)", text)} == {
        "Add-Type",
        "Get-Command",
        "Get-ItemProperty",
        "Get-UICulture",
        "Invoke-WebRequest",
        "Move-Item",
        "New-Item",
        "New-Object",
        "Remove-Item",
        "Select-Object",
        "Where-Object",
    }
    said = {*re.findall(r"(?:Write-Sentence|Get-Sentence|Stop-Here \d) (\w+)", text)}
    assert said == {*re.findall(r"^        (\w+) = @\(", text, re.MULTILINE)}


def test_a_release_names_its_repository_and_the_index_of_pip(tmp_path):
    """The files that are published have nothing left to fill in, and are else those of the project."""
    words = [sys.executable, str(INSTALLER / "build.py"), "someone/setup", str(tmp_path)]
    subprocess.run(words, check=True, timeout=60)
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"install.ps1", "install.sh", "torch-setup-assistant.pyz"}
    with zipfile.ZipFile(tmp_path / "torch-setup-assistant.pyz") as archive:
        texts = {"pyz/__main__.py": archive.read("__main__.py").decode()}
    texts |= {name: (tmp_path / name).read_text("utf-8") for name in ("install.sh", "install.ps1")}
    for name, text in texts.items():
        source = (INSTALLER / name).read_text("utf-8")
        assert source.count("https://PYPI/simple") == text.count(PyPI.simple_url) == 1
        assert text.replace(PyPI.simple_url, "https://PYPI/simple").replace("someone/setup", "OWNER/PROJECT") == source


def test_another_release_is_pinned_in_all_three(tmp_path, loopback_index, monkeypatch):
    """By one command, with the digests that the index tells; all else stays as it is."""
    for end in ("macosx_10_12_x86_64", "macosx_11_0_arm64", "musllinux_1_1_x86_64", "win_amd64", "win_arm64"):
        loopback_index.add("uv", "99.9.9", f"py3-none-{end}")
    loopback_index.add("uv", "99.9.9", "py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64")
    loopback_index.add("uv", "99.9.9", "py3-none-manylinux_2_28_aarch64")
    loopback_index.speaks_json = True
    monkeypatch.setenv("UV_DEFAULT_INDEX", loopback_index.url)
    copy = shutil.copytree(INSTALLER, tmp_path / "installer")
    runpy.run_path(str(copy / "renew.py"))["renew"]("99.9.9")
    sums = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (loopback_index.folder / "uv").iterdir()
    }
    for name in ("install.sh", "install.ps1", "pyz/__main__.py"):
        text, before = ((folder / name).read_text("utf-8") for folder in (copy, INSTALLER))
        assert [digest for _machine, wheel, digest in PIN.findall(text) if sums[wheel] == digest]
        assert len(PIN.findall(text)) == 6
        assert PIN.sub("", before).replace(PYZ["UV_VERSION"], "99.9.9") == PIN.sub("", text)


@pytest.mark.heavy
def test_the_digests_are_those_of_the_index():
    """What is pinned can be fetched, and is what its makers published."""
    renew = runpy.run_path(str(INSTALLER / "renew.py"))
    assert renew["pins"](PYZ["UV_VERSION"]) == PYZ["WHEELS"].strip()
