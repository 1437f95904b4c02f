"""What installers print is read into records, judged by the catalogue, and mended by what the diagnosis says first."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from stage import PYPI, TORCH, Stage
from tables import sampled
from torch_wheels import LINUX, WINDOWS, add_torch

from assistant.diagnose import diagnose, read_log
from assistant.diagnose.index import addresses, classify_address
from assistant.diagnose.installers import failures
from assistant.model.machine import Gpu, Machine, Vendor

ORG = "org"
NONE = "ERROR: Could not find a version that satisfies the requirement {0} (from versions: none)\n"
NONE += "ERROR: No matching distribution found for {0}\n"

# Verbatim output of real installers: pip 23 and 26, uv 0.4, 0.8 and 0.13, Poetry 2.5; PDM, conda and mamba from public
# issues (pdm-project/pdm#3605, pytorch/pytorch#118172, mamba-org/mamba#3699).
OUTPUTS = [
    json.loads(line)
    for line in (Path(__file__).parent / "installer_outputs.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("row", OUTPUTS, ids=[row["tool"] for row in OUTPUTS])
def test_what_each_installer_prints_is_read(row: dict[str, Any]) -> None:
    """Package, version, requester, versions and tags on offer come out of every tool's own words."""
    first = failures(read_log(row["output"]).text)[0]._asdict()
    known = {name: list(value) if isinstance(value, tuple) else value for name, value in first.items()}
    assert {name: known[name] for name in row["told"]} == row["told"]


def test_a_build_that_ends_well_has_no_failures() -> None:
    """What an installer prints of a success is none of these messages."""
    assert failures("collecting torch==2.9.0\nsuccessfully installed torch-2.9.0\n + torch==2.9.0+cu130\n") == ()


def test_indexes_are_found_wherever_they_stand() -> None:
    """Pip's own line, options, a project file and uv's hint name them; an address that failed is told apart."""
    text = (
        f"looking in indexes: {PYPI}, https://a.example/whl/cu126\n$ pip install -i https://b.example/s\n"
        'url = "https://c.example/simple"\n'
        "hint: an index url (https://d.example/simple) could not be queried due to a lack of valid authentication"
        " credentials (403 forbidden).\n404 client error: not found for url: https://e.example/x.whl\n"
    )
    assert [(one.url[8:17], one.state, one.asked) for one in addresses(read_log(text))] == [
        (f"pypi.{ORG}/", "", True),
        ("a.example", "", True),
        ("b.example", "", True),
        ("c.example", "", True),
        ("d.example", "403", True),
        ("e.example", "404", False),
    ]


@pytest.mark.parametrize(
    ("url", "kind", "right"),
    [
        (f"{TORCH}/cu126", "torch", ""),
        (f"{TORCH}", "torch", ""),
        (f"{TORCH}/nightly/cu130", "torch", ""),
        (f"{TORCH}/cu113", "torch", ""),
        (f"{TORCH}/cuda128", "wrong", f"{TORCH}/cu128"),
        (f"{TORCH}/cu12.6", "wrong", f"{TORCH}/cu126"),
        (f"{TORCH}/cu127", "wrong", f"{TORCH}/cu126"),
        (f"{TORCH}/rocm64", "wrong", f"{TORCH}/rocm6.4"),
        (f"{TORCH}/rocm6.5", "wrong", f"{TORCH}/rocm6.4"),
        (f"{TORCH}/xpus", "wrong", f"{TORCH}/xpu"),
        (f"{TORCH}/gpu", "wrong", ""),
        (f"{TORCH}/cu126/torch", "wrong", f"{TORCH}/cu126"),
        ("https://download.pytorch.org/cu126", "wrong", f"{TORCH}/cu126"),
        ("https://download.pytroch.org/whl/cu126", "wrong", f"{TORCH}/cu126"),
        ("https://pytorch.org/get-started/locally", "wrong", ""),
        (f"https://pypi.{ORG}/project/torch", "wrong", "PyPI"),
        ("https://mirrors.nju.edu.cn/pytorch/cu126", "wrong", "https://mirrors.nju.edu.cn/pytorch/whl/cu126"),
        ("https://pypi.tuna.tsinghua.edu.cn/simpel", "mirror", ""),
        ("https://pypi.tuna.tsinghua.edu.cn/simple", "pypi", ""),
        ("https://nexus.example/repository/pypi/simple", "mirror", ""),
        ("https://files.example/wheels", "unknown", ""),
    ],
)
def test_an_address_is_told_from_one_with_a_slip_of_the_pen(url: str, kind: str, right: str) -> None:
    """Known indexes are known; a misspelt tag, host or path leads to the address that was meant."""
    found = classify_address(url)
    assert (found.kind, found.right) == (kind, right)


def keys(log: str, **facts: object) -> list[str]:
    """Diagnose a text on a machine of which some facts are known."""
    return [one.key for one in diagnose(log, Machine(**facts))]  # type: ignore[arg-type]


def test_python_is_not_the_reason_where_it_is_served() -> None:
    """With Python, platform and release all served, the index is at fault; with a Python that is not, Python is."""
    misspelt = f"Looking in indexes: {TORCH}/cuda128\n" + NONE.format("torch")
    assert keys(misspelt, os="windows", python="3.13") == ["index-wrong"]
    assert keys(NONE.format("torch==2.5.1"), os="windows", python="3.14") == ["python-too-new-for-wheel"]
    assert keys(NONE.format("torch==2.9.0"), os="linux", python="3.9") == ["python-unsupported-for-wheel"]


@pytest.mark.parametrize(
    ("log", "best"),
    [
        (
            "Ignored the following versions that require a different python version: 1.26.0 Requires-Python <3.13\n"
            + NONE.format("numpy==1.26.0"),
            "uv venv --python 3.12",
        ),
        ("ERROR: Package 'foo' requires a different Python: 3.13.1 not in '<=3.11,>=3.9'", "uv venv --python 3.11"),
    ],
)
def test_a_bound_that_the_installer_names_tells_the_newest_python(log: str, best: str) -> None:
    """The Python that is advised is the newest within the bound that the log tells."""
    (found, *_others) = diagnose(read_log(log), Machine(os="linux", python="3.13"))
    assert any(best in command for command in found.remedies[0].commands)


def test_what_excludes_a_release_is_decided_by_the_facts() -> None:
    """One message has another cause on another machine."""
    log = NONE.format("torch==2.6.0")
    nvidia = (Gpu(vendor=Vendor.NVIDIA, name="RTX 3060"),)
    assert keys(log, os="linux", arch="x86_64", python="3.12", libc="musl 1.2") == ["musl-system"]
    assert keys(log, os="linux", arch="x86_64", python="3.12", glibc="2.12") == ["glibc-too-old"]
    assert keys(log, os="windows", python="3.12", python_bits=32, gpus=nvidia) == ["python-32bit"]
    assert keys(log, os="macos", arch="x86_64", python="3.12") == ["torch-no-intel-mac-wheel"]
    assert keys(NONE.format("torch==2.6.0+cu126"), os="macos", arch="arm64", python="3.12") == ["cuda-wheel-on-mac"]


def test_the_offered_versions_tell_a_python_that_nobody_named() -> None:
    """Releases that begin with the first one for a Python give that Python away; the user is asked to confirm it."""
    (found,) = diagnose(
        "ERROR: Could not find a version that satisfies the requirement torch==1.13.1 (from versions: 2.2.0, 2.2.1)"
    )
    assert found.key == "python-too-new-for-wheel"
    assert found.remedies[0].commands == ("python -VV",)
    assert any("uv venv --python 3.11" in command for remedy in found.remedies for command in remedy.commands)


@pytest.mark.parametrize(
    "text",
    [
        "python 3.14 and torch==2.5.0: pip finds no matching version",
        "I cannot install torch 2.3.1 with Python 3.13",
        "python3.13 装不上 torch==2.0.1",
        "在3.14的Python里安装torch-directml，提示没有合适的版本",
    ],
)
def test_prose_is_judged_by_the_same_facts(text: str) -> None:
    """Package, version and Python are found wherever they stand, in English and Chinese."""
    assert keys(text, os="windows") == ["python-too-new-for-wheel"]


@pytest.mark.parametrize(
    "text",
    [
        "I cannot install torch 2.9.0 with Python 3.12",  # served: nothing is known against it
        "python 3.14 works well with torch 2.9.0",
        "ERROR: No matching distribution found for my-own-package==1.2",
        'requires-python = ">=3.8,<3.12"\ndependencies = ["torch==2.0.1"]',
    ],
)
def test_what_the_facts_do_not_explain_is_left_alone(text: str) -> None:
    """No cause is invented for a package, a Python or a bound that is fine or unknown."""
    assert keys(text, os="linux", arch="x86_64", python="3.12") == []


def test_a_huge_log_keeps_what_the_installers_say() -> None:
    """The lines that are read survive when a log of megabytes is cut down."""
    noise = "".join(
        f"step {number}: loss {number / 7:.6f} of the training goes down and down\n" for number in range(30_000)
    )
    log = noise + f"Looking in indexes: {TORCH}/cuda128\n" + NONE.format("torch") + noise
    assert len(log) > 10**6
    assert [one.key for one in diagnose(log, Machine(os="linux", python="3.12"))] == ["index-wrong"]


# Real failures, made on this machine with the tools that are here.
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="these failures are made on Linux")
TOOLS = ("python -m pip", "uv pip")


@on_linux
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("slip", sampled(["cuda128", "cu12.8", "cu128/torch"], 3))
def test_a_misspelt_tag_is_mended_by_the_right_address(stage: Stage, tool: str, slip: str) -> None:
    """Pip and uv find nothing at an index that was never there; the address that was meant has the package."""
    add_torch(stage.torch, "2.9.0", "cu128", python="311")
    stage.stands_for = {stage.torch.url.replace("/simple", f"/whl/{slip}"): f"{TORCH}/{slip}", **stage.stands_for}
    found = stage.fails(f"{tool} install torch --index-url {TORCH}/{slip}")
    assert found.key == "index-wrong"
    stage.mended(found.remedies[0])


@on_linux
def test_a_page_for_people_is_no_index(stage: Stage) -> None:
    """Pip skips a web page; its own index has the package."""
    stage.pypi.add("torch", "2.9.0")
    stage.torch.trouble["torch"] = "page"
    stage.stands_for = {stage.torch.url: f"https://pypi.{ORG}/project", stage.pypi.url: PYPI}
    found = stage.fails(f"python -m pip install torch --index-url https://pypi.{ORG}/project")
    assert found.key == "index-wrong"
    stage.mended(found.remedies[0])


@on_linux
def test_a_misspelt_host_is_mended_by_the_right_one(stage: Stage) -> None:
    """Nobody answers at the misspelt host; the host that was meant has the package."""
    add_torch(stage.torch, "2.9.0", "cu128", python="311")
    stage.stands_for = {"http://127.0.0.1:9/whl/cu128": "https://download.pytroch.org/whl/cu128", **stage.stands_for}
    found = stage.fails("python -m pip install torch --index-url https://download.pytroch.org/whl/cu128")
    assert found.key == "index-wrong"
    stage.mended(found.remedies[0])


@on_linux
def test_a_mirror_without_the_package_is_left_for_the_original(stage: Stage) -> None:
    """A copy of the index that answers 404 is no reason to change Python."""
    stage.pypi.add("torch", "2.9.0")
    stage.stands_for = {stage.torch.url: "https://mirror.example/simple", stage.pypi.url: PYPI}
    found = stage.fails("python -m pip install torch --index-url https://mirror.example/simple")
    assert found.key == "mirror-without-files"
    stage.mended(found.remedies[0])


@on_linux
def test_a_listed_file_that_a_mirror_lacks_is_left_for_the_original(stage: Stage) -> None:
    """The page lists the wheel, and the wheel itself is not there."""
    stage.pypi.add("torch", "2.9.0")
    stage.torch.add("torch", "2.9.0")
    stage.torch.upstream = stage.pypi.url.replace("/simple", "/packages")
    stage.stands_for = {
        stage.torch.upstream: "https://mirror.example/packages",
        stage.torch.url: "https://mirror.example/simple",
        stage.pypi.url: PYPI,
    }
    found = stage.fails("python -m pip install torch==2.9.0 --index-url https://mirror.example/simple")
    assert found.key == "mirror-without-files"
    stage.mended(found.remedies[0])


@on_linux
@pytest.mark.parametrize("tool", TOOLS)
def test_a_release_that_an_index_never_had_comes_from_another(stage: Stage, tool: str) -> None:
    """The newer CUDA's index has no such release; the remedy names the index that has it."""
    add_torch(stage.torch, "2.9.0", "cu128", python="311")
    add_torch(stage.pypi, "2.5.1", "cu124", python="311")
    stage.stands_for = {stage.torch.url: f"{TORCH}/cu128", stage.pypi.url: f"{TORCH}/cu124"}
    found = stage.fails(f"{tool} install torch==2.5.1 --index-url {TORCH}/cu128")
    assert found.key == "release-not-on-index"
    stage.mended(found.remedies[0], 'python -c "import torch; assert torch.__version__"')


@on_linux
def test_a_release_that_never_was_is_mended_by_the_nearest(stage: Stage) -> None:
    """A version that nobody published is told so."""
    stage.pypi.add("torch", "2.6.0")
    found = stage.fails(f"uv pip install torch==2.6.1 --index-url {PYPI}")
    assert found.key == "release-not-on-index"
    stage.mended(found.remedies[0], index=stage.pypi.url)


@on_linux
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("asked", "right"),
    [
        ("torchvison", "torchvision"),
        pytest.param("pytorch-cuda", "torch", marks=pytest.mark.full),
        pytest.param("bitsandbyte", "bitsandbytes", marks=pytest.mark.full),
    ],
)
def test_a_wrong_name_is_mended_by_the_right_one(stage: Stage, tool: str, asked: str, right: str) -> None:
    """A slip of the pen and a name that never was lead to the package that was meant."""
    stage.pypi.add(right, "1.0")
    found = stage.fails(f"{tool} install {asked} --index-url {PYPI}")
    assert found.key == "obsolete-package-name"
    stage.mended(found.remedies[0], f"uv pip show {right}", index=stage.pypi.url)


@on_linux
def test_the_index_that_uv_stops_at_is_passed_by(stage: Stage) -> None:
    """Uv looks no further than the first index that knows a name."""
    stage.torch.add("numpy", "1.0")
    stage.pypi.add("numpy", "2.0")
    found = stage.fails(f"uv pip install numpy==2.0 --default-index {PYPI} --index {TORCH}/cu128")
    assert found.key == "index-not-applied"
    stage.mended(found.remedies[0], "python -c \"import numpy; assert numpy.__version__ == '2.0'\"")


@on_linux
@pytest.mark.parametrize("tool", TOOLS)
def test_a_package_that_torch_s_index_does_not_carry_comes_from_pypi(stage: Stage, tool: str) -> None:
    """Only torch and what it needs is on torch's index."""
    stage.pypi.add("transformers", "5.0")
    found = stage.fails(f"{tool} install transformers --index-url {TORCH}/cu128")
    assert found.key == "index-wrong"
    stage.mended(found.remedies[0], "uv pip show transformers")


@on_linux
def test_a_wheel_for_another_python_is_told_from_a_misspelt_index(stage: Stage) -> None:
    """Uv names the Pythons on offer; the remedy makes an environment with one of them."""
    add_torch(stage.torch, "2.9.0", "cu128", python="312")
    found = stage.fails(f"uv pip install torch==2.9.0 --index-url {TORCH}/cu128")
    assert found.key == "python-too-new-for-wheel"
    assert "uv venv --python 3.12" in found.remedies[0].commands


@on_linux
@pytest.mark.parametrize("command", ["uv pip install {wheel}", "python -m pip install {wheel}"])
def test_a_file_for_windows_is_not_installed_on_linux(stage: Stage, command: str) -> None:
    """A wheel in hand says by its name what it is for."""
    wheel = add_torch(stage.torch, "2.9.0", "cu130", python="311", platform=WINDOWS)
    assert stage.fails(command.format(wheel=wheel)).key == "wheel-not-for-platform"


@on_linux
def test_a_build_for_another_system_is_planned_anew(stage: Stage) -> None:
    """Nothing but a wheel for Windows is on offer."""
    add_torch(stage.torch, "2.9.0", "cu128", python="311", platform=WINDOWS)
    found = stage.fails(f"uv pip install torch==2.9.0+cu128 --index-url {TORCH}/cu128")
    assert found.key == "wheel-not-for-platform"
    assert "win_amd64" not in str(found.remedies[0].commands)


def project(stage: Stage, dependency: str) -> Path:
    """Write a uv project that takes torch from the index that stands for torch's."""
    text = f"""[project]
name = "p"
version = "0"
requires-python = ">=3.11"
dependencies = ["{dependency}"]
[tool.uv.sources]
torch = {{ index = "t" }}
[[tool.uv.index]]
name = "t"
url = "{stage.torch.url}"
explicit = true
[[tool.uv.index]]
url = "{stage.pypi.url}"
default = true
"""
    path = stage.folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    stage.env.pop("UV_NO_CONFIG")
    stage.env.pop("VIRTUAL_ENV")
    return path


@on_linux
def test_a_lock_of_another_system_is_written_anew(stage: Stage) -> None:
    """The locked build is for Windows alone; locking here takes one that this system has."""
    add_torch(stage.torch, "2.8.0", "cu128", python="311", platform=WINDOWS)
    project(stage, "torch")
    stage.does("uv lock")
    add_torch(stage.torch, "2.9.0", "cu128", python="311", platform=LINUX)
    found = stage.fails("uv sync", "\nuv.lock was written on a Windows computer")
    assert found.key == "lock-for-other-platform"
    stage.does(found.remedies[0].commands[0])
    stage.does("uv sync")


@on_linux
def test_a_lock_older_than_the_project_is_written_anew(stage: Stage) -> None:
    """Uv refuses a lock file that does not know of a change."""
    add_torch(stage.torch, "2.8.0", "cu128", python="311")
    path = project(stage, "torch")
    stage.does("uv lock")
    path.write_text(path.read_text().replace('["torch"]', '["torch==2.8.0+cu128"]'))
    found = stage.fails("uv sync --locked")
    assert found.key == "lock-outdated"
    stage.mended(found.remedies[0], "uv sync --locked")


@pytest.mark.full
@on_linux
def test_pip_is_put_into_an_environment_without_it(stage: Stage) -> None:
    """Uv makes environments without pip."""
    stage.does(f'uv venv -q --python "{sys.executable}" bare')
    found = stage.fails(f"{stage.folder}/bare/bin/python -m pip install torch")
    assert found.key == "pip-missing-in-env"
    stage.mended(found.remedies[0], f"{stage.folder}/bare/bin/python -m pip --version")


@pytest.mark.full
@on_linux
def test_a_python_of_the_system_s_is_left_alone(stage: Stage) -> None:
    """A Python that its distribution manages is answered with an environment of one's own."""
    code, text = stage.run("uv pip install --python /usr/bin/python3 torch")
    if code == 0 or "externally managed" not in text:
        pytest.skip("no Python here is managed by its distribution")
    stage.pypi.add("torch", "2.9.0")
    found = stage.fails("uv pip install --python /usr/bin/python3 torch")
    assert found.key == "externally-managed-env"
    for command in found.remedies[0].commands:
        stage.does(
            f"PIP_INDEX_URL={stage.pypi.url} UV_DEFAULT_INDEX={stage.pypi.url} {command.replace('.venv', 'own')}"
        )
    stage.does('own/bin/python -c "import torch"')


@on_linux
@pytest.mark.parametrize("tool", TOOLS)
def test_an_altered_download_is_no_matter_of_the_index(stage: Stage, tool: str) -> None:
    """The checksum in the index does not fit the file; once the server is well, the remedy brings it."""
    stage.pypi.add("torch", "2.9.0")
    stage.pypi.trouble["torch"] = "hash"
    requirements = stage.folder / "requirements.txt"
    requirements.write_text("torch==2.9.0\n")
    found = stage.fails(f"{tool} install -r requirements.txt --index-url {PYPI}")
    assert found.key == "download-hash-mismatch"
    stage.pypi.trouble.clear()
    command = next(command for command in found.remedies[0].commands if "install" in command)
    stage.does(f"PIP_INDEX_URL={stage.pypi.url} UV_DEFAULT_INDEX={stage.pypi.url} {command}")
    stage.does('python -c "import torch"')


@on_linux
def test_what_the_real_tools_print_holds_one_record_each(stage: Stage) -> None:
    """Failures of the tools that run here are read whole: package, version and, with uv, the tags."""
    add_torch(stage.torch, "2.9.0", "cu128", python="312")
    _code, pip = stage.run(f"python -m pip install torch==2.6.0 --index-url {TORCH}/cu128")
    _code, uv = stage.run(f"uv pip install torch==2.9.0 --index-url {TORCH}/cu128")
    (by_pip,), (by_uv,) = failures(read_log(pip).text), failures(read_log(uv).text)
    assert (by_pip.package, by_pip.wanted, by_pip.offered) == ("torch", "==2.6.0", ())
    assert (by_uv.package, by_uv.lacks, by_uv.running, by_uv.tags) == ("torch", "python", "cp311", ("cp312",))
    assert re.search(r"cu128", json.dumps([one.url for one in addresses(read_log(pip))]))
