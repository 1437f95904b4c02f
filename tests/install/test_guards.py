"""What is refused or told before an installation, and what keeps it right afterwards: pure checks, and a real pip."""

from __future__ import annotations

import configparser
import dataclasses
import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from install.faults import pristine
from install.workbench import PYTHON, Bench

from assistant.host.files import full_path
from assistant.host.live import LiveHost
from assistant.host.lock import Lock
from assistant.host.pip_settings import read_uv_settings
from assistant.install import EnvironmentFolder, contents
from assistant.install.conflicts import find_conflicts
from assistant.install.contents import delete_downloads, list_missing_large
from assistant.install.environments import check_path, find_plan_target
from assistant.install.guards import (
    FOLDER,
    add_to_pip_configuration,
    remove_from_pip_configuration,
    without_variables,
    write_variables,
)
from assistant.install.installation import prepare
from assistant.install.kernel import remove_kernel
from assistant.install.site import Distribution, Site, interpreter
from assistant.install.uv import check_index_url, resolve
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.finding import Severity
from assistant.model.plan import Backend, Plan, check_requirement
from assistant.model.record import replace
from assistant.model.report import Progress
from assistant.model.shell import command_line


def site(*packages: str, requires: dict[str, tuple[str, ...]] | None = None, **facts: object) -> Site:
    """Describe an environment by hand."""
    own = []
    for package in packages:
        name, _, version = package.partition("==")
        needs = (requires or {}).get(name, ())
        own.append(Distribution(name=name, version=version, requires=needs, place="/env/lib/site-packages"))
    base = {"prefix": "/env", "base_prefix": "/usr", "python": "/env/bin/python", "version": "3.12.1"}
    return Site(**{**base, "purelib": "/env/lib/site-packages", "distributions": tuple(own), **facts})


@pytest.mark.parametrize(
    ("here", "coming", "key"),
    [
        (site("xformers==0.1", requires={"xformers": ("torch==2.6.0",)}), {"torch": "2.9.0+cu126"}, "torch-pinned"),
        (site("pandas==2.0", requires={"pandas": ("numpy<2",)}), {"numpy": "2.1"}, "requirement-broken"),
        (site(managed=True), {}, "externally-managed"),
        (site(pythonpath="/opt/libs"), {}, "pythonpath-leak"),
        (site(pip="/usr/bin/python3"), {}, "foreign-pip"),
        (site(prefix="/home/ada/setup/.assistant/python3.12-1-2"), {}, "assistants-own-environment"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_conflict_is_found_with_its_fix(here: Site, coming: dict[str, str], key: str) -> None:
    """Each kind of conflict has its own key, one sentence, and a remedy."""
    found = find_conflicts(here, coming)
    assert [finding.key for finding in found] == [key]
    assert str(found[0].text).endswith(".")
    assert str(found[0].remedies[0].text).endswith(".")


def test_a_command_that_helps_survives_a_gap_in_a_path() -> None:
    """Pasted into a shell, a path with a gap in it is one word."""
    twice = tuple(
        Distribution(name="numpy", version=version, place="/my env/lib/site-packages") for version in ("1", "2")
    )
    here = site(prefix="/my env", python="/my env/bin/python", pip="/usr/bin/python3", distributions=twice)
    found = {finding.key: finding.remedies[0].commands for finding in find_conflicts(here, {})}
    assert found == {
        "package-installed-twice": (command_line(["/my env/bin/python", "-m", "pip", "uninstall", "-y", "numpy"]),),
        "foreign-pip": (command_line(["/my env/bin/python", "-m", "pip"]),),
    }


def test_a_record_that_no_text_is_lists_no_files(tmp_path: Path) -> None:
    """A power cut leaves bytes of anything in it: the package is refused in a sentence, or counts as not in place."""
    record = tmp_path / "RECORD"
    record.write_bytes(b"numpy/__init__.py,sha256=\xff\xfe,3\n")
    numpy = Distribution(name="numpy", version="1.0", record=str(record), place=str(tmp_path))
    here = site(prefix=str(tmp_path), distributions=(numpy,))
    assert here.version_with_most_files("numpy") == "1.0"
    with pytest.raises(BadInput, match="does not list its files"):
        here.installed_files(["numpy"])


def test_what_torch_needs_is_installed_and_torch_left_as_it_is() -> None:
    """Without it torch fails, so that it is an error; what another package needs is a warning."""
    sympy = {"torch": ("sympy>=1.13",), "einops": ("sympy>=1.13",)}
    told = {}
    for package in ("torch==2.9.0", "einops==0.8"):
        (found,) = find_conflicts(site(package, "sympy==1.12", requires=sympy), {})
        (command,) = found.remedies[0].commands
        told[package] = (found.key, found.severity, command.partition(" --upgrade ")[2].strip("'"))
    assert told == {
        "torch==2.9.0": ("requirement-broken", Severity.ERROR, "sympy>=1.13"),
        "einops==0.8": ("requirement-broken", Severity.WARNING, "sympy>=1.13"),
    }


def test_a_systems_own_python_is_refused_before_its_packages_are_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a resolver, and reads what would be changed, to learn that nothing may be."""
    found = (Path("/env"), site(managed=True))
    monkeypatch.setattr("assistant.install.installation.find_plan_target", lambda *_: found)
    monkeypatch.setattr("assistant.install.installation.resolve_target", lambda *_: found[0])
    plan = Plan(backend=Backend.CPU, variant="cpu", torch="9.0", python="3.12")
    with pytest.raises(BadInput, match="belongs to the system"):
        prepare(plan, "kernel", SimpleNamespace(host=None))


def test_torch_in_the_user_site_shadows(tmp_path: Path) -> None:
    """A torch that every environment sees is named with its folder."""
    torch = Distribution(name="torch", version="2.0", place=str(tmp_path))
    here = site(user_site=str(tmp_path))
    found = find_conflicts(replace(here, distributions=(torch,)), {})
    assert [finding.key for finding in found] == ["user-site-shadow"]
    assert str(tmp_path) in str(found[0].text)


@pytest.mark.parametrize(
    "here",
    [
        site("torch==2.9.0+cu126", "torchvision==0.24.0+cu126", "numpy==2.1.0", "onnxruntime-gpu==1.20"),
        site("onnxruntime==1.20", "onnxruntime-extensions==0.10"),
        site("a==1", requires={"a": ("torch; extra == 'gpu'", "nonsense ==")}),
        site("torchmetrics==1.0"),
        site(pip="/env/bin/python3.12"),
    ],
)
def test_what_goes_together_raises_nothing(here: Site) -> None:
    """No finding without a reason."""
    assert find_conflicts(here, {"torch": "2.9.0+cu126"}) == ()


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="there pip is a program")
@pytest.mark.parametrize(
    ("script", "severity", "named"),
    [
        ("#!/usr/bin/python3 -sP\n", Severity.WARNING, "/usr/bin/python3"),
        (
            '#!/bin/sh\n\'\'\'exec\' "/other place/bin/python3" "$0" "$@"\n',
            Severity.WARNING,
            "/other place/bin/python3",
        ),
        ('#!/bin/sh\n\'\'\'exec\' "{bin}/python3" "$0" "$@"\n', None, ""),
        ("#!{bin}/python3\n", None, ""),
        ("#!/usr/bin/env bash\nexec pyenv exec pip\n", Severity.INFO, "{script}"),
        ("#!/usr/bin/env python3\n", Severity.INFO, "{script}"),
    ],
)
def test_a_pip_is_that_of_another_python_only_where_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, severity: Severity | None, named: str
) -> None:
    """A shell script, as pyenv puts before every pip, is named itself; one for a path with a gap names its Python."""
    pip = tmp_path / "pip"
    names = {"bin": str(pristine() / "bin"), "script": str(pip)}
    pip.write_text(script.format(**names))
    pip.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = [one for one in find_conflicts(Site.ask(pristine(), LiveHost()), {}) if one.key == "foreign-pip"]
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert not found or f"{named.format(**names)}" in str(found[0].text)
    assert not found or ("another Python" in str(found[0].text)) is (severity is Severity.WARNING)


@pytest.mark.parametrize(
    "text",
    [
        "javascript:alert(1)",
        "/etc/passwd",
        "file:///etc/passwd",
        "https://",
        "https://joe:secret@",
        "https://a.example/simple; rm -rf /",
        "https://a.example/`id`",
        "ftp://a.example/",
        "--index-url=https://a.example",
        "https://a.example/\nsimple",
        "",
    ],
)
def test_what_is_no_index_is_refused(text: str) -> None:
    """One sentence, without the password."""
    with pytest.raises(BadInput, match="not the address of a package index") as refused:
        check_index_url(text)
    assert "secret" not in str(refused.value.message)
    assert refused.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "--index-url https://a.example",
        "-r /etc/passwd",
        "torch; rm -rf /",
        "torch && id",
        "torch\nnumpy",
        "$(id)",
        "torch @ javascript:alert(1)",
        "torch ==",
        "../torch",
        "timm===1`id`",
        "timm; platform_version != '\\u202e'",
        "timm; platform_version != '\\n--index-url https://a.example/simple'",
        "timm; platform_version != '\\\\'",
        "",
    ],
)
def test_what_is_no_requirement_is_refused(text: str) -> None:
    """Options, shell characters, paths, and what a condition hides in escapes never reach an installer."""
    with pytest.raises(BadInput, match="is not a requirement"):
        check_requirement(text)


@pytest.mark.parametrize(
    "changes",
    [
        {"index_url": "/etc"},
        {"indexes": ("--index-url=https://a.example",)},
        {"requirements": ("-r /etc/passwd",)},
        {"constraints": ("numpy<2\n--index-url https://a.example",)},
        {"overrides": ("-r /etc/passwd",)},
    ],
)
def test_a_plan_is_checked_wherever_it_names_sources_and_bounds(bench: Bench, changes: dict[str, object]) -> None:
    """The files that uv and pip get have one line for each, and none of them is an option."""
    bench.plan = replace(bench.plan, **changes)
    with pytest.raises(BadInput):
        bench.resolution()


def test_paths_that_no_environment_can_have(bench: Bench, tmp_path: Path) -> None:
    """Too long, a loop of links, characters that cannot be seen: one sentence each; odd names are fine."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "loop" / "env", tmp_path / ("x" * 300), tmp_path / "a\nb", tmp_path / "a\x1b[0m"):
        with pytest.raises(BadInput, match="cannot hold an environment"):
            check_path(path)
        with pytest.raises(BadInput, match="cannot hold an environment"):
            find_plan_target(bench.plan, str(path), LiveHost())
    assert full_path(str(tmp_path / "nowhere" / "..")) == tmp_path
    for name in ("with space", "it's", 'qu"ote', "环境", "$HOME"):
        check_path(tmp_path / name)


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="the folders are named for a POSIX system")
def test_odd_names_of_folders_work(bench: Bench, tmp_path: Path) -> None:
    """No shell ever sees a path: the environment is made in it and its Python runs."""
    bench.target = tmp_path / "it's 'quoted'" / 'say "hi" $(touch x) `id` a;b&c|d'
    made = bench.make(bench.resolution())
    assert Site.ask(Path(made.path), LiveHost()).versions["torch"] == "9.0"


def pip_in(bench: Bench, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a real pip inside the environment, against the index on loopback, reading the environment's configuration."""
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    told = {**quiet, "PIP_INDEX_URL": bench.index.url, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "HOME": str(bench.target)}
    command = [sys.executable, "-m", "pip", "--python", interpreter(bench.target), *words]
    return subprocess.run(command, env=told, capture_output=True, text=True, check=False)


@pytest.mark.process
def test_a_later_pip_install_cannot_replace_torch(bench: Bench) -> None:
    """A real pip keeps the build: an upgrade does nothing, what needs another torch fails; a build replaced is told."""
    bench.make(bench.resolution())
    bench.index.add("torch", "10.0")
    bench.index.add("wants-ten", "1.0", requires=("torch>=10",))
    upgraded = pip_in(bench, "install", "--upgrade", "torch")
    assert upgraded.returncode == 0, upgraded.stderr
    assert Site.ask(bench.target, LiveHost()).versions["torch"] == "9.0"
    refused = pip_in(bench, "install", "wants-ten")
    assert refused.returncode != 0
    assert "(constraint) torch==9.0" in refused.stdout
    assert Site.ask(bench.target, LiveHost()).versions["torch"] == "9.0"
    (bench.target / "pip.conf").unlink()
    assert not [
        finding
        for finding in EnvironmentFolder.find_all_replaced_builds(LiveHost())
        if str(bench.target) in str(finding.text)
    ]
    pip_in(bench, "install", "--upgrade", "torch")
    assert Site.ask(bench.target, LiveHost()).versions["torch"] == "10.0"  # it was the file that held it
    found = [
        finding
        for finding in EnvironmentFolder.find_all_replaced_builds(LiveHost())
        if str(bench.target) in str(finding.text)
    ]
    assert [finding.key for finding in found] == ["build-replaced"]
    text = str(found[0].text)
    assert "torch 9.0 → 10.0. pip did that on " in text
    assert text.endswith(", when it installed torch.")
    assert found[0].remedies[0].commands == (f"assistant envs --mend '{bench.target}'",)


@pytest.mark.process
def test_uv_keeps_to_the_constraints_in_a_notebook(bench: Bench) -> None:
    """With the variables that the kernel sets, uv keeps the build too."""
    bench.target = bench.target.parent.parent / "plain"
    bench.make(bench.resolution())
    bench.index.add("torch", "10.0")
    spec = next(bench.index.folder.parent.glob("JUPYTER_DATA_DIR/kernels/*/kernel.json"))
    told = {**os.environ, **json.loads(spec.read_text())["env"], "UV_DEFAULT_INDEX": bench.index.url}
    command = [Path(sys.executable).with_name("uv"), "pip", "install", "-U", "torch", "--no-cache", "--python"]
    subprocess.run([*command, interpreter(bench.target)], env=told, capture_output=True, check=True)
    assert Site.ask(bench.target, LiveHost()).versions["torch"] == "9.0"
    environment = EnvironmentFolder.at(str(bench.target))
    environment.unguard()
    assert "UV_CONSTRAINT" not in json.loads(spec.read_text())["env"]  # uv fails where the file is not there
    environment.guard(Site.ask(bench.target, LiveHost()))
    assert json.loads(spec.read_text())["env"] == {name: told[name] for name in json.loads(spec.read_text())["env"]}


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell activates it")
def test_uv_keeps_to_the_constraints_in_a_terminal(bench: Bench) -> None:
    """What the script of activation sets holds uv, also after another environment's; leaving takes it back."""
    bench.make(bench.resolution())
    bench.index.add("torch", "10.0")
    uv = Path(sys.executable).with_name("uv")
    lines = [
        f". '{bench.target}/bin/activate'",
        f"'{uv}' pip install -q -U torch --no-cache",
        "python -c 'import importlib.metadata as m; print(m.version(\"torch\"))'",
        "deactivate",
        'echo "after: $UV_CONSTRAINT"',
    ]
    told = {**os.environ, "UV_DEFAULT_INDEX": bench.index.url, "UV_CONSTRAINT": "file:///of/assistant-constraints.txt"}
    done = subprocess.run(["bash", "-c", "\n".join(lines)], env=told, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["9.0", "after: "], done.stderr
    own = subprocess.run(
        ["bash", "-c", f'{lines[0]}; deactivate; echo "$UV_CONSTRAINT"'],
        env={**told, "UV_CONSTRAINT": "mine.txt"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert own.stdout == "mine.txt\n"


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell activates it")
def test_anybodys_environment_keeps_its_torch_until_the_guard_is_off(bench: Bench, tmp_path: Path) -> None:
    """One made by uv, with settings of pip's of its own; afterwards each file is as it was, to the byte."""
    prefix, uv = tmp_path / "some env", Path(sys.executable).with_name("uv")
    told = {**os.environ, "UV_DEFAULT_INDEX": bench.index.url, "PIP_INDEX_URL": bench.index.url}
    subprocess.run([uv, "venv", "-q", "-p", sys.executable, prefix], check=True)
    subprocess.run([uv, "pip", "install", "-q", "--python", prefix, "torch==9.0"], env=told, check=True)
    (prefix / "pip.conf").write_bytes(b"# mine\n[install]\nno-compile = yes")
    before = {file: file.read_bytes() for file in (prefix / "pip.conf", *(prefix / "bin").glob("*activate*"))}
    bench.index.add("torch", "10.0")
    assistant = [sys.executable, "-m", "assistant", "guard", str(prefix)]
    said = subprocess.run([*assistant, "--yes"], capture_output=True, text=True, check=True).stdout
    assert "torch==9.0" in said
    upgrade = f". '{prefix}/bin/activate'; '{uv}' pip install -q -U torch --no-cache"
    subprocess.run(["bash", "-c", upgrade], env=told, check=True)
    bench.target = prefix
    assert pip_in(bench, "install", "torch>=10").returncode != 0
    assert Site.ask(prefix, LiveHost()).versions["torch"] == "9.0"
    bench.index.add("lib", "2.0", requires=("torch>=10",))
    bench.index.add("lib", "1.0", requires=("torch",))
    plan = [sys.executable, "-m", "assistant", "plan", "--into", str(prefix), "--pin"]
    quiet = {**told, "PIP_CONFIG_FILE": os.devnull}
    fits = subprocess.run([*plan, "lib"], env=quiet, capture_output=True, text=True, check=True)
    assert fits.stdout.splitlines() == [f"✓ torch 9.0 stays as it is in {prefix}.", "  lib 1.0 is added"]
    refused = subprocess.run([*plan, "lib>=2"], env=quiet, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "lib>=2 cannot be added: Because" in refused.stderr
    assert "torch" in refused.stderr
    subprocess.run([*assistant, "--off"], check=True, capture_output=True)
    assert {file: file.read_bytes() for file in before} == before
    subprocess.run(["bash", "-c", upgrade], env=told, check=True)
    assert Site.ask(prefix, LiveHost()).versions["torch"] == "10.0"


@pytest.mark.process
def test_applications_that_install_by_themselves_keep_the_build(bench: Bench, tmp_path: Path) -> None:
    """Uv that an application calls in its own folder keeps to it, with nothing activated; others get lines to paste."""
    uv, prefix = Path(sys.executable).with_name("uv"), tmp_path / "app" / "venv"
    told = {**os.environ, "UV_DEFAULT_INDEX": bench.index.url}
    subprocess.run([uv, "venv", "-q", "-p", sys.executable, prefix], check=True)
    subprocess.run([uv, "pip", "install", "-q", "--python", prefix, "torch==9.0"], env=told, check=True)
    bench.index.add("torch", "10.0")
    files = ("main.py", "comfy", "launch.py", "modules/launch_utils.py", "poetry.lock", "requirements.in")
    for name in files:
        (prefix.parent / name).parent.mkdir(exist_ok=True)
        (prefix.parent / name).touch()
    before = {path: path.is_file() and path.read_bytes() for path in prefix.parent.rglob("*")}
    environment = EnvironmentFolder.at(str(prefix))
    found = environment.guard(Site.ask(prefix, LiveHost()))
    lines = {str(one.text).partition(" installs by")[0]: one.remedies[0].commands[0] for one in found}
    assert lines.keys() == {"Stable Diffusion WebUI, Forge", "Poetry", "pip-tools"}
    assert all("9.0" in text or str(prefix) in text for text in lines.values())
    upgrade = [uv, "pip", "install", "-q", "-U", "torch", "--python", prefix]
    subprocess.run(upgrade, env=told, cwd=prefix.parent, check=True)
    assert Site.ask(prefix, LiveHost()).versions["torch"] == "9.0"
    environment.unguard()
    assert {path: path.is_file() and path.read_bytes() for path in prefix.parent.rglob("*")} == before
    subprocess.run(upgrade, env=told, cwd=prefix.parent, check=True)
    assert Site.ask(prefix, LiveHost()).versions["torch"] == "10.0"


@pytest.mark.process
def test_what_replaced_a_build_is_named_mended_and_undone(bench: Bench, tmp_path: Path) -> None:
    """By time and packages of the installation; what goes with the old build in no version leaves with the new one."""
    uv, prefix = Path(sys.executable).with_name("uv"), tmp_path / "env"
    told = {**os.environ, "UV_DEFAULT_INDEX": bench.index.url, "PIP_CONFIG_FILE": os.devnull}
    for name, version, needs in (
        ("torch", "10.0", ("numpy",)),
        ("torch", "8.0", ("numpy",)),
        ("newer", "2.0", ("middle", "torch>=10")),
        ("newer", "1.0", ()),
        ("middle", "1.0", ("torch",)),
        ("older", "1.0", ("torch==8.0",)),
        ("beside", "1.0", ("numpy", "torch; extra == 'gpu'")),
    ):
        bench.index.add(name, version, requires=needs)

    def run(*words: object) -> str:
        return subprocess.run(words, env=told, capture_output=True, text=True, check=True).stdout

    run(uv, "venv", "-q", "-p", sys.executable, prefix)
    for words, culprit, mended in (
        (["newer", "beside"], "newer", {"newer": "1.0", "middle": "1.0", "beside": "1.0"}),
        (["older", "beside"], "older", {"beside": "1.0"}),
        (["-U", "torch"], "torch", {}),
        ([bench.index.folder / "torch" / "torch-8.0-py3-none-any.whl"], "torch (file:///", {}),
    ):
        run(uv, "pip", "install", "-q", "--python", prefix, "torch==9.0")
        EnvironmentFolder.at(str(prefix)).guard(Site.ask(prefix, LiveHost()))
        for info in prefix.glob("lib/*/site-packages/*.dist-info"):
            os.utime(info, (0, 0))
        run(uv, "pip", "install", "-q", "--python", prefix, *words)
        replaced = Site.ask(prefix, LiveHost())
        (found,) = EnvironmentFolder.at(str(prefix)).find_replaced_builds(replaced, LiveHost())
        assert f" → {replaced.versions['torch']}. uv did that on " in str(found.text)
        assert f", when it installed {culprit}" in str(found.text)
        if culprit == "newer":
            doctor = [sys.executable, "-m", "assistant", "doctor", prefix, "--json"]
            seen = subprocess.run(doctor, env=told, capture_output=True, text=True, check=False).stdout
            assert f'"{str(found.text).partition(". ")[2]}"' in seen
        assistant = (sys.executable, "-m", "assistant", "envs", "--yes")
        run(*assistant, "--mend", prefix)
        after = Site.ask(prefix, LiveHost()).versions
        assert after == {"torch": "9.0", "numpy": "1.0", **mended}
        if "file" not in culprit:  # which no index has
            run(*assistant, "--undo", prefix)
            assert Site.ask(prefix, LiveHost()).versions == replaced.versions
        run(uv, "pip", "uninstall", "-q", "--python", prefix, *Site.ask(prefix, LiveHost()).versions)


@pytest.mark.process
def test_scripts_of_activation_get_variables_and_lose_them_whole(tmp_path: Path) -> None:
    """Those of uv and of Python's venv: once however often it is done, and byte for byte as before without them."""
    for maker in (
        ["uv", "venv", "-q", "--relocatable"],
        ["uv", "venv", "-q"],
        ["python", "-m", "venv", "--without-pip"],
    ):
        prefix = tmp_path / "-".join(maker).replace(" ", "")
        command = [str(Path(sys.executable).with_name(maker[0])), *maker[1:], str(prefix)]
        subprocess.run(command, check=True, capture_output=True)
        scripts = [file for file in (prefix / FOLDER).iterdir() if "activate" in file.name and file.suffix != ".py"]
        before = {file: file.read_bytes() for file in scripts}
        for value in ("file:///a%20b/assistant-constraints.txt", "file:///c/assistant-constraints.txt"):
            write_variables(prefix, {"UV_CONSTRAINT": value, "ODD": "a'b"})
        for file, text in before.items():
            changed = file.read_bytes().decode()
            assert "ODD" not in changed
            assert "a%20b" not in changed
            assert ("UV_CONSTRAINT" in changed) != file.name.startswith("Activate"), file  # Python's is another script
            assert without_variables(changed).encode() == text


def test_the_users_own_pip_settings_stay(tmp_path: Path) -> None:
    """What an environment's configuration says already is kept, and nothing is written twice."""
    already = b"[global]\nproxy = http://p%20q\n[install]\nconstraint = mine.txt\n"
    once = add_to_pip_configuration(already, tmp_path / "c c.txt")
    assert add_to_pip_configuration(once, tmp_path / "c c.txt") == once
    parser = configparser.RawConfigParser()
    parser.read_string(once.decode("ascii"))
    assert parser.get("global", "proxy") == "http://p%20q"
    assert parser.get("install", "constraint").split() == ["mine.txt", (tmp_path / "c c.txt").as_uri()]
    for_all = add_to_pip_configuration(b"[global]\nconstraint = mine.txt\n", tmp_path / "c c.txt")
    assert for_all.split(b"[install]")[1].split()[2:4] == [b"mine.txt", (tmp_path / "c c.txt").as_uri().encode()]
    assert all(remove_from_pip_configuration(text) != text for text in (once, for_all))
    assert remove_from_pip_configuration(once) == already


@pytest.mark.parametrize("encoding", ["gbk", "cp932", "cp1252", "utf-8"])
def test_paths_in_pips_settings_stay_to_the_byte(tmp_path: Path, encoding: str) -> None:
    """Pip reads them in the locale's encoding, whatever that is: halves of letters may look like blanks or signs."""
    halves = (bytes([first, last]) for first in (0x81, 0xB0) for last in (0x5C, 0x7C, 0x85, 0xA0))
    path = b"C:\\" + ("用户à".encode(encoding, "ignore")) + (b"".join(halves) if encoding == "gbk" else b"")
    told = add_to_pip_configuration(b"[global]\r\nfind-links = " + path + b"\r\n", tmp_path / "c.txt")
    assert b"find-links = " + path + b"\r\n" in told
    assert add_to_pip_configuration(told, tmp_path / "c.txt") == told


@pytest.mark.process
def test_a_password_of_uvs_own_configuration_is_used(bench: Bench, tmp_path: Path) -> None:
    """An index that asks for a password, known by the plan or by uv alone: all comes, and no word of the password."""
    secret = bench.index.url.replace("http://", "http://joe:s3cret@")
    of_the_plan = resolve(replace(bench.plan, index_url=secret), bench.uv())
    assert "s3cret" not in repr((of_the_plan, bench.events))
    bench.index.login = "joe:s3cret"
    file = tmp_path / "uv.toml"
    file.write_text(f'[[index]]\nurl = "{secret}"\ndefault = true\n', encoding="utf-8")
    told = {"UV_CONFIG_FILE": str(file), "UV_CACHE_DIR": str(tmp_path / "cache")}
    uv = dataclasses.replace(bench.uv(), environment=told, uv_indexes=read_uv_settings(file.read_text()).indexes)
    bench.uv, bench.plan = (lambda: uv), replace(bench.plan, index_url=None)
    resolution = bench.resolution()
    assert resolution.download > 0
    bench.make(resolution)
    assert "s3cret" not in repr((resolution, bench.events, uv.settings, uv))
    bench.index.login = "joe:another"
    delete_downloads()
    bench.target = tmp_path / "second"
    with pytest.raises(WorkFailed, match="HTTP 401"):
        bench.make(resolution)


@pytest.mark.process
def test_offline_without_the_files_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of the network when the user said so."""
    resolution, online = bench.resolution(), bench.uv()
    offline = dataclasses.replace(online, environment={**online.environment, "UV_OFFLINE": "1"})
    bench.index.requests.clear()
    assert resolve(bench.plan, offline).versions == resolution.versions  # from uv's cache; sizes are no reason to ask
    assert bench.index.requests == []
    bench.uv = lambda: offline
    for large in (0, contents.LARGE + 10**6):  # the assistant's to fetch, and uv's
        monkeypatch.setattr(contents, "LARGE", large)
        with pytest.raises(WorkFailed, match="is not on this machine"):
            bench.make(resolution)
    assert not bench.target.exists()


@pytest.mark.process
def test_what_stands_is_kept_where_it_fits(bench: Bench) -> None:
    """A version that an environment holds already is preferred to a newer one."""
    bench.index.add("numpy", "2.0")
    assert resolve(bench.plan, bench.uv()).versions["numpy"] == "2.0"
    resolution = resolve(bench.plan, bench.uv(), {"numpy": "1.0", "torch": "8.0"})
    assert resolution.versions == {"ipykernel": "7.0", "numpy": "1.0", "torch": "9.0"}
    assert [package.name for package in resolution.changes(site("numpy==1.0").versions)] == ["ipykernel", "torch"]


@pytest.mark.parametrize("text", ["kernel", "relative/folder", "./here", "../there", r"C:\Users\me\torch", "C:torch"])
def test_a_folder_that_is_typed_into_a_form_is_a_whole_path(text: str, tmp_path: Path) -> None:
    """Nobody sees there what a shorter one would start from; the word for the kernel's environment is none, either."""
    if os.name == "nt" and text[1:3] == ":\\":
        return
    with pytest.raises(BadInput, match="is not the full path of a folder on this system") as refused:
        full_path(text, relative=False)
    assert str(Path.home() / "pytorch") in str(refused.value.hint)
    assert full_path("~/torch", relative=False) == Path.home() / "torch"
    assert full_path(str(tmp_path / "kernel"), relative=False) == tmp_path / "kernel"


@pytest.mark.process
def test_a_target_is_read_as_it_is_meant(bench: Bench) -> None:
    """The plan's own folder, a path, an environment, the kernel's own environment; another Python is refused."""
    host = LiveHost()
    assert find_plan_target(bench.plan, "", host)[1] is None
    here, stands = find_plan_target(bench.plan, "kernel", host)
    assert stands is not None
    assert str(here) == sys.prefix
    made = bench.make(bench.resolution())
    assert EnvironmentFolder(Path(made.path)).exists
    assert find_plan_target(bench.plan, made.path, host)[1].versions["torch"] == "9.0"
    assert Site.ask(EnvironmentFolder.from_target(made.path, host).path, host).minor == PYTHON
    assert site(version="3.13.2t").minor == "3.13t"
    with pytest.raises(BadInput, match=r"The plan is for Python 2\.7"):
        find_plan_target(replace(bench.plan, python="2.7"), made.path, host)


@pytest.mark.process
def test_made_environments_are_listed_and_removed(bench: Bench) -> None:
    """It is listed with its kernel and its size; its kernel's name removes it, or its folder does."""
    resolution = bench.resolution()
    made = bench.make(resolution)
    (found,) = EnvironmentFolder.list_made()
    assert (str(found.path), found.kernels) == (made.path, ("torch-cpu-9.0",))
    assert found.size > 1000
    EnvironmentFolder.named("torch-cpu-9.0").remove()
    assert not bench.target.exists()
    assert not list(bench.index.folder.parent.glob("JUPYTER_DATA_DIR/kernels/*"))
    made = bench.make(resolution)
    remove_kernel(str(made.kernel), Path(made.python))
    assert EnvironmentFolder.list_made() == []
    EnvironmentFolder.named(made.path).remove()
    assert not bench.target.exists()
    with pytest.raises(BadInput, match="is not an environment that the assistant made"):
        EnvironmentFolder.named(made.path).remove()


@pytest.mark.process
def test_only_what_the_assistant_made_is_removed(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the user's that happens to bear the name stays, and a name that two have is no name."""
    resolution, folder = bench.resolution(), tmp_path / "work"
    (folder / "thesis").mkdir(parents=True)
    monkeypatch.chdir(folder)
    with pytest.raises(BadInput, match="not an environment that the assistant made"):
        EnvironmentFolder.named("thesis").remove()
    assert (folder / "thesis").is_dir()
    for parent in ("one", "two"):
        bench.target = tmp_path / parent / "env"
        bench.make(resolution)
    with pytest.raises(BadInput, match="2 environments are called 'env'"):
        EnvironmentFolder.named("env").remove()
    EnvironmentFolder.named(str(tmp_path / "one" / "env")).remove()
    assert EnvironmentFolder.named("env").path == tmp_path / "two" / "env"


@pytest.mark.process
def test_downloads_are_counted_and_can_be_deleted(bench: Bench) -> None:
    """Progress ends with all bytes of all wheels and how fast it was; deleted, they would be fetched anew."""
    resolution = bench.resolution()
    bench.make(resolution)
    told = [event for event in bench.events if isinstance(event, Progress) and event.unit == "bytes"]
    assert told[-1].done == told[-1].total == resolution.download
    assert told[-1].rate
    assert list_missing_large(resolution.packages) == []
    assert delete_downloads() == resolution.download
    assert len(list_missing_large(resolution.packages)) == 3
    assert delete_downloads() == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows locks by another call")
def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems know none: one sentence, and no file is left."""

    def none(_handle: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", none)
    with pytest.raises(WorkFailed, match="No locks available"):
        Lock(tmp_path / "lock").take()
    assert list(tmp_path.iterdir()) == []
