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

from assistant.catalog.companions import known_names
from assistant.catalog.onnxruntimes import runtime_builds, runtime_plugins
from assistant.catalog.rows import CORE
from assistant.diagnose.index_addresses import tables
from assistant.diagnose.kits import kits
from assistant.diagnose.log import may_be_cut
from assistant.diagnose.missing import distributions as of_libraries
from assistant.diagnose.rules import PLACEHOLDER, Rule
from assistant.diagnose.surroundings import Surroundings
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
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?(?:$|[ =<>!~;@])")


def sure_names(case: Surroundings, rule: Rule, names: Mapping[str, str]) -> Mapping[str, str]:
    """Return the names for a rule's texts without those that would put an unsure distribution into a command."""
    bad: set[str] = set()
    for remedy in rule.remedy if rule.computed else ():
        for text in (*remedy.commands, *remedy.check, *(remedy.plan.pins if remedy.plan else ())):
            for name in {*PLACEHOLDER.findall(text)} & {*names}:
                filled = PLACEHOLDER.sub(lambda found: names.get(found[1], ""), text)
                command = filled if text in (*remedy.commands, *remedy.check) else f"assistant plan {filled}"
                unsure = {one for one in distributions_in(command) if one not in listed() and not is_printed(one, case)}
                words = re.findall(r"[A-Za-z0-9][\w.-]*", names[name])
                if unsure.intersection(map(canonicalize_name, words)):
                    bad.add(name)
    return {name: value for name, value in names.items() if name not in bad}


def distributions_in(command: str) -> Iterator[str]:
    """Yield the distributions that a command installs, removes or shows, each by its canonical name."""
    found = _INSTALLS.search(command)
    words = iter(_split(command[found.end() :]) if found else ())
    for word in words:
        if word in {"&&", "|", ";"}:
            return
        if word in _VALUED:
            next(words, "")
        elif (one := _REQUIREMENT.match(word)) and not {"/", "\\", ":"} & set(word.partition("@")[0]):
            yield canonicalize_name(one[1])


def listed() -> frozenset[str]:
    """Return the distributions that the project's own tables name."""
    return _listed() | known_names()


@cache
def _listed() -> frozenset[str]:
    own = (
        *of_libraries(),
        *runtime_builds(),
        *runtime_plugins(),
        *kits().sources,
        *tables().names.values(),
        *PYG,
        *CORE,
    )
    return frozenset(map(canonicalize_name, own))


def is_printed(name: str, case: Surroundings) -> bool:
    """Return whether a log's tools name a distribution, and no line that may have been cut runs through its name."""
    lines = case.text.split("\n")[: len(case.log.lines)]
    text = "\n".join(lines)
    spelt = "[-_.]".join(map(re.escape, name.split("-")))
    whole = rf"(?<![\w.+@/\\-])(?P<name>{spelt})(?![\w+]|[-.][a-z_])"
    if _TAGS.fullmatch(name) or not re.search(whole, text):
        return False
    found = [one.span("name") for form in _FORMS for one in _form(form.replace("NAME", whole)).finditer(text)]
    for one in re.finditer(whole, text):
        line = text.rfind("\n", 0, one.start()) + 1
        found += [one.span("name")] if _LISTS.search(text, line, one.start()) else []
    return any(not _is_at_a_cut(case, lines, text, *span) for span in found)


def _is_at_a_cut(case: Surroundings, lines: list[str], text: str, start: int, end: int) -> bool:
    """Return whether a name stands where a line may have been cut, so that it may be a part of another one."""
    first, last = text.count("\n", 0, start), text.count("\n", 0, end)
    pairs = [(first - 1, first)] if text[:start].endswith("\n") else []
    pairs += [(last, last + 1)] if text.startswith("\n", end) else []
    return any(may_be_cut(lines[one], lines[two], len(case.log.lines[one][1])) for one, two in pairs)


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"(?<!\[) (?!\?)", r"[\\s│|]{1,20}", pattern), re.ASCII)


def _split(text: str) -> Iterable[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
