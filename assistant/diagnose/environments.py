"""Works out what is wrong with the environment that an installer or Jupyter works in, and with what was installed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from assistant.catalog import load_catalog, number
from assistant.diagnose.attempts import lock_commands, own_text
from assistant.diagnose.index_addresses import addresses, judge
from assistant.diagnose.installer_output import CONDA_GLIBC
from assistant.diagnose.log import Log
from assistant.diagnose.rules import Cause
from assistant.model.machine import Machine
from assistant.parsers.mentioned import replaced_torch

# /home/ada/demo/.venv/bin/python: No module named pip
# C:\ComfyUI\.venv\Scripts\python.exe: No module named pip
_NO_PIP = re.compile(
    r"(?:^|[\s>$])((?:[a-z]:)?[^\s:'\"<>|]{0,200}python[\d.]{0,5}t?(?:\.exe)?): no module named pip\b(?![.\w])"
)
_NO_PIP_TOLD = re.compile(
    r"no module named '?pip'?(?![.\w])|(?:environment|venv|\benv\b)[^\n]{0,40}(?:has|have|with|contains) no pip\b"
    r"|without pip\b[^\n]{0,40}(?:environment|venv)|\bpip is (?:missing|not installed|not there)"
    r"|(?:没有|缺少|找不到) ?pip(?:模块)?(?![\w-])|pip ?(?:不存在|没有安装|未安装)"
)
# uvx jupyter lab; uv tool run jupyter; pipx run jupyterlab; uvx --with torch jupyter lab; uv tool install jupyterlab
_TOOL = re.compile(
    r"\b(?:uvx|uv tool (?:run|install)|pipx (?:run|install|inject)|uv run --(?:no-project|isolated))\b[^\n]{0,80}"
    r"\b(?:jupyter\w{0,4}|notebook|ipython|lab)\b"
    r"|(?:uv[/\\]tools|pipx[/\\]venvs)[/\\](?:jupyter|notebook|ipython)"
    r"|uv[/\\](?:cache[/\\])?archive-v\d[/\\][^\n]{0,200}ipykernel"
)
_ABSENT = re.compile(
    r"no module named|modulenotfound|importerror|can ?not (?:be )?(?:find|import|see|found)|can't (?:find|import|see)"
    r"|does ?n[o']t (?:find|see|know|have)|not found|missing|unable to import|fails? to import"
    r"|找不到|没有|导入失败|无法导入|不能导入"
)
# + torch==2.15.0+cpu     (uv)
# Successfully installed torch-2.15.0     (pip)
_INSTALLED = re.compile(
    r"(?:^|\n)[ \t]{0,8}\+ torch==(\d[\w.+]{2,40})|successfully installed [^\n]{0,1500}?\btorch-(\d[\w.+]{2,40})"
)
# index = "pytorch-cu130", https://download.pytorch.org/whl/cu130
_BUILD = re.compile(r"(?:/whl/|index\b[^\n]{0,30}?[\"'/_-]|torch[_-])(cu\d{3}|rocm\d[\d.]{0,5}|xpu)\b")
# error: The lockfile at `uv.lock` needs to be updated, but `--locked` was provided.
# pyproject.toml changed significantly since poetry.lock was last generated. Run `poetry lock` to fix the lock file.
_STALE_LOCK = re.compile(
    r"lockfile at [^\n]{1,80} needs to be updated|changed significantly since [\w.]{1,20} was last generated"
    r"|[\w.]{4,20} is not up to date with pyproject\.toml|lock file hash does ?n[o']t match"
)


def environment_causes(log: Log, machine: Machine) -> Iterable[Cause]:
    """Return what a log tells of pip, Jupyter, lock files and builds that an environment lacks or has wrong."""
    yield from _pip(log)
    tool = _TOOL.search(log.text)
    if tool and _ABSENT.search(log.text) and not _NO_PIP_TOLD.search(log.text):
        yield _cause("jupyter-tool-env", log, tool.start())
    glibc = CONDA_GLIBC.search(log.text)
    least = (glibc[1] or glibc[2]) if glibc else ""
    if glibc and not (machine.glibc and number(machine.glibc) >= number(least)):
        yield _cause("glibc-too-old", log, glibc.start(), glibc=least)
    if stale := _STALE_LOCK.search(log.text):
        yield _cause("lock-outdated", log, stale.start(), **lock_commands(log.text))
    yield from _index_not_applied(log, machine)


def _cause(key: str, log: Log, at: int, **names: str) -> Cause:
    return Cause(key, "installer", (log.index_at(at),), {name: value for name, value in names.items() if value})


def _pip(log: Log) -> Iterator[Cause]:
    if found := _NO_PIP.search(log.text):
        line = log.lines[log.index_at(found.start(1))][1]  # as it was written; the text is in lower case
        start = line.lower().find(found[1])
        python = line[start : start + len(found[1])] if start >= 0 else found[1]
        system = re.match(r"/usr/(?:local/)?bin/python|python[\d.]*$", found[1])
        typed = "" if system or " " in python else python
        yield _cause("pip-missing-in-env", log, found.start(1), interpreter=typed)
    elif found := _NO_PIP_TOLD.search(log.text):
        yield _cause("pip-missing-in-env", log, found.start())


def _index_not_applied(log: Log, machine: Machine) -> Iterator[Cause]:
    """Judge a build that came although the index of another one is named: the setting was not read, or lost."""
    if replaced_torch(log.text):  # it was applied, and lost later
        return
    wanted = [found[1] for found in _BUILD.finditer(log.text)]
    named = (each.url for each in addresses(own_text(log)) if each.asked)
    wanted += [one.variant for url in named if (one := judge(url)).kind == "torch" and one.variant]
    tags = {tag for tag in wanted if tag[:2] in {"cu", "ro", "xp"}}
    installed = list(_INSTALLED.finditer(log.text))
    if len(tags) != 1 or not installed:
        return
    version = installed[-1][1] or installed[-1][2]
    local = version.partition("+")[2]
    if local == "cpu" or (not local and machine.os == "windows"):
        tag = tags.pop()
        names = {"index": load_catalog().index_url(tag) or "", "tag": tag, "installed": version}
        yield _cause("index-not-applied", log, installed[-1].start() + 1, package="torch", requirement="torch", **names)
