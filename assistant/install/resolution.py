"""Works out what exactly would be installed, before anything is fetched, or why nothing fits."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from assistant.host.files import write_whole
from assistant.host.index import wheel_sizes
from assistant.i18n import Message, _
from assistant.install.installer import Installer
from assistant.install.packages import Resolution
from assistant.install.scratch import scratch
from assistant.install.validate import check_index_url, check_requirement
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan
from assistant.model.record import replace


class Unsolved(WorkFailed):
    """No wheels were found that fit; `need` is the requirement that pip met nothing for, None where it named none.

    `unreachable` says that a source could not be asked.
    """

    def __init__(
        self, message: Message, *, hint: Message, need: Requirement | None = None, unreachable: bool = False
    ) -> None:
        super().__init__(message, hint=hint)
        self.need, self.unreachable = need, unreachable


class OnlySource(WorkFailed):
    """Nothing fits but packages that come as source, whose build would run their authors' code; `needs` names them."""

    def __init__(self, needs: tuple[str, ...]) -> None:
        self.needs = needs
        names = ", ".join(needs)
        super().__init__(
            _("No wheel of {packages} fits, and a build from source would run its author's code here.", packages=names),
            hint=_(
                "Pin a version that has a wheel (--pin), or agree to the build by name: "
                "`assistant install --build-from-source {name}`.",
                name=Requirement(needs[0]).name,
            ),
        )


def resolve(
    plan: Plan,
    installer: Installer,
    keep: Mapping[str, str] | None = None,
    locked: Mapping[str, str] | None = None,
) -> Resolution:
    """Solve a plan for the installer's interpreter against the sources that its variables name, by wheels alone.

    The versions in `keep`, those that an environment holds already, are kept where they fit; those in `locked` must be.
    Raises `OnlySource` where a package has no wheel, `WorkFailed` with the resolver's own last lines when the sources
    cannot be reached or nothing fits, and `BadInput` before for an index or a requirement that is none.
    """
    if plan.index_url:
        check_index_url(plan.index_url)
    for line in plan.requirements:
        check_requirement(line)
    with scratch() as (folder, lock):
        found = _solved(plan, dataclasses.replace(installer, lock=lock), folder, keep or {}, locked or {})
    if built := [
        f"{one.name}=={one.version}" for one in found.packages if not one.url.partition("?")[0].endswith(".whl")
    ]:
        raise OnlySource(tuple(built))
    asked = [package.url for package in found.packages if package.size is None]
    indexes = (*installer.index_urls, *filter(None, [plan.index_url]))
    sizes = wheel_sizes(asked, network=installer.settings.network, index_urls=indexes)
    known = (replace(package, size=package.size or sizes.get(package.url)) for package in found.packages)
    return replace(found, packages=tuple(known))


def _solved(
    plan: Plan, installer: Installer, folder: Path, keep: Mapping[str, str], locked: Mapping[str, str]
) -> Resolution:
    constraints = folder / "locked.txt" if locked else None
    if constraints:
        write_whole(constraints, "".join(f"{name}=={version}\n" for name, version in locked.items()))
    argv = installer.backend.resolve(installer.python, plan, folder, keep, constraints)
    try:
        _ask(installer, argv, folder)
    except Unsolved as error:
        anew = installer.with_own_cache(folder)
        if anew is None or installer.offline or error.unreachable:
            raise
        # A power cut leaves empty files in uv's cache, and uv then calls a good wheel invalid, today and ever after.
        _ask(anew, argv, folder)
    return installer.backend.resolution(folder)


def _ask(installer: Installer, argv: list[str], folder: Path) -> None:
    said: list[str] = []
    if installer.call(argv, said, folder):
        if needs := only_source("\n".join(said)):
            raise OnlySource(needs)
        hint = _("Check the network and the index, or choose another plan.")
        words = " ".join(line.strip() for line in said if line.strip())
        lost = any(sign in words.lower() for sign in _UNREACHABLE)
        raise Unsolved(unsolved(words, unreachable=lost), hint=hint, need=unmet("\n".join(said)), unreachable=lost)


# uv: "Because evil==1.0 has no usable wheels and …", "hint: Wheels are required for `evil` because building …"
# pip, run by programs/wheels_only.py: "wheels only: evil comes only as source"
# pip itself cannot tell a package without a wheel from one that is nowhere: "Could not find a version that satisfies
# the requirement evil>=1 (from needs) (from versions: none)"
_NO_WHEEL = (
    re.compile(r"(?<![\w.-])([\w.-]{1,200}(?:[<>=!~]=?[\w.+!*,<>=~]{1,200})?) has no usable wheels"),
    re.compile(r"Wheels are required for `([\w.-]+)` because building from source is disabled"),
    re.compile(r"Building source distributions for `([\w.-]+)` is disabled"),
    re.compile(r"wheels only: ([\w.-]+) comes only as source"),
)
_PERHAPS = re.compile(r"Could not find a version that satisfies the requirement ([\w.-]+(?:\[[^]]*\])?[^\s(;]*)")


def only_source(said: str) -> tuple[str, ...]:
    """Read in an installer's words which packages it would have had to build, as requirements; () for other reasons."""
    told = [_need(found) for form in _NO_WHEEL for found in form.findall(said)]
    needs: dict[str, Requirement] = {}
    for need in filter(None, told):
        needs.setdefault(canonicalize_name(need.name), need)  # the form that tells the version comes first
    return tuple(str(need) for need in needs.values())


def unmet(said: str) -> Requirement | None:
    """Read which requirement pip found no wheel for; whether there is anything else of it only its indexes can tell."""
    found = _PERHAPS.search(said)
    return _need(found[1]) if found else None


def _need(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


_UNREACHABLE = ("dns error", "error sending request", "failed to fetch", "connect")  # what uv and pip say then


def unsolved(words: str, *, unreachable: bool) -> Message:
    """Say in one sentence why no solution was found, from the resolver's own words."""
    if unreachable:
        return _("The package index cannot be reached: {reason}", reason=words[:400])
    reason = words.rpartition("dependencies cause: ")[2]  # without uv's own heading
    return _("No set of packages fits this plan: {reason}", reason=reason[:600])
