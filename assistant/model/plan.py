"""What to install: a plan, its rejected rivals, and the user's wishes."""

from __future__ import annotations

import re
from enum import Enum

from assistant.i18n import Text
from assistant.model.record import Record

DISK_FACTOR = 4  # a wheel unpacks to about three times its size, and the cache keeps one more copy


class Backend(Enum):
    """The accelerator that a torch build drives; `rocm` is a backend of its own though torch calls its device cuda."""

    CUDA = "cuda"
    ROCM = "rocm"
    XPU = "xpu"
    MPS = "mps"
    DIRECTML = "directml"
    CPU = "cpu"


class Request(Record, frozen=True):
    """What the user asks for: a backend, a Python version, requirement pins, nightly builds. Empty: choose for me."""

    backend: Backend | None = None
    python: str | None = None
    pins: tuple[str, ...] = ()
    nightly: bool = False


class Wheel(Record, frozen=True):
    """The torch wheel that a look at the sources really found; `size` in bytes where the source tells it.

    `where` is "official" (the plan's own index), "configured" (an index that the user or their pip configuration
    names) or "find-links" (a folder or page of that configuration).
    """

    filename: str
    url: str
    where: str
    size: int | None = None
    sha256: str | None = None


class Plan(Record, frozen=True, omit_defaults=False):
    """One installable answer: torch and its family come from `index_url`, the rest from pip's default one (None).

    `torch` is the public version; `requirements` are PEP 508 lines; `env` is set whenever the environment is used;
    `download_mb` in MB of 10**6 bytes, None when unknown; `wheel` is None while no source has been asked.
    """

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
    wheel: Wheel | None = None

    @property
    def disk_gb(self) -> float | None:
        """The room that an installation takes with its cache, in GB of 10**9 bytes; None when unknown."""
        return None if self.download_mb is None else self.download_mb * DISK_FACTOR / 1000


class Rejection(Record, frozen=True, omit_defaults=False):
    """A rival that was not chosen: why not, what would change the answer ("" when nothing would), the obstacle's key.

    Keys are those of the rules and checks of a machine where these know the same obstacle.
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


_FAMILY = re.compile(r"torch(vision|audio)?|(pytorch-)?triton(-.*)?|rocm(-.*)?")  # as torch's indexes list them


def of_torch_family(name: str) -> bool:
    """Tell whether a package comes from torch's own index: torch, its companions, its compilers, its ROCm."""
    return _FAMILY.fullmatch(name) is not None
