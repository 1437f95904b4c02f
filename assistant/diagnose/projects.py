"""What mends a project of uv, Poetry, pixi or PDM: the lines of its manifest, and then the user's own command again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from assistant.catalog import load_catalog, number
from assistant.catalog.companions import carried_by_torch_index, known_names
from assistant.catalog.rows import CORE
from assistant.diagnose.facts import LogContext
from assistant.diagnose.index_addresses import addresses, classify_address
from assistant.diagnose.interpreters import Project, project_of_text

INSTALLERS = {"pip", "setuptools", "wheel", "uv"}  # what brings packages, and is none that somebody is after
PLATFORMS = {"windows": "win32", "macos": "darwin", "linux": "linux"}  # sys_platform in a marker
# PS D:\code\demo> uv add torch --index https://…     % poetry lock && poetry install     ╰─➤  uv sync
_TYPED = re.compile(
    r"(?P<prompt>^|(?:[$#%>➤❯➜)+✗»]|&&) {0,3})(?=(?P<line>(?:(?:uv|poetry|pdm|pixi)(?:\.exe)?"
    r" (?P<verb>sync|add|lock|install|update|run|pip install|pip sync)|(?:python[\d.]{0,5} -m )?pip3? install)\b"
    r" ?[^\n]{0,300}))"
)
_END = re.compile(r" (?:&&|\|\|?|;|#|2?>) |  |[;；，。→]|[.,:](?: |$)")
_PLAIN = re.compile(r"[A-Za-z0-9_.,/\\:@=+\[\]<>~!'#*-]{1,200}")
_INDEX_OPTIONS = {"--index", "--index-url", "--extra-index-url", "--default-index", "-i", "--find-links", "-f"}
_VALUED = {"--extra", "--group", "--no-group", "--only-group", "--package", "--python", "-p", "--with", "--without"}
_VALUED |= {"--only", "--extras", "-E", "-r", "-e", "-c", "--feature", "-G", "--directory", "--project"}
# torch = [{ index = "pytorch-cu128", marker = "sys_platform == 'linux'" }]     or only what is in braces
_MARKED = re.compile(
    r"^[\s+-]{0,8}((?:torch\w{0,6} ?= ?\[? ?)?\{ ?index ?= ?\"[\w.-]{2,40}\", ?marker ?="
    r" ?\"([^\"\n]{4,120})\"[^\n]{0,40}?),?$"
)
_INDEX_NAME = re.compile(r"\bindex ?= ?\"([\w.-]{2,40})\"|\[\[tool\.uv\.index\]\]\s{1,6}name ?= ?\"([\w.-]{2,40})\"")
_SOURCE = re.compile(r"\bsource ?= ?\"([\w.-]{2,40})\"")


# uv sync --extra cuda     uv sync --locked --extra=cu128     uv sync --group gpu
_EXTRA = re.compile(
    r"\buv sync(?: --[a-z-]{2,20})?[^\S\n]--(?:extra|group)[ =][\w-]{0,12}(?:cu|gpu|rocm|xpu)[\w-]{0,12}"
)


def project_names(context: LogContext, package: str = "") -> dict[str, str]:
    """Return the placeholders by which a project is mended, without those that a log does not tell.

    For a `package` that is built, `uv_build` or `pixi_build` below `pixi_options` lets its build see torch.

    `redo` is the user's own command, else the one that installs a project; `repeat` is the user's alone, or "".
    `pin_python` begins the command that lets the project use another Python, `pixi` that for pixi.
    For uv, `redo_extra` syncs the extra of a GPU build, `uv_source` and `uv_marker` widen a marker to this system,
    `uv_index` and `uv_torch` give torch's index to torch alone, `uv_here` admits this system; `redo_plain` is `redo`
    without indexes, `redo_best` with all indexes compared, `redo_links` with its index as a list of files.
    `pixi_index` and `mac_source` are lines of the manifest.
    """
    project = project_of_text(context.text)
    words = _typed_words(context, of_project=bool(project and project.sync))
    names = {"repeat": _joined(words)}
    if project is None and not words:
        return names
    by_pip = words[1:2] == ["pip"]
    redo = project.sync if project and project.sync and (by_pip or not words) else _joined(words)
    names |= {"redo": redo, "redo_plain": redo}
    is_project = bool(project and project.sync)
    if project and project.name == "pixi":
        names["pixi"] = "pixi add"
    if project and project.pin_python:
        names["pin_python"] = project.pin_python
    with_extra = _EXTRA.search(_written(context)) if is_project else None
    if with_extra:
        names["redo_extra"] = with_extra[0]
    if words and words[0] == "uv":
        names |= {} if by_pip and is_project else _uv_command_names(words, is_pip=by_pip)
    if project and is_project:
        names |= _manifest_names(context, project)
    if package and is_project and project and project.name == "uv":
        names["uv_build"] = f'{package} = [{{ requirement = "torch", match-runtime = true }}]'
    if package and project and project.name == "pixi":
        table = "[tool.pixi.pypi-options]" if "pyproject.toml" in context.text else "[pypi-options]"
        names |= {"pixi_options": table, "pixi_build": f'no-build-isolation = ["{package}"]'}
    return {name: value for name, value in names.items() if value or name == "repeat"}


def _typed_words(context: LogContext, *, of_project: bool) -> list[str]:
    """Return the words of the last command that installs packages, else of one that runs something; [] if none is.

    `of_project` leaves out those of pip, which a project does not use.
    """
    ran: list[str] = []
    for _number, line in reversed(context.log.lines):
        for match in reversed([*_TYPED.finditer(line)]):
            words = _safe_words(_END.split(match["line"], maxsplit=1)[0], typed=bool(match["prompt"]))
            if not words or (of_project and not match["verb"]):
                continue
            if match["verb"] != "run":
                return words
            ran = ran or words
    return ran


def _safe_words(text: str, *, typed: bool) -> list[str]:
    """Return a command's words up to the first that is prose; [] if a shell would read one of them otherwise.

    Where no prompt shows that it was `typed`, only names of packages, options and what is no plain word are taken.
    """
    try:
        words = shlex.split(text, posix="\\" not in text)
    except ValueError:
        return []
    words = [word.strip("\"'") for word in words]
    if len(words) < 2:  # noqa: PLR2004 - a tool and what it is to do
        return []
    by_pip = next((at for at, word in enumerate(words[:3]) if re.fullmatch(r"pip3?", word)), None)
    head = 2 if by_pip is None else by_pip + 2
    takes_packages = words[1] == "add" or by_pip is not None
    taken = words[:head]
    for previous, word in zip(words[head - 1 :], words[head:], strict=False):
        is_package = word in known_names() | CORE or bool(set(word) & set("=<>[/\\@"))
        is_argument = word.startswith("-") or previous in _VALUED | _INDEX_OPTIONS
        if not (is_argument or (typed and (takes_packages or words[1] == "run")) or (takes_packages and is_package)):
            break
        taken.append(word)
    packages = [word for word in taken[head:] if not word.startswith("-")]
    if takes_packages and {*packages} <= INSTALLERS:
        return []
    return taken if all(map(_PLAIN.fullmatch, taken)) else []


def _joined(words: list[str]) -> str:
    """Return words as a command, quoted where a shell would read them."""
    return " ".join(f'"{word}"' if set(word) & set("<>~![]#*") else word for word in words)


def _uv_command_names(words: list[str], *, is_pip: bool) -> dict[str, str]:
    """Return the placeholders of a command of uv with other indexes."""
    plain, links = [], []
    has_index = False
    for previous, word in zip(("", *words), words, strict=False):
        is_index = word.partition("=")[0] in _INDEX_OPTIONS
        has_index |= is_index
        if not is_index and previous not in _INDEX_OPTIONS:
            plain.append(word)
        links.append("--find-links" if word in _INDEX_OPTIONS else word)
    return {
        "redo_plain": _joined(plain),
        "redo_links": _joined(links) if has_index and ".html" in _joined(words) else "",
        "redo_best": f"{_joined(words)} --index-strategy unsafe-best-match" if is_pip else "",
    }


def _manifest_names(context: LogContext, project: Project) -> dict[str, str]:
    """Return the placeholders of lines in a project's manifest."""
    here = PLATFORMS.get(context.machine.os or "", "")
    tag = _torch_tag(context)
    index = (load_catalog().index_url(tag) or f"https://download.pytorch.org/whl/{tag}") if tag else ""
    if project.name == "uv":
        name = next((a or b for a, b in _INDEX_NAME.findall(_written(context))), f"pytorch-{tag}" if tag else "")
        also = [word for word in sorted({"torchvision", "torchaudio"}) if word in context.text]
        lines = ", ".join(f'{package} = {{ index = "{name}" }}' for package in ("torch", *also))
        return {
            "uv_source": _widened_source(context, here),
            "uv_marker": f"sys_platform == 'linux' or sys_platform == '{here}'" if here not in {"", "linux"} else "",
            "uv_index": f'name = "{name}", url = "{index}", explicit = true' if index else "",
            "uv_torch": lines if index else "",
            "uv_here": f"sys_platform == '{here}'" if here else "",
            "mac_source": f'torch = [{{ index = "{name}", marker = "sys_platform != \'darwin\'" }}]' if index else "",
        }
    if project.name == "Poetry":
        version = next(_tagged_versions(context), "")
        source = _SOURCE.search(_written(context))
        return {"mac_source": _poetry_source(version, source[1] if source else f"pytorch-{tag}") if version else ""}
    table = "[tool.pixi.pypi-options]" if "pyproject.toml" in context.text else "[pypi-options]"
    return {"pixi_index": f'{table} extra-index-urls = ["{index}"]' if index and project.name == "pixi" else ""}


def _written(context: LogContext) -> str:
    """Return a log's text with its capitals."""
    return "\n".join(line for _number, line in context.log.lines)


def _widened_source(context: LogContext, here: str) -> str:
    """Return the line that gives torch its index with its marker widened to this system; "" if none excludes it."""
    for _number, line in context.log.lines:
        match = _MARKED.search(line)
        if match and here and "==" in match[2] and f"'{here}'" not in match[2]:
            marker = f"({match[2]})" if " and " in match[2] else match[2]
            return match[1].strip().replace(match[2], f"{marker} or sys_platform == '{here}'")
    return ""


def _torch_tag(context: LogContext) -> str:
    """Return the tag of the torch build that a text names by a version or an index, such as "cu126"; "" for none."""
    versions = (version.partition("+")[2] for version in _tagged_versions(context))
    urls = (classify_address(address.url).variant for address in addresses(context.text))
    tags = [tag for tag in (*versions, *urls) if tag]
    return next((tag for tag in tags if tag != "cpu"), "cpu" if tags else "")


def _tagged_versions(context: LogContext) -> Iterator[str]:
    """Yield the versions of torch with the tag of a build that a text names, the newest first."""
    found = re.findall(r"\btorch\W{1,6}v?(\d\.\d{1,2}\.\d\+(?:cu\d{2,3}|rocm[\d.]{1,6}|xpu|cpu))\b", context.text)
    yield from sorted(found, key=number, reverse=True)


def _poetry_source(version: str, source: str) -> str:
    """Return Poetry's line that takes a tagged torch from its source on all systems but macOS, and PyPI's there."""
    public = version.partition("+")[0]
    return (
        f'torch = [{{version = "{version}", source = "{source}", markers = "sys_platform != \'darwin\'"}},'
        f' {{version = "{public}", markers = "sys_platform == \'darwin\'"}}]'
    )


def torch_alone_from_its_index(context: LogContext) -> dict[str, str]:
    """Return placeholders if a project's torch is of torch's index and a companion of PyPI; {} if it is not so.

    `package` is the companion, which no requirement of the project names, `direct` are all such, `source_line` is what
    gives them torch's index.
    """
    build = context.build
    index = load_catalog().index_url(build) if build else None
    companions = [name for name in ("torchvision", "torchaudio") if context.versions.get(name)]
    bare = [name for name in companions if "+" not in context.versions[name] and carried_by_torch_index(name, build)]
    project = project_of_text(context.text)
    if not index or not bare or project is None or project.name != "uv":
        return {}
    name = next((a or b for a, b in _INDEX_NAME.findall(_written(context))), f"pytorch-{build}")
    line = ", ".join(f'{package} = {{ index = "{name}" }}' for package in bare)
    return {"package": bare[0], "direct": " ".join(bare), "source_line": line}
