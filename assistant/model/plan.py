"""What to install: requirements (PEP 508), the user's request, the plans that meet it, the rejected alternatives."""

from __future__ import annotations

import re
from collections.abc import Container
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from assistant.i18n import Text, _
from assistant.model.errors import BadInput
from assistant.model.record import Record
from assistant.privacy import Policy, redact

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from packaging.utils import NormalizedName

SCHEMES = ("https://", "http://", "file://")


@lru_cache(maxsize=4096)
def requirement(line: str) -> Requirement:
    """Parse a requirement; the result is shared: change only a copy. Raises `InvalidRequirement`, a `ValueError`."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - 10 ms that detection need not pay

    return Requirement(line)


@lru_cache(maxsize=4096)
def name_of(line: str) -> NormalizedName:
    """Return the canonical name of the package in a requirement; raise as `requirement` does."""
    from packaging.utils import canonicalize_name  # noqa: PLC0415 - see above

    return canonicalize_name(requirement(line).name)


@lru_cache(maxsize=4096)
def plain_requirement(text: str) -> Requirement | None:
    r"""Parse a requirement without hidden characters, with valid versions; None for other texts. Shared: change a copy.

    Markers may hold escapes, which `packaging` decodes: of "\u202e" one sees nothing once it is read, and what "\\"
    becomes cannot be read again. After `===` any signs may stand; uv takes none but a version.
    """
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 - see above
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415

    try:
        need = Requirement(text)
        Requirement(str(need))
        for bound in need.specifier:
            Version(bound.version.removesuffix(".*"))
    except (InvalidRequirement, InvalidVersion):
        return None
    return need if f"{text}{need}".isprintable() else None


def check_requirement(text: str) -> str:
    """Return a requirement (PEP 508) as it is.

    Raises `BadInput` for options, hidden characters, URLs of other schemes than `SCHEMES`, and anything else.
    """
    need = plain_requirement(text)
    if need is None or (need.url and not need.url.startswith(SCHEMES)):
        raise BadInput(
            _("'{text}' is not a requirement.", text=redact(ascii(text)[1:-1], Policy.USABLE)[:80]),
            hint=_("Write a name, and a version if you need one, such as torch==2.9.1."),
        )
    return text


def packages_to_import(plan: Plan, packages: Container[str]) -> tuple[str, ...]:
    """Return the distributions that a plan was asked for, but not those with a marker that are not in `packages`."""
    bound = {name_of(line) for line in plan.requirements if requirement(line).marker}
    return tuple(name for name in plan.asked if name in packages or name not in bound)


_FOREIGN = r"(?a)(https?://[\w.-]{1,200}(:\d{1,5})?|file:///)(/?[\w./+~:%-]{0,400})?(\?[\w=&.%-]{0,200})?"


def index_fault(text: str) -> Text:
    """Return why a text cannot be the address of a package index, "" if it can; no request is made."""
    if not text.isprintable() or any(sign in text for sign in " \"'`<>\\"):
        return _("it holds a character that no address has")
    if not text.startswith(SCHEMES):
        return _("it does not begin with https://, http:// or file://")
    server = re.split("[/?#]", text.partition("://")[2], maxsplit=1)[0]
    return "" if text.startswith("file:") or server.rpartition("@")[2] else _("it names no server")


def foreign_index_fault(text: str) -> Text:
    """Return why an index's address in a stranger's file is refused, as for a user name or `..`; "" if it is not."""
    # Windows takes file:////server/share for \\server\share, and each of / . \ may be spelt %2f %2e %5c.
    outside = "/.." in text or text.startswith("file:////") or re.search("(?i)%(2e|2f|5c)", text)
    plain = re.fullmatch(_FOREIGN, text) and not outside
    return "" if plain else _("it is not the plain address of a package index")


KERNEL_TARGET = "kernel"  # in place of a folder's whole path: the environment of the Python that runs this
DISK_FACTOR = 4  # times the download: a wheel unpacks to about three times its size, and the cache keeps it too


class Backend(Enum):
    """The accelerator that a torch build drives; `rocm` is a backend of its own though torch calls its device cuda."""

    CUDA = "cuda"
    ROCM = "rocm"
    XPU = "xpu"
    MPS = "mps"
    DIRECTML = "directml"
    CPU = "cpu"

    @property
    def title(self) -> str:
        """Its name as its maker spells it, for people; `value` is the key in commands and files."""
        return {"rocm": "ROCm", "directml": "DirectML"}.get(self.value, self.value.upper())


class Request(Record, frozen=True):
    """What the user asks for: backend, Python version, requirement pins, nightly builds; the planner chooses the rest.

    `pins` are PEP 508 lines that are installed and must hold, those of a project included. `bundle` is the key of a
    bundle of packages, "" for none beside torch. `project` is the file or folder of a project that is read before a
    plan is made; the rest comes from a project besides its requirements: `constraints` limit the versions of packages
    that others require, `overrides` replace requirements of packages, `pythons` is a specifier of Python versions,
    `indexes` and `links` are further package indexes and find-links, and `builds` those builds of torch, such as
    "cu128", that the project's own files name. `name` is the project's: it gets an environment of its own, and torch
    only if it needs it. With `cuda_libraries` PyPI's default build is used for the CPU, too, if no other is available.
    """

    backend: Backend | None = None
    python: str | None = None
    pins: tuple[str, ...] = ()
    nightly: bool = False
    bundle: str = ""
    project: str = ""
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    pythons: str = ""
    indexes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    name: str = ""
    cuda_libraries: bool = False

    def joined(self, other: Request) -> Request:
        """Return a request that combines both: this one's choices have precedence; lists and switches are united."""
        lists = ("pins", "constraints", "overrides", "indexes", "links", "builds")
        both = {name: tuple(dict.fromkeys((*getattr(self, name), *getattr(other, name)))) for name in lists}
        return Request(
            backend=self.backend or other.backend,
            python=self.python or other.python,
            nightly=self.nightly or other.nightly,
            cuda_libraries=self.cuda_libraries or other.cuda_libraries,
            bundle=self.bundle or other.bundle,
            project=self.project or other.project,
            name=self.name or other.name,
            pythons=",".join(dict.fromkeys(filter(None, (self.pythons, other.pythons)))),
            **both,
        )


class ProjectSummary(Record, frozen=True):
    """What was read of a project: a line about all of it, and `lines` on what was included and what was left out."""

    text: Text
    lines: tuple[Text, ...] = ()


class Plan(Record, frozen=True, omit_defaults=False):
    """One installable plan: torch and its family come from `index_url` (None: pip's index), all else from pip's index.

    `torch` is the public version; `requirements` are PEP 508 lines; `env` is set whenever the environment is used;
    `download_mb` in MB of 10**6 bytes, None when unknown. `asked` are the canonical names of the distributions that the
    user asked for: verification imports each of them. `constraints`, `overrides`, `indexes` and `links` are the
    request's, for the resolver; `apart` are companions that come from pip's index though torch's own lists them, as it
    lacks the version that is asked for. `recipe` is the key of the recipe that is planned, "" for none: verification
    runs its call. `name` is that of the project that it is for. `torch` is "" where a project needs none.
    """

    in_answers: ClassVar = ("disk_gb",)

    backend: Backend
    variant: str
    torch: str
    python: str
    index_url: str | None = None
    requirements: tuple[str, ...] = ()
    env: dict[str, str] = {}
    download_mb: int | None = None
    reasons: tuple[Text, ...] = ()
    warnings: tuple[Text, ...] = ()
    asked: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    recipe: str = ""
    name: str = ""

    @property
    def disk_gb(self) -> float | None:
        """The disk space that an installation takes with its cache, in GB of 10**9 bytes; None if unknown."""
        return None if self.download_mb is None else self.download_mb * DISK_FACTOR / 1000


class Rejection(Record, frozen=True, omit_defaults=False):
    """An alternative that was ruled out: why, what would change that ("" if nothing), and the obstacle's key.

    The key is the one that diagnosis rules and health checks use for the same obstacle.
    """

    backend: Backend
    variant: str
    why: Text
    would_help: Text = ""
    key: str = ""


class Planning(Record, frozen=True, omit_defaults=False):
    """The planner's whole answer; `choice` is the first plan, or None when no wheel exists for the platform."""

    choice: Plan | None = None
    plans: tuple[Plan, ...] = ()
    rejected: tuple[Rejection, ...] = ()
