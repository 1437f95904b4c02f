"""Works out what is wrong with the environment that an installer or Jupyter works in, and with what was installed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from assistant.catalog import load_catalog, number
from assistant.diagnose.attempts import lock_commands, unjoined_text
from assistant.diagnose.facts import LogContext
from assistant.diagnose.index_addresses import addresses, classify_address
from assistant.diagnose.installer_output import CONDA_GLIBC
from assistant.diagnose.log import Log
from assistant.diagnose.projects import torch_alone_from_its_index
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
    """Yield the causes that a log shows of pip, Jupyter, glibc, a lock file or a build that is missing or wrong."""
    yield from _missing_pip_causes(log)
    launch = _TOOL.search(log.text)
    if launch and _ABSENT.search(log.text) and not _NO_PIP_TOLD.search(log.text):
        yield _environment_cause("jupyter-tool-env", log, launch.start())
    glibc = CONDA_GLIBC.search(log.text)
    required = (glibc[1] or glibc[2]) if glibc else ""
    if glibc and not (machine.glibc and number(machine.glibc) >= number(required)):
        yield _environment_cause("glibc-too-old", log, glibc.start(), glibc=required)
    if lock := _STALE_LOCK.search(log.text):
        yield _environment_cause("lock-outdated", log, lock.start(), **lock_commands(log.text))
    yield from _wrong_build_causes(log, machine)
    yield from _source_causes(log, machine)


def _environment_cause(key: str, log: Log, at: int, **names: str) -> Cause:
    """Return a cause at the line of a position; names without a value are left out."""
    return Cause(key, "installer", (log.index_at(at),), {name: value for name, value in names.items() if value})


def _missing_pip_causes(log: Log) -> Iterator[Cause]:
    """Yield a cause if an environment has no pip; its `interpreter` is left out if it is the system's or has blanks."""
    if match := _NO_PIP.search(log.text):
        line = log.lines[log.index_at(match.start(1))][1]  # as it was written; the text is in lower case
        start = line.lower().find(match[1])
        python = line[start : start + len(match[1])] if start >= 0 else match[1]
        is_system = re.match(r"/usr/(?:local/)?bin/python|python[\d.]*$", match[1])
        interpreter = "" if is_system or " " in python else python
        yield _environment_cause("pip-missing-in-env", log, match.start(1), interpreter=interpreter)
    elif match := _NO_PIP_TOLD.search(log.text):
        yield _environment_cause("pip-missing-in-env", log, match.start())


def _wrong_build_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield a cause if torch's CPU build came although an index of one GPU build is named: it was not read, or lost."""
    if replaced_torch(log.text):  # it was applied, and lost later
        return
    variants = [match[1] for match in _BUILD.finditer(log.text)]
    urls = (address.url for address in addresses(unjoined_text(log)) if address.asked)
    variants += [index.variant for url in urls if (index := classify_address(url)).kind == "torch" and index.variant]
    tags = {tag for tag in variants if tag[:2] in {"cu", "ro", "xp"}}
    installed = list(_INSTALLED.finditer(log.text))
    if len(tags) != 1 or not installed:
        return
    version = installed[-1][1] or installed[-1][2]
    local = version.partition("+")[2]
    if local == "cpu" or (not local and machine.os == "windows"):
        tag = tags.pop()
        names = {"index": load_catalog().index_url(tag) or "", "tag": tag, "installed": version}
        yield _environment_cause(
            "index-not-applied", log, installed[-1].start() + 1, package="torch", requirement="torch", **names
        )


# deleted the venv and synced again     uv sync in this folder     in our pyproject
_BY_UV_PROJECT = re.compile(r"\buv (?:sync|lock|run)\b|\buv\.lock\b|\btool\.uv\b")
_HAS_INDEX = re.compile(
    r"(?:cuda|gpu|pytorch|torch|cu1\d\d)[^\n.]{0,30}\bindex\b|\bindex\b[^\n.]{0,60}(?:pyproject|toml|cu1\d\d|cuda)"
    r"|(?:索引|源)[^\n。]{0,20}pyproject|pyproject[^\n。]{0,30}(?:索引|源|cu1\d\d)"
)
_ON_ANOTHER = re.compile(r"\b(?:linux|ubuntu|debian|the server|our server|cluster)\b|服务器")
_GETS_CPU = re.compile(r"\+cpu\b|\bcpu (?:one|build|version|torch|wheel|only)|cpu-only|\bcpu again|cpu ?版")


def _source_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield a cause if a uv project gives torch its index on another system alone, or not to what comes with torch."""
    context = LogContext(log, machine)
    text = log.text
    project = _BY_UV_PROJECT.search(text)
    if project and machine.os == "windows" and "cpu" in f"{context.build}{text}":
        index, other, cpu = _HAS_INDEX.search(text), _ON_ANOTHER.search(text), _GETS_CPU.search(text)
        if index and other and (cpu or context.build == "cpu"):
            widened = "sys_platform == 'linux' or sys_platform == 'win32'"
            yield _environment_cause("index-not-applied", log, project.start(), package="torch", widened=widened)
    failure = _NO_OPERATOR.search(text)
    if failure and (names := torch_alone_from_its_index(context)):
        yield _environment_cause("index-not-applied", log, failure.start(), **names)


# RuntimeError: operator torchvision::nms does not exist
_NO_OPERATOR = re.compile(r"operator torch(?:vision|audio)::\w{2,40} does not exist")
