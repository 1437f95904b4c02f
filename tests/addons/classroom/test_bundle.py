"""A bundle for many machines: made once, resumed, checked to the byte, served, and right for whoever starts from it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_powershell
from addons.classroom.conftest import KINDS, TORCH, machines

from assistant.install import Package
from assistant.model.errors import BadInput, NothingFits, WorkFailed
from assistant.model.machine import Machine
from assistant.model.plan import Backend
from assistant.model.record import from_plain, replace
from assistant_addons.classroom.folder import Bundle, read_bundle, read_lock
from assistant_addons.classroom.kinds import choose
from assistant_addons.classroom.make import _begun, wheels_of

pytestmark = pytest.mark.process


def described(number: int, **changed: object) -> Machine:
    """Give the machine of a kind as it is found there, with more known of it than was described."""
    known = {**KINDS[number][1], "memory_gb": 32, "python": "3.11.9", **changed}
    return from_plain(known, Machine, "a machine")


def asked(index) -> Counter[str]:
    """Count how often each wheel was fetched; what a resolver looks at does not count."""
    return Counter(path.rpartition("/")[2].replace("%2B", "+") for path in index.fetched if path.endswith(".whl"))


def test_thirty_machines_of_eight_kinds_need_each_file_once(thirty):
    """Everybody is named once, each kind has a lock, and what several need is fetched and kept once."""
    maker, folder, answer = thirty
    bundle = read_bundle(folder)
    names = sorted(name for kind in bundle.kinds for name in kind.machines)
    assert names == sorted(one["name"] for one in machines())
    assert sorted(len(kind.machines) for kind in bundle.kinds) == sorted(count for count, _kind in KINDS)
    assert not bundle.without
    wheels = [file for file in bundle.files if file.path.startswith("wheels/")]
    fetched = asked(maker.index)
    assert set(fetched.values()) == {1}
    assert len(fetched) == len(wheels) - 1  # the assistant's own is packed here
    assert answer["fetched"] == sum(file.bytes for file in wheels) - (folder / own(bundle)).stat().st_size
    assert answer["bytes"] == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) - size(folder)
    for kind in bundle.kinds:
        lock = (folder / kind.lock).read_text("utf-8")
        there = re.findall(r'path = "(.+?)"', lock)
        assert there
        assert all((folder / kind.lock).parent.joinpath(path).is_file() for path in there)


def own(bundle: Bundle) -> str:
    """Name the wheel of the assistant itself."""
    return next(file.path for file in bundle.files if "torch_setup_assistant" in file.path)


def size(folder: Path) -> int:
    """Measure the list that does not list itself."""
    return (folder / "bundle.json").stat().st_size


def test_each_machine_finds_what_starts_it(thirty):
    """The scripts, the assistant itself, its platform's uv, and one torch in the lock of its kind."""
    _maker, folder, _answer = thirty
    bundle = read_bundle(folder)
    every = {file.path for file in bundle.files}
    assert {"start.sh", "start.bat", "start.ps1", own(bundle)} < every
    with zipfile.ZipFile(folder / own(bundle)) as wheel:  # which installs the bundle there, and brings the labs
        assert {"assistant/cli/__init__.py", "assistant_addons/classroom/command.py"} < {*wheel.namelist()}
        assert "assistant_addons/labs/library/cpu-build/lab.toml" in wheel.namelist()
    assert {path.split("/")[1] for path in every if path.startswith("uv/")} == {one.platform for one in bundle.kinds}
    for kind in bundle.kinds:
        assert any(path.startswith(f"assistant/{kind.platform}-") for path in every)
        files = {*read_lock(folder, kind).files}
        assert files < every
        assert len([path for path in files if path.startswith("wheels/torch-")]) == 1


def test_the_page_tells_who_gets_what_in_both_languages(thirty):
    """Each machine's row is there in English and in Chinese, and nothing of it runs or is loaded."""
    _maker, folder, _answer = thirty
    page = (folder / "index.html").read_text("utf-8")
    assert page.count("pc-07") == 2
    assert "Which machine gets what" in page
    assert "每台机器的安装内容" in page
    assert "<script" not in page
    assert "default-src &#x27;none&#x27;" in page
    assert "need a Python 3.12 of their own" in page  # the index has none


def test_a_flipped_byte_is_named_and_mended(thirty):
    """So is a file that is missing; one that is foreign is named, too; only what is wrong is fetched anew."""
    maker, folder, _answer = thirty
    assert maker.run("bundle", "check", folder).returncode == 0
    torch = next(folder.glob("wheels/torch-*cu130*win_amd64.whl"))
    content = bytearray(torch.read_bytes())
    content[len(content) // 2] ^= 1
    torch.write_bytes(content)
    (folder / "wheels" / "numpy-2.4.6-py3-none-any.whl").unlink()
    (folder / "wheels" / "stray.whl").touch()
    done = maker.run("bundle", "check", folder, "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert answer["changed"] == [f"wheels/{torch.name}"]
    assert answer["missing"] == ["wheels/numpy-2.4.6-py3-none-any.whl"]
    assert answer["foreign"] == ["wheels/stray.whl"]
    shown = maker.run("bundle", "check", folder)
    assert f"Changed: wheels/{torch.name}" in shown.stdout
    assert "assistant bundle make" in shown.stderr
    (folder / "wheels" / "stray.whl").unlink()
    before = asked(maker.index)
    again = maker.make(folder)
    assert set(asked(maker.index) - before) == {torch.name, "numpy-2.4.6-py3-none-any.whl"}
    assert again["fetched"] == sum((folder / "wheels" / name).stat().st_size for name in asked(maker.index) - before)
    assert maker.run("bundle", "check", folder).returncode == 0


@pytest.mark.full
def test_a_killed_make_is_gone_on_with(maker, tmp_path):
    """What was fetched stays and is not fetched again; until then the bundle says that it is not finished."""
    folder = tmp_path / "bundle"
    maker.index.delay = 0.1
    child = maker.begin(folder)
    deadline = time.monotonic() + 60
    while len(list(folder.glob("wheels/*.whl"))) < 8 and time.monotonic() < deadline:
        time.sleep(0.02)
    child.kill()
    child.wait()
    there = {path.name for path in folder.glob("wheels/*.whl")}
    assert len(there) >= 8
    done = maker.run("bundle", "check", folder)
    assert (done.returncode, "not finished" in done.stderr) == (1, True)
    refused = maker.run("bundle", "install", folder)
    assert (refused.returncode, "not finished" in refused.stderr) == (2, True)
    maker.index.delay = 0
    maker.index.fetched.clear()
    maker.make(folder)
    assert not set(asked(maker.index)) & there
    assert maker.run("bundle", "check", folder).returncode == 0
    assert not list(folder.rglob("*.part"))


@pytest.mark.full
def test_a_smaller_class_leaves_nothing_behind(maker, tmp_path):
    """What the machines of today do not need is taken out of the folder of yesterday."""
    folder = tmp_path / "bundle"
    maker.make(folder)
    maker.list.write_text(json.dumps(machines()[-1]), encoding="utf-8")
    maker.make(folder)
    assert maker.run("bundle", "check", folder).returncode == 0
    assert [path.name for path in folder.glob("wheels/torch-*")] == ["torch-2.15.0-cp312-none-macosx_11_0_arm64.whl"]
    assert [path.parent.name for path in folder.glob("uv/*/uv*")] == ["macos-arm64"]


@pytest.mark.full
def test_who_gets_nothing_is_named_and_the_others_are_served(maker, tmp_path):
    """A machine that no wheel fits, and one whose packages cannot be had: the second is a failure of the work."""
    (maker.index.folder / "torch" / "torch-2.14.1+cu126-cp312-cp312-manylinux_2_28_x86_64.whl").unlink()
    listed = [{"name": "alpine", **KINDS[6][1], "libc": "musl 1.2.5", "glibc": None}, *machines()]
    listed.append({"name": "pinned", **KINDS[6][1], "pins": ["numpy==1.0"]})
    maker.list.write_text("".join(f"{json.dumps(one)}\n" for one in listed), encoding="utf-8")
    done = maker.run(*maker.words(tmp_path / "bundle"), "--json")
    bundle = read_bundle(tmp_path / "bundle")
    without = {one.machine: one.why for one in bundle.without}
    assert {"alpine", "pinned"} <= set(without)
    assert all(without.values())
    served = {name for kind in bundle.kinds for name in kind.machines}
    assert len(served) + len(without) == 32
    assert json.loads(done.stdout)["without"]


def test_an_index_that_is_away_is_named_and_not_a_machine_without_a_wheel(maker, tmp_path):
    """If nothing can be resolved, the error says why, whatever machine of the list no wheel fits."""
    alpine = {"name": "alpine", **KINDS[6][1], "libc": "musl 1.2.5", "glibc": None}
    maker.list.write_text(f"{json.dumps(alpine)}\n{json.dumps(machines()[-1])}\n", encoding="utf-8")
    maker.index.close()
    done = maker.run(*maker.words(tmp_path / "bundle"))
    assert done.returncode == 1
    assert "musl" not in done.stderr
    assert maker.index.url in done.stderr


def test_a_bundle_is_made_in_a_new_folder_or_an_empty_one(tmp_path):
    """What is said of a folder that holds other files fits the command."""
    assert _begun(tmp_path) == _begun(tmp_path / "new") == Bundle()
    (tmp_path / "cat.jpg").touch()
    with pytest.raises(BadInput) as refused:
        _begun(tmp_path)
    assert "is not a bundle" in str(refused.value.message)
    assert str(refused.value.hint) == "Name a new or empty folder."


@pytest.mark.full
def test_a_folder_of_somebody_elses_is_left_alone(maker, tmp_path):
    """Nothing is written into a folder that holds other files; each command says which folder it takes."""
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "cat.jpg").touch()
    for words, step in (
        (maker.words(folder), "Name a new or empty folder."),
        (["bundle", "check", folder], "Name the folder that `assistant bundle make` has written."),
        (["bundle", "serve", folder], "Name the folder that `assistant bundle make` has written."),
    ):
        done = maker.run(*words)
        assert (done.returncode, "is not a bundle" in done.stderr, step in done.stderr) == (2, True, True)
    assert [path.name for path in folder.iterdir()] == ["cat.jpg"]


def test_a_list_that_names_files_outside_is_refused(thirty, tmp_path):
    """A bundle comes from a memory stick: its list leads nowhere else."""
    _maker, folder, _answer = thirty
    text = (folder / "bundle.json").read_text("utf-8")
    for path in ("../etc/passwd", "/etc/passwd", "C:/secret", "..\\\\secret"):
        (tmp_path / "bundle.json").write_text(text.replace("wheels/numpy-2.4.6-py3-none-any.whl", path), "utf-8")
        with pytest.raises(BadInput, match="outside the bundle"):
            read_bundle(tmp_path)


def test_each_machine_gets_its_own_kind(thirty):
    """Detected anew and with another Python, each of the eight gets what it was described for."""
    _maker, folder, _answer = thirty
    bundle = read_bundle(folder)
    for number, (count, _kind) in enumerate(KINDS):
        kind = choose(bundle, described(number))
        first = sum(one for one, _machine in KINDS[:number]) + 1
        assert kind.machines[0] == f"pc-{first:02}"
        assert len(kind.machines) == count


@pytest.mark.parametrize(
    ("number", "changed", "variant"),
    [
        (2, {"nvidia_driver": "610.43"}, "cu130"),  # cu132 would be better, and is not there
        (3, {"nvidia_driver": "470.1"}, ""),  # too old for what is there
        (6, {"glibc": "2.35"}, ""),  # older than what the lock was made for
        (6, {"glibc": "2.41"}, "cpu"),
        (7, {"os_version": "macOS 14.2"}, ""),  # likewise
        (7, {"os_version": "macOS 26.0"}, "pypi"),
        (6, {"wsl": True}, ""),
        (6, {"arch": "aarch64"}, ""),
    ],
)
def test_a_machine_gets_what_runs_on_it_or_a_sentence(thirty, number, changed, variant):
    """The best that is there for its backend; never another backend, and never what is too new for it."""
    _maker, folder, _answer = thirty
    bundle, machine = read_bundle(folder), described(number, **changed)
    if variant:
        assert choose(bundle, machine).plan.variant == variant
        return
    with pytest.raises(NothingFits):
        choose(bundle, machine)


def test_another_backend_or_kind_can_be_asked_for(thirty):
    """A GPU that the bundle does not serve can be left alone, by name; a kind that is not there is refused."""
    _maker, folder, _answer = thirty
    bundle = read_bundle(folder)
    odd = described(4, gpus=[{"vendor": "amd", "name": "AMD Radeon RX 9070 XT", "gfx": "gfx1201"}])
    less = replace(bundle, kinds=tuple(one for one in bundle.kinds if one.plan.backend is not Backend.ROCM))
    with pytest.raises(NothingFits, match="holds nothing for this machine"):
        choose(less, odd)
    assert choose(less, odd, backend=Backend.CPU).plan.backend is Backend.CPU
    key = less.kinds[0].key
    assert choose(less, odd, key=key).key == key
    with pytest.raises(BadInput):
        choose(less, odd, key="nowhere")


def test_a_machine_that_gets_nothing_is_told(thirty):
    """Exit code 3 for a backend that the bundle does not serve, 2 for a kind that it does not hold."""
    maker, folder, _answer = thirty
    for words, code in ((["--backend", "directml"], 3), (["--kind", "nowhere"], 2)):
        done = maker.run("bundle", "install", folder, "--dry-run", *words)
        assert (done.returncode, bool(done.stderr)) == (code, True), done.stderr


def test_it_is_served_as_an_index(thirty):
    """Any installer finds the wheels there, on loopback, until it is stopped."""
    maker, folder, _answer = thirty
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "assistant", "bundle", "serve", str(folder), "--port", str(port)]
    with subprocess.Popen(command, env=maker.env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as server:
        try:
            page = _page(f"http://127.0.0.1:{port}/simple/torch/", server)
            index = f"http://127.0.0.1:{port}/simple"
            words = ["pip", "install", "--target", maker.home / "got", "--index-url", index, "--no-cache", "numpy"]
            subprocess.run([sys.executable, "-m", "uv", *words], env=maker.env, check=True, capture_output=True)
        finally:
            server.terminate()
            server.communicate()
    assert page.count(".whl#") == len(TORCH) - 2  # nobody needs cu132
    assert (maker.home / "got" / "numpy" / "__init__.py").is_file()


def _page(url: str, server: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - of this machine
                return answer.read().decode()
        except OSError:
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.full
def test_a_python_that_can_be_had_is_carried(maker, tmp_path):
    """As uv looks for it below a mirror, checked as any other file; machines of one platform share it."""
    words = [
        "python",
        "list",
        "--all-platforms",
        "--all-arches",
        "--only-downloads",
        "--output-format",
        "json",
        "3.12",
        "--no-config",
    ]
    listed = subprocess.run(
        [sys.executable, "-m", "uv", *words], env=maker.env, capture_output=True, text=True, check=True
    )
    for row in json.loads(listed.stdout):
        if row["implementation"] == "cpython":
            place = maker.index.folder / "python" / "/".join(row["url"].split("/")[-2:]).replace("%2B", "+")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(row["key"].encode())
    maker.make(tmp_path / "bundle")
    bundle = read_bundle(tmp_path / "bundle")
    assert bundle.pythons == dict.fromkeys(("linux-x86_64", "macos-arm64", "windows-x86_64"), ("3.12",))
    archives = sorted(file.path for file in bundle.files if file.path.startswith("python/"))
    assert len(archives) == 3
    for path, system in zip(archives, ("linux-x86_64-gnu", "macos-aarch64", "windows-x86_64"), strict=True):
        assert system in (tmp_path / "bundle" / path).read_text("ascii")
    assert "of their own" not in (tmp_path / "bundle" / "index.html").read_text("utf-8")


def test_two_files_of_one_name_are_refused():
    """One folder holds one file of a name: that is said before anything is fetched."""
    one = Package(name="numpy", version="2", url="https://a.example/numpy-2-py3-none-any.whl", sha256="ab" * 32)
    other = replace(one, url="https://b.example/numpy-2-py3-none-any.whl", sha256="cd" * 32)
    assert len(wheels_of([one, one])) == 1
    with pytest.raises(WorkFailed, match=r"https://a.example/\S+ and https://b.example/\S+ are different files"):
        wheels_of([one, other])


def test_powershells_grammar_reads_the_script(thirty):
    """Without a fault and in ASCII; so is start.bat, whose lines end as Windows has them and whose labels are there."""
    _maker, folder, _answer = thirty
    script = (folder / "start.ps1").read_bytes()
    assert script.isascii()
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
    assert not parser.parse(script).root_node.has_error
    batch = (folder / "start.bat").read_bytes()
    assert batch.isascii()
    assert batch.count(b"\n") == batch.count(b"\r\n")
    labels = {*re.findall(rb"(?m)^:(\w+)", batch)}
    assert {*re.findall(rb"(?:goto|call :)\s*(\w+)", batch)} == labels
    says = {path.stem for path in (folder / "assistant" / "says").iterdir()}
    assert {*re.findall(r'says=(\w+)"', batch.decode())} == says
    assert {*re.findall(r"fail \d (\w+)", (folder / "start.sh").read_text("utf-8"))} == says


@pytest.mark.skipif(sys.platform == "win32", reason="shellcheck has no wheel for Windows")
def test_shellcheck_finds_nothing(thirty):
    """The script is POSIX sh, for every shell that a system calls so."""
    _maker, folder, _answer = thirty
    tool = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([tool, folder / "start.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
