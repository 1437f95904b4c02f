"""What mends a project of uv, Poetry, pixi or PDM: the lines of its manifest, and then the user's own command again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from itertools import pairwise

from assistant.catalog import load_catalog, number
from assistant.catalog.companions import all_names
from assistant.catalog.rows import CORE
from assistant.diagnose.environments import Project, project_of_text
from assistant.diagnose.facts import LogContext
from assistant.diagnose.index import addresses, classify_address, pattern_of

INSTALLERS = {"pip", "setuptools", "wheel", "uv"}  # what brings packages, and is none that somebody is after
PLATFORMS = {"windows": "win32", "macos": "darwin", "linux": "linux"}  # sys_platform in a marker
_END = re.compile(r" (?:&&|\|\|?|;|#|2?>) |  |[;；，。→]|[.,:](?: |$)")
_PLAIN = re.compile(r"[A-Za-z0-9_.,/\\:@=+\[\]<>~!'#*-]{1,200}")
_INDEX_OPTIONS = {"--index", "--index-url", "--extra-index-url", "--default-index", "-i", "--find-links", "-f"}
_VALUED = {"--extra", "--group", "--no-group", "--only-group", "--package", "--python", "-p", "--with", "--without"}
_VALUED |= {"--only", "--extras", "-E", "-r", "-e", "-c", "--feature", "-G", "--directory", "--project"}


def project_names(context: LogContext, package: str = "") -> dict[str, str]:
    """Return the placeholders by which a project is mended, without those that a log does not tell.

    `repeat` is the user's own command, or "", and `redo` that or the one that installs a project. `pin_python` begins
    the command that lets the project use another Python. `lock` writes the lock file, `relock` does so for a package,
    and `locked` checks it. For uv, `redo_plain` is `redo` without indexes, `redo_best` with all indexes compared,
    `redo_links` with its index as a list of files; see `_manifest_names` for the others. For a `package` that is
    built, `uv_build` or `pixi_build` below `pixi_options` lets its build see torch.
    """
    project = project_of_text(context.text)
    is_project = bool(project and project.sync)
    words = _typed_words(context, of_project=is_project)
    by_pip = words[1:2] == ["pip"]
    redo = project.sync if project and is_project and (by_pip or not words) else _joined(words)
    names = {"redo": redo, "redo_plain": redo, "repeat": _joined(words)}
    if words[:1] == ["uv"] and not (by_pip and is_project):
        of_index = [
            word for before, word in pairwise(("", *words)) if {before, word.partition("=")[0]} & _INDEX_OPTIONS
        ]
        links = _joined(["--find-links" if word in _INDEX_OPTIONS else word for word in words])
        names["redo_plain"] = _joined([word for word in words if word not in of_index])
        names["redo_links"] = links if of_index and ".html" in links else ""
        names["redo_best"] = f"{redo} --index-strategy unsafe-best-match" if by_pip else ""
    if project:
        names |= {name: getattr(project, name) for name in ("pin_python", "lock", "relock", "locked")}
        names |= _manifest_names(context, project, package) if is_project else {}
    return {name: value for name, value in names.items() if value or name == "repeat"}


def _typed_words(context: LogContext, *, of_project: bool) -> list[str]:
    """Return the words of the last command that installs packages, else of one that runs something; [] if none is.

    `of_project` leaves out those of pip, which a project does not use.
    """
    ran: list[str] = []
    for _number, line in reversed(context.log.lines):
        for match in reversed([*pattern_of("typed").finditer(line)]):
            words = _safe_words(_END.split(match["line"], maxsplit=1)[0], typed=bool(match["prompt"]))
            if words and (match["verb"] or not of_project):
                if match["verb"] != "run":
                    return words
                ran = ran or words
    return ran


def _safe_words(text: str, *, typed: bool) -> list[str]:
    """Return a command's words up to the first that is prose; [] if a shell would read one of them otherwise.

    Where no prompt shows that it was `typed`, only names of packages, options and what is no plain word are taken.
    """
    try:
        words = [word.strip("\"'") for word in shlex.split(text, posix="\\" not in text)]
    except ValueError:
        return []
    by_pip = next((at for at, word in enumerate(words[:3]) if re.fullmatch(r"pip3?", word)), None)
    head = 2 if by_pip is None else by_pip + 2
    takes_packages = words[1:2] == ["add"] or by_pip is not None
    taken = words[:head]
    for previous, word in pairwise(words[head - 1 :]):
        is_package = word in all_names() | CORE or bool(set(word) & set("=<>[/\\@"))
        is_argument = word.startswith("-") or previous in _VALUED | _INDEX_OPTIONS
        if not (is_argument or (typed and (takes_packages or words[1] == "run")) or (takes_packages and is_package)):
            break
        taken.append(word)
    packages = {word for word in taken[head:] if not word.startswith("-")}
    is_whole = len(words) >= head and not (takes_packages and packages <= INSTALLERS)
    return taken if is_whole and all(map(_PLAIN.fullmatch, taken)) else []


def _joined(words: list[str]) -> str:
    """Return words as a command, quoted where a shell would read them."""
    return " ".join(f'"{word}"' if set(word) & set("<>~![]#*") else word for word in words)


def _manifest_names(context: LogContext, project: Project, package: str) -> dict[str, str]:
    """Return the placeholders of lines in a project's manifest; some are "".

    For uv, `redo_extra` syncs the extra of a GPU build, `uv_source` widens a marker to this system, `uv_index` and
    `uv_torch` give torch's index to torch alone, `uv_here` admits this system. `mac_source` takes PyPI's torch on a
    Mac, and `pixi_index` names torch's index for pixi.
    """
    text, here = _written(context), PLATFORMS.get(context.machine.os or "", "")
    versions = sorted(pattern_of("tagged_torch").findall(context.text), key=number, reverse=True)
    tags = [version.partition("+")[2] for version in versions]
    tags += [classify_address(address.url).variant for address in addresses(context.log)]
    tag = next((tag for tag in tags if tag not in {"", "cpu"}), "cpu" if "cpu" in tags else "")
    index = (load_catalog().index_url(tag) or f"https://download.pytorch.org/whl/{tag}") if tag else ""
    name = _index_name(text, tag)
    if project.name == "uv":
        extra = pattern_of("uv_extra").search(text)
        names = {
            "redo_extra": extra[0] if extra else "",
            "uv_source": _widened_source(context, here),
            "uv_here": f"sys_platform == '{here}'" if here else "",
            "uv_build": f'{package} = [{{ requirement = "torch", match-runtime = true }}]' if package else "",
        }
        if index:
            family = [
                name for name in ("torch", "torchaudio", "torchvision") if name == "torch" or name in context.text
            ]
            names["uv_index"] = f'name = "{name}", url = "{index}", explicit = true'
            names["uv_torch"] = _sources(family, name)
            names["mac_source"] = f'torch = [{{ index = "{name}", marker = "sys_platform != \'darwin\'" }}]'
        return names
    if project.name == "Poetry" and versions:
        source = pattern_of("poetry_source").search(text)
        return {
            "mac_source": f'torch = [{{version = "{versions[0]}", source = "{source[1] if source else name}",'
            " markers = \"sys_platform != 'darwin'\"},"
            f' {{version = "{versions[0].partition("+")[0]}", markers = "sys_platform == \'darwin\'"}}]'
        }
    if project.name == "pixi":
        options = "[tool.pixi.pypi-options]" if "pyproject.toml" in context.text else "[pypi-options]"
        return {
            "pixi_index": f'{options} extra-index-urls = ["{index}"]' if index else "",
            **({"pixi_options": options, "pixi_build": f'no-build-isolation = ["{package}"]'} if package else {}),
        }
    return {}


def _written(context: LogContext) -> str:
    """Return a log's text with its capitals."""
    return "\n".join(line for _number, line in context.log.lines)


def _index_name(text: str, tag: str) -> str:
    """Return the name that a project's manifest gives to torch's index; one by the build's tag if a text tells none."""
    return next((first or second for first, second in pattern_of("index_name").findall(text)), f"pytorch-{tag}")


def _sources(packages: Iterable[str], name: str) -> str:
    """Return the lines that give packages an index of uv's."""
    return ", ".join(f'{package} = {{ index = "{name}" }}' for package in packages)


def _widened_source(context: LogContext, here: str) -> str:
    """Return the line that gives torch its index with its marker widened to this system; "" if none excludes it."""
    for _number, line in context.log.lines:
        match = pattern_of("marked_source").search(line)
        if match and here and "==" in match[2] and f"'{here}'" not in match[2]:
            marker = f"({match[2]})" if " and " in match[2] else match[2]
            return match[1].strip().replace(match[2], f"{marker} or sys_platform == '{here}'")
    return ""
