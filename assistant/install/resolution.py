"""Resolves a plan to exact packages before anything is downloaded, or explains why no packages fit."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import tomli_w
from packaging.pylock import Pylock
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index
from assistant.host.download import fetch_sizes, local_path
from assistant.i18n import Message, Text, _
from assistant.install.journal import temporary_folder
from assistant.install.uv import LOCK, Uv
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.plan import Plan
from assistant.model.record import Record, replace
from assistant.model.requirement import check_requirement, index_fault, name_of, plain_requirement
from assistant.privacy import Policy, redact, without_credentials

IN_A_HURRY = {"UV_HTTP_RETRIES": "1"}  # uv tries three times more, with pauses: 12 s for an index that is down
SIZE_SECONDS = 5.0  # chosen: sizes are nice to have


class Unsolved(WorkFailed):
    """No wheels fit, or an index cannot be reached.

    `reason` is the resolver's own text; `unreachable` says that an index could not be reached, `address` at which
    address, as far as the resolver prints it; `family` are the packages of torch's family in its output.
    `only_source` are the packages that have no wheel, only source, whose build would run their authors' code.
    """

    ONLY_SOURCE_HINT = _(
        "Ask for a version that has a wheel, leave it out, or build its wheel by hand and name the folder that holds "
        "it.",
        option="--pin, --find-links",
    )

    def __init__(
        self,
        message: Message,
        *,
        hint: Message,
        reason: Text = "",
        unreachable: bool = False,
        address: str = "",
        family: frozenset[str] = frozenset(),
        only_source: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message.format(reason=reason), hint=hint)
        self.reason, self.family, self.only_source = str(reason), family, only_source
        self.unreachable, self.address = unreachable, address


def _only_source_error(packages: tuple[str, ...]) -> Unsolved:
    """Return the error for packages that have no wheel for this Python and system."""
    text = _(
        "There is no wheel of {packages} for this Python and system, only source, which would have to be built by hand."
    )
    text = text.format(packages=", ".join(packages))
    return Unsolved(text, hint=Unsolved.ONLY_SOURCE_HINT, only_source=packages)


def resolve(
    plan: Plan,
    uv: Uv,
    keep: Mapping[str, str] | None = None,
    locked: Mapping[str, str] | None = None,
    *,
    dependencies: bool = True,
) -> Resolution:
    """Return the packages of a plan, resolved by `uv` from its sources for its interpreter, as wheels only.

    The versions in `keep` (by name) are preferred, those in `locked` are mandatory. Without `dependencies` what the
    packages require is not resolved. Sizes that the index lacks are asked of the servers, unless offline, for at most 5
    seconds. Raises `BadInput` for an invalid index or requirement, and `Unsolved` if a package has no wheel, an index
    cannot be reached or nothing fits; with `locked`, the latter two are a plain `WorkFailed`.
    """
    check_plan(plan)
    with temporary_folder() as (folder, lock):
        hurried = dataclasses.replace(uv.in_folder(folder, lock), environment={**IN_A_HURRY, **uv.environment})
        try:
            resolution = _resolve(plan, hurried, folder, keep, locked, dependencies=dependencies)
        except Unsolved as refusal:
            if not locked or refusal.only_source:
                raise
            raise WorkFailed(
                _("The locked packages are not available as they were: {differences}.", differences=refusal.message),
                hint=_("Restore the source that they came from, or make a new plan.", option="--anew"),
            ) from refusal
    packages = resolution.packages
    if source_only := [
        f"{package.name}=={package.version}"
        for package in packages
        if not package.url.partition("?")[0].endswith(".whl")
    ]:
        raise _only_source_error(tuple(source_only))
    urls = (package.url for package in packages if package.size is None)
    unsized = [url for url in urls if local_path(url) or not uv.offline]
    indexes = (*uv.index_urls, *filter(None, [plan.index_url]))
    fetched_sizes = fetch_sizes(unsized, SIZE_SECONDS, settings=uv.settings, index_urls=indexes) if unsized else {}
    sized = (replace(package, size=package.size or fetched_sizes.get(package.url)) for package in packages)
    return replace(resolution, packages=tuple(sized))


def _resolve(
    plan: Plan,
    uv: Uv,
    folder: Path,
    keep: Mapping[str, str] | None,
    locked: Mapping[str, str] | None,
    *,
    dependencies: bool,
) -> Resolution:
    """Return the packages to which uv resolves a plan in `folder`; raise `Unsolved` if there is no solution.

    If uv fails it is run once more with an empty cache. If torch requires more of its family than the plan names, these
    are bound to torch's index, too: uv asks an index of a project's own (`explicit`) only for what the project itself
    requires, and torch for ROCm and for XPU needs a Triton that no other index has:
    https://docs.astral.sh/uv/guides/integration/pytorch/
    """
    is_usual_cache = True
    while failure := _run_resolver(uv, uv.resolve_command(plan, folder, keep, locked, dependencies=dependencies)):
        missing = sorted(failure.family.difference(map(name_of, plan.requirements)))
        if failure.unreachable or failure.only_source:
            raise failure
        if plan.index_url and missing:
            plan = replace(plan, requirements=(*plan.requirements, *missing))
        elif is_usual_cache and not uv.offline:
            # A power cut leaves empty files in uv's cache, and uv then calls a good wheel invalid ever after.
            uv, is_usual_cache = uv.with_own_cache(folder), False
        else:
            raise failure
    return read_lock((folder / LOCK).read_text(encoding="utf-8"))


def find_single_package(plan: Plan, uv: Uv) -> Package | None:
    """Return the package that a plan's single requirement resolves to, without its dependencies; None if uv fails.

    Nothing is logged, and a failed request is repeated once only.
    """
    with temporary_folder() as (folder, lock):
        variables = {**IN_A_HURRY, **uv.environment}
        quiet = dataclasses.replace(
            uv.in_folder(folder, lock), also=(), sink=lambda _event: None, environment=variables
        )
        if quiet.call(quiet.resolve_command(plan, folder, dependencies=False), []):
            return None
        return next(iter(read_lock((folder / LOCK).read_text(encoding="utf-8")).packages), None)


def _run_resolver(uv: Uv, argv: list[str]) -> Unsolved | None:
    """Run the command that resolves a plan; return the error that it failed with, None if it succeeded."""
    output: list[str] = []
    if not uv.call(argv, output):
        return None
    if packages := only_source("\n".join(output)):
        return _only_source_error(packages)
    words = " ".join(line.strip() for line in output if line.strip())
    unreached, address = find_network_error(words), _FETCHED.search(words)
    text = _("No set of packages fits this plan: {reason}")
    if unreached:
        text = _("The package index cannot be reached: {reason}")
    return Unsolved(
        text,
        hint=_("Check the network and the index, or choose another plan."),
        reason=unreached or words.rpartition("dependencies cause: ")[2][:600],  # without uv's own heading
        unreachable=bool(unreached),
        address=address[1] if unreached and address else "",
        family=frozenset(filter(carried_by_torch_index, _NAME.findall(words))),
    )


# As in uv's "Because triton-rocm was not found in the package registry and all versions of torch depend on …".
_NAME = re.compile(r"(?<![\w./:-])[a-z][a-z-]*(?![\w./-])")

# uv: "error: Failed to fetch: `https://…`", "Caused by: error sending request for url (…)", "dns error: …"
_UNREACHABLE = ("dns error", "error sending request", "failed to fetch", "connection", "connect error")
# uv, offline: "Because unsloth was not found in the cache and environment depends on unsloth, …"
_NOT_CACHED = "was not found in the cache"

# uv: "Because evil[extra]==1.0 has no usable wheels and …", "hint: Wheels are required for `evil` because building …"
_NO_WHEEL = (
    re.compile(
        r"(?<![\w.<>=!~-])([\w.-]{1,200}(?:\[[\w.,-]{1,200}\])?(?:[<>=!~]=?[\w.+!*,<>=~]{1,200})?)"
        r" has no usable wheels"
    ),
    re.compile(r"Wheels are required for `([\w.-]+)` because building from source is disabled"),
    re.compile(r"Building source distributions for `([\w.-]+)` is disabled"),
)


# error: Failed to fetch: http://127.0.0.1:9/simple/numpy/ | cause: error sending request for url (http://…/numpy/)
#   cause: client error (Connect) | cause: tcp connect error | cause: Connection refused (os error 111)
# error: Failed to fetch: https://h/simple/numpy/ | cause: HTTP status server error (500 Internal …) for url (https://…)
_FETCHED = re.compile(r"Failed to fetch: `?([^\s`]+)")
_FOR_URL = re.compile(r" for url \(.*")


def find_network_error(words: str) -> str:
    """Return from an installer's output which address could not be reached and why; "" for other failures."""
    text = " ".join(words.split())
    has_answer = "No solution found" in text  # whose words are names of packages, such as connection-pool
    if _NOT_CACHED not in text and (has_answer or not any(sign in text.lower() for sign in _UNREACHABLE)):
        return ""
    _start, chained, cause = text.rpartition(" cause: ")
    place = _FETCHED.search(text) if chained else None
    return ": ".join(filter(None, (place and place[1], _FOR_URL.sub("", cause.partition(" hint: ")[0]))))[:400]


def only_source(output: str) -> tuple[str, ...]:
    """Return the requirements that by an installer's output have no wheel, only source; () for other failures."""
    needs = [need for form in _NO_WHEEL for text in form.findall(output) if (need := plain_requirement(text))]
    by_name = {canonicalize_name(need.name): str(need) for need in reversed(needs)}  # the first form has the version
    return tuple(reversed(by_name.values()))


class Package(Record, frozen=True):
    """One package and its file; `size` in bytes, None if unknown; `sha256` "" if unknown; `url` holds no password."""

    name: str
    version: str
    url: str
    size: int | None = None
    sha256: str = ""


class Resolution(Record, frozen=True):
    """A resolved plan: the lock file's text (PEP 751) and the packages in it."""

    lock: str
    packages: tuple[Package, ...]

    @property
    def download(self) -> int:
        """The sum of the known sizes, in bytes."""
        return sum(package.size or 0 for package in self.packages)

    @property
    def versions(self) -> dict[str, str]:
        """The version of each package, by name."""
        return {package.name: package.version for package in self.packages}

    def changes(self, installed: Mapping[str, str]) -> list[Package]:
        """Return the packages that are not installed in the resolved version; `installed` maps names to versions."""
        return [package for package in self.packages if installed.get(package.name) != package.version]


# `uv pip compile --format pylock.toml` writes for each package (PEP 751), beside its name and version:
# wheels = [{ url = "https://…/numpy-2.4.6-cp311-….whl", size = 16000000, hashes = { sha256 = "…" } }]
def read_lock(text: str) -> Resolution:
    """Return the packages of a `pylock.toml`, each with its first wheel, else its source; passwords are removed.

    A package with neither is left out.
    """
    text = without_credentials(text)
    packages = []
    for package in Pylock.from_dict(tomllib.loads(text)).packages:
        if file := next(iter(package.wheels or ()), package.sdist):
            url = file.url or Path(file.path or "").absolute().as_uri()
            sha256 = file.hashes.get("sha256", "")
            packages.append(
                Package(name=package.name, version=str(package.version or ""), url=url, size=file.size, sha256=sha256)
            )
    return Resolution(lock=text, packages=tuple(packages))


def write_lock(packages: Iterable[Package], files: Mapping[str, Path]) -> str:
    """Return the text of a `pylock.toml` of exact files with hashes; `files` are local paths by name, used as URLs."""
    rows = []
    for package in packages:
        url = files[package.name].absolute().as_uri() if package.name in files else package.url
        size = {} if package.size is None else {"size": package.size}
        wheel = {"url": url, **size, "hashes": {"sha256": package.sha256} if package.sha256 else {}}
        rows.append({"name": package.name, "version": package.version, "wheels": [wheel]})
    return tomli_w.dumps({"lock-version": "1.0", "created-by": "assistant", "packages": rows})


def check_plan(plan: Plan) -> None:
    """Raise `BadInput` if an index or a requirement in any field of a plan is not a valid one."""
    for url in filter(None, (plan.index_url, *plan.indexes)):
        check_index_url(url)
    for line in (*plan.requirements, *plan.constraints, *plan.overrides):
        check_requirement(line)


def check_index_url(text: str) -> str:
    """Return the address of a package index, or a folder, unchanged; raise `BadInput` for anything else."""
    reason = index_fault(text)
    if not reason and (folder := local_path(text)) and not folder.is_dir():
        reason = _("it is not a folder")
    if reason:
        raise BadInput(
            _(
                "'{text}' is not the address of a package index: {reason}.",
                text=redact(ascii(text)[1:-1], Policy.USABLE)[:80],
                reason=reason,
            ),
            hint=_("Example: {value}", value="https://download.pytorch.org/whl/cpu", option="--index-url"),
        )
    return text
