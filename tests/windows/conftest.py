"""A Windows with the project unpacked on it, as the tests of this folder share it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from served import browser, browser_path, context, page, pytest_runtest_makereport
from windows.obtain import CACHE, Missing, obtain
from windows.wine import PYTHON, Done, Wine

__all__ = ["browser", "browser_path", "context", "page", "pytest_runtest_makereport"]  # fixtures and a hook

ROOT = Path(__file__).parents[2]
NOT_UNPACKED = (".git", ".assistant", "__pycache__", ".*_cache", ".hypothesis", "failures", "dist", "*.egg-info")
PROJECT = r"C:\新建 文件夹\torch-setup-assistant"


@pytest.fixture(scope="session")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wine]:
    """Give a fresh copy of the prefix; these tests fail, and are never skipped, where none can be had."""
    try:
        finished = obtain()
    except Missing as error:
        pytest.fail(str(error), pytrace=False)
    prefix = tmp_path_factory.mktemp("windows") / "prefix"
    shutil.copytree(finished, prefix, symlinks=True, copy_function=_linked_or_copied)
    wine = Wine(prefix, UV_CACHE_DIR="Z:" + str(CACHE / "uv").replace("/", "\\"))
    wine.begin()
    yield wine
    wine.close()
    shutil.rmtree(prefix)


def _linked_or_copied(source: str, target: str) -> None:
    """Link the 700 MB of Wine's own libraries, to which nobody writes, where the file system can; copy all else."""
    if "/drive_c/windows/" in source and source.endswith((".dll", ".exe")):
        with suppress(OSError):
            os.link(source, target)
            return
    shutil.copy2(source, target)


@pytest.fixture(scope="session")
def project(windows: Wine) -> str:
    """Unpack the project into a folder with a space and Chinese letters in its name; name that folder."""
    shutil.copytree(ROOT, windows.path(PROJECT), ignore=shutil.ignore_patterns(*NOT_UNPACKED))
    return PROJECT


@pytest.fixture(scope="session")
def assistant(windows: Wine, project: str) -> Callable[..., Done]:
    """Give a function that starts the assistant as a person does: `python start.py …` in the project's folder."""

    def run(*words: str, code_page: int = 936) -> Done:
        return windows.run(PYTHON, "start.py", *words, folder=project, code_page=code_page)

    return run


@pytest.fixture(scope="session")
def private(windows: Wine, assistant: Callable[..., Done], project: str) -> Callable[[str], str]:
    """Give a function that names the Python of the private environment for some kind of command, made where missing."""

    def python(kind: str) -> str:
        done = assistant("lab" if kind == "lab" else "detect", "--help")
        assert done.code == 0, done
        folder = next(windows.path(project).glob(f".assistant/python*-{kind}"))
        return rf"{project}\.assistant\{folder.name}\Scripts\python.exe"

    return python


@pytest.fixture(scope="session")
def installed(assistant: Callable[..., Done]) -> Done:
    """Set PyTorch up for the processor, everything under Chinese names; give what was printed."""
    done = assistant("setup", "--yes", "--backend", "cpu", "--target", TARGET, "--to", EXPORTED)
    if done.code:
        pytest.fail(f"the setup ended with {done.code}:\n{done.out}{done.err}", pytrace=False)
    return done


TARGET, EXPORTED = r"C:\环境\torch cpu", r"C:\导出"
