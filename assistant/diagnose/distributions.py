"""The distributions that a remedy may name: those of the project's tables, and those that a log's tools name.

A name that somebody could register must never come out of a reading error: of a line that a terminal cut in two, of
words that ran together, of a module's folder. Without a distribution that is sure, a remedy is left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from packaging.utils import canonicalize_name

from assistant.catalog.bundles import runtime_builds, runtime_plugins
from assistant.catalog.companions import known_names
from assistant.catalog.rows import CORE
from assistant.diagnose.facts import LogContext
from assistant.diagnose.index_addresses import installer_tables
from assistant.diagnose.kits import kit_tables
from assistant.diagnose.log import may_be_cut
from assistant.diagnose.missing import table_distributions
from assistant.diagnose.rules import PLACEHOLDER, Rule
from assistant.diagnose.wheels import PYG

_VERSION = r"v?\d[\w.+!*-]{0,40}"
_EXTRAS = r"(?:\[[\w, -]{1,60}\])?"
_END = r"(?![\w+-]|\.\w)"
# How installers and other tools print a distribution NAME, in lower case. A blank may be a broken line.
_FORMS = (
    # foo 1.0 requires torch==2.0     foo 1.0 has requirement …     foo==1.0 depends on …     foo (1.0) needs …
    rf"NAME{_EXTRAS}(?:==|[ ]?\(|[ ]){_VERSION}\)? (?:has requirement|requires|depends on|needs)\b",
    # foo-1.0-py3-none-any.whl     foo-1.0.tar.gz     … requires foo>=1     the package `foo` requires …     foo==1.0
    rf"NAME-{_VERSION}-[\w.]{{2,40}}-[\w.]{{2,40}}-[\w.]{{3,120}}\.whl\b",
    rf"NAME-{_VERSION}\.(?:tar\.gz|zip)\b",
    rf"(?:requires|depends on|has requirement)[ ][`'\"]?NAME{_EXTRAS}[ ]?(?:[=<>!~]{{1,3}}[ ]?\d|,|\Z)",
    r"(?:the package|distribution) [`'\"]NAME[`'\"=]",
    rf"NAME{_EXTRAS}(?:===?|>=|<=|~=|!=)\d",
    # what pip cannot have, and what it does
    rf"(?:no matching distribution found for|satisfies the requirement|requirement already satisfied:) NAME{_END}",
    rf"(?:collecting|attempting uninstall:|existing installation:|no package metadata was found for) NAME{_END}",
    rf"(?:building wheels?|built|wheel) for (?:collected packages: )?NAME{_END}",
    rf"(?:failed to build|failed to download and build|building) [`'\"]?NAME{_END}",
    # what uv, Poetry and conda cannot have
    rf"NAME{_EXTRAS}(?:[=<>~!][\w.,=<>~!*+]{{1,60}})? (?:was not found in|wheels for|has no wheels?|is available and)",
    rf"(?:versions? of|candidates? (?:is found )?for|you require|- ) ?[`'\"]?NAME{_END}",
    r"[`'\"]NAME[`'\"] (?:was found on|\(v\d|for \(|can't be installed)",
    r"nothing provides requested NAME ",
    # what `pip show` prints
    r"(?:\A|\n)name:[ ]NAME\nversion:",
)
# pip install foo bar     Installing collected packages: foo, bar     Successfully installed foo-1.0 bar-2.0
_LISTS = re.compile(
    r"(?:(?:\bpip3?(?:\.exe)?|\bconda|\bmamba)[ ]install|\buv[ ]add|\bpoetry[ ]add|collected[ ]packages:"
    r"|successfully[ ]installed|'pip', 'install',)[ ][^\n]{0,600}$"
)
# What stands behind a version's "+", or names a Python or a system: never a distribution.
_TAGS = re.compile(r"(?:cu|rocm|cp|py|sm|gfx)\d[\w.]*|cpu|xpu|(?:many|musl)linux[\w.]*|win_?(?:32|amd64|arm64)")
# The options of installers whose value is no distribution.
_VALUED = frozenset(
    {"-c", "-d", "-e", "-f", "-i", "-r", "--build", "--channel", "--default-index", "--extra-index-url"}
    | {"--find-links", "--index", "--index-strategy", "--index-url", "--python", "--resume-retries", "--retries"}
    | {"--target", "--timeout", "-n", "--name", "-p"}
)
_INSTALLS = re.compile(
    r"(?:\bpip(?:3|\.exe)?|\bconda|\bmamba)[ ](?:install|uninstall|show|download)\b|\buv[ ](?:add|remove|lock)\b"
    r"|\b(?:poetry|pdm)[ ](?:add|remove|update)\b|\bassistant[ ](?:install|plan|setup)\b"
)
_OF_CONDA_FORGE = {"pytorch", "pytorch-gpu"}  # which are none of PyPI's: https://anaconda.org/conda-forge/pytorch-gpu
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?(?:$|[ =<>!~;@])")


def sure_names(context: LogContext, rule: Rule, names: Mapping[str, str]) -> Mapping[str, str]:
    """Return a cause's names without those that would put a distribution into a command that is not surely meant.

    Sure are those that the project's tables list, and those that a log's tools print (see `is_printed`).
    """
    unsure_names: set[str] = set()
    for remedy in rule.remedy if rule.computed else ():
        for text in (*remedy.commands, *remedy.check, *(remedy.plan.pins if remedy.plan else ())):
            for name in {*PLACEHOLDER.findall(text)} & {*names}:
                filled = PLACEHOLDER.sub(lambda match: names.get(match[1], ""), text)
                command = filled if text in (*remedy.commands, *remedy.check) else f"assistant plan {filled}"
                unsure_distributions = {
                    distribution
                    for distribution in distributions_in(command)
                    if distribution not in listed_distributions() and not is_printed(distribution, context)
                }
                words = re.findall(r"[A-Za-z0-9][\w.-]*", names[name])
                if unsure_distributions.intersection(map(canonicalize_name, words)):
                    unsure_names.add(name)
    return {name: value for name, value in names.items() if name not in unsure_names}


def distributions_in(command: str) -> Iterator[str]:
    """Yield the distributions that a command installs, removes or shows, by their canonical names."""
    installation = _INSTALLS.search(command)
    words = iter(_shell_words(command[installation.end() :]) if installation else ())
    by_conda = bool(installation) and command.startswith(("conda ", "mamba "))
    for word in words:
        if word in {"&&", "|", ";"}:
            return
        if word in _VALUED:
            next(words, "")
        elif by_conda and word.partition("=")[0] in _OF_CONDA_FORGE:
            continue
        elif (requirement := _REQUIREMENT.match(word)) and not {"/", "\\", ":"} & set(word.partition("@")[0]):
            yield canonicalize_name(requirement[1])


def listed_distributions() -> frozenset[str]:
    """Return the canonical names of the distributions that the catalogue and this room's tables know."""
    return _listed_in_tables() | known_names()


@cache
def _listed_in_tables() -> frozenset[str]:
    """Return the canonical names of the distributions in this room's tables and of PyTorch's core packages."""
    names = (
        *table_distributions(),
        *runtime_builds(),
        *runtime_plugins(),
        *kit_tables().sources,
        *installer_tables().names.values(),
        *PYG,
        *CORE,
        "uv",  # which brings other Pythons
    )
    return frozenset(map(canonicalize_name, names))


def is_printed(name: str, context: LogContext) -> bool:
    """Return whether a tool's message in a log names a distribution, at a place that no cut line runs through."""
    lines = context.text.split("\n")[: len(context.log.lines)]
    text = "\n".join(lines)
    spelt = "[-_.]".join(map(re.escape, name.split("-")))
    whole_name = rf"(?<![\w.+@/\\-])(?P<name>{spelt})(?![\w+]|[-.][a-z_])"
    if _TAGS.fullmatch(name) or not re.search(whole_name, text):
        return False
    spans = [
        match.span("name")
        for pattern in _FORMS
        for match in _compile_form(pattern.replace("NAME", whole_name)).finditer(text)
    ]
    for match in re.finditer(whole_name, text):
        line = text.rfind("\n", 0, match.start()) + 1
        spans += [match.span("name")] if _LISTS.search(text, line, match.start()) else []
    return any(not _is_at_a_cut(context, lines, text, *span) for span in spans)


def _is_at_a_cut(context: LogContext, lines: list[str], text: str, start: int, end: int) -> bool:
    """Return whether the span of a name touches the end of a line that may have been cut, so that it may be a part."""
    first, last = text.count("\n", 0, start), text.count("\n", 0, end)
    pairs = [(first - 1, first)] if text[:start].endswith("\n") else []
    pairs += [(last, last + 1)] if text.startswith("\n", end) else []
    return any(may_be_cut(lines[before], lines[after], len(context.log.lines[before][1])) for before, after in pairs)


def _compile_form(pattern: str) -> re.Pattern[str]:
    """Return the pattern of a form compiled; each blank stands for any white space or frame, line ends included."""
    return re.compile(re.sub(r"(?<!\[) (?!\?)", r"[\\s│|]{1,20}", pattern), re.ASCII)


def _shell_words(text: str) -> Iterable[str]:
    """Return the words of a command as a shell splits it; by blanks if a quotation mark is never closed."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
