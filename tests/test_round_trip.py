"""A setup comes back from its exported configuration: same packages, same lock to the byte, nothing that differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from forked import Run
from packaging.pylock import Pylock
from refused import refused

from assistant.export.config import read_config

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the home of a user who has set up nothing yet."""
    return tmp_path_factory.mktemp("another home")


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    """Give a function that runs the command in that home."""

    def runner(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        places = {name: str(home / name) for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")}
        environment = {**os.environ, **places, "LANGUAGE": "en", "COLUMNS": "300"}
        return forked.run(*arguments, env=environment, **options)

    return runner


@pytest.fixture(scope="module")
def exported(cpu_setup: dict[str, object]) -> Path:
    """Give the folder that the first setup exported."""
    return Path(str(cpu_setup["exported"][0])).parent


@pytest.fixture(scope="module")
def applied(run: Run, home: Path, exported: Path) -> dict[str, object]:
    """Rebuild the setup from its configuration alone."""
    config = home / "assistant.toml"
    config.write_bytes((exported / "assistant.toml").read_bytes())
    done = run("apply", config, "--yes", "--json", "--target", home / "again")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_applied_to_the_letter(applied: dict[str, object], cpu_setup: dict[str, object]) -> None:
    """The same plan, the same packages, verified."""
    assert applied["exact"] is True
    assert not applied["changes"]
    assert applied["environment"]["packages"] == cpu_setup["environment"]["packages"]
    assert applied["report"]["device"] == "cpu"


def test_the_lock_is_the_same_to_the_byte(run: Run, applied: dict[str, object], home: Path, exported: Path) -> None:
    """What is exported from the rebuilt environment is the same lock, and a valid one with a hash for each package."""
    assert applied
    done = run("export", "--to", home / "second")
    assert done.returncode == 0, done.stderr
    text = (exported / "pylock.toml").read_bytes()
    assert (home / "second" / "pylock.toml").read_bytes() == text
    config = read_config((home / "second" / "assistant.toml").read_text(encoding="utf-8"))
    assert config.lock == read_config((exported / "assistant.toml").read_text(encoding="utf-8")).lock
    assert set(config.hashes) == set(config.environment.packages)
    assert str(home) not in text.decode()


def test_files_of_somebody_else_are_replaced_with_force_only(
    run: Run, applied: dict[str, object], tmp_path: Path
) -> None:
    """Nothing is written beside a foreign file, unless it is said."""
    assert applied
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    refused(run("export", "--to", tmp_path), 1, "Dockerfile", "--force")
    assert [path.name for path in tmp_path.iterdir()] == ["Dockerfile"]
    assert run("export", "--to", tmp_path, "--force").returncode == 0
    assert "python:" in (tmp_path / "Dockerfile").read_text("utf-8")


def test_uv_installs_the_exported_lock(exported: Path, applied: dict[str, object]) -> None:
    """Uv reads `pylock.toml`, and finds all of it in place; packaging finds it valid. pip is a tool, and in no lock."""
    import tomllib  # noqa: PLC0415 - used here alone

    Pylock.from_dict(tomllib.loads((exported / "pylock.toml").read_text("utf-8"))).validate()
    uv = [sys.executable, "-m", "uv", "pip", "sync", "--dry-run", "--preview", "--python"]
    done = subprocess.run(
        [*uv, applied["environment"]["python"], str(exported / "pylock.toml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    changes = [line for line in done.stderr.splitlines() if line.startswith((" - ", " + ", " ~ "))]
    assert [line.partition("==")[0] for line in changes] == [" - pip"], done.stderr


def test_nothing_differs_afterwards(run: Run, applied: dict[str, object], home: Path) -> None:
    """`check` is clean, and finds the environment by itself: it is the last one that was made."""
    assert applied
    done = run("check", home / "assistant.toml")
    assert (done.returncode, done.stdout.strip()) == (0, "Everything is as it was."), done.stdout + done.stderr


def test_a_changed_environment_is_named(run: Run, applied: dict[str, object], home: Path) -> None:
    """A package that was taken out and one that came are a line each; exit code 1; as JSON, too."""
    python = applied["environment"]["python"]
    uv = [sys.executable, "-m", "uv", "pip"]
    subprocess.run([*uv, "uninstall", "--python", python, "flatbuffers"], check=True, capture_output=True)
    done = run("check", home / "assistant.toml", "--target", home / "again", "--no-verify", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert told["clean"] is False
    assert [(row["kind"], row["name"], row["now"]) for row in told["drift"]] == [("package", "flatbuffers", None)]
    lines = run("check", home / "assistant.toml", "--no-verify").stdout
    assert "package flatbuffers: 25" in lines or "package flatbuffers:" in lines
    assert run("apply", home / "assistant.toml", "--yes", "--target", home / "again").returncode == 0
    assert run("check", home / "assistant.toml", "--no-verify").returncode == 0


def test_an_environment_that_is_gone_is_a_difference(run: Run, exported: Path, tmp_path: Path) -> None:
    """CI hears of it by the exit code."""
    done = run("check", exported / "assistant.toml", "--target", tmp_path / "nowhere")
    assert done.returncode == 1
    assert "is gone" in done.stdout


def test_on_other_hardware_it_says_what_changes(run: Run, exported: Path) -> None:
    """A recorded machine with a GPU gets a plan of its own, and nothing is installed for it."""
    done = run("apply", exported / "assistant.toml", "--replay", "linux-ubuntu2404-rtx4090", "--json")
    told = json.loads(done.stdout)
    assert told["exact"] is False
    assert {row["name"]: row["now"] for row in told["changes"]}["backend"] == "cuda"
    assert any(row["kind"] == "gpu" for row in told["machine"])
    read = run("apply", exported / "assistant.toml", "--replay", "linux-ubuntu2404-rtx4090").stdout
    assert f"→ PyTorch {told['plan']['torch']} for CUDA" in read
