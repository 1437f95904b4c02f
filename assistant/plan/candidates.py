"""What the planners of all backends share: pins, the context, a candidate or why there is none, their sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import lru_cache
from typing import NamedTuple, TypeVar

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from assistant.catalog import Catalog, Number, TorchWheel, number
from assistant.catalog.tables import CORE, TorchRelease
from assistant.i18n import Message, Text, _, sentences
from assistant.model.errors import BadInput, NothingFits
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend, Rejection, Request
from assistant.plan.target import Card, Driver, Target

MAKERS = {Vendor.NVIDIA: "NVIDIA", Vendor.AMD: "AMD", Vendor.INTEL: "Intel"}
# A list of devices ends at the first that is none, so only its first entry counts. "void" and "none" are words of
# NVIDIA_VISIBLE_DEVICES, "NoDevFiles" is what Slurm sets for a job without GPUs; the catalogue names the sources.
_NO_DEVICE = {"", "-1", "none", "void", "nodevfiles"}

T = TypeVar("T")


class Pins(NamedTuple):
    """Pins by package: on torch, its build (`local`, a tag such as cu124), torchvision and torchaudio, and `others`.

    `releases` are the versions of torch that they allow, worked out once; None where that has not been done.
    """

    torch: SpecifierSet
    local: str | None
    family: tuple[Requirement, ...]
    others: tuple[Requirement, ...]
    releases: frozenset[str] | None = None

    def allow(self, wheel: TorchWheel) -> bool:
        """Return whether a build satisfies the pins on torch; any build tag allows PyPI's default build as well."""
        if self.local and wheel.variant not in (self.local, "pypi"):
            return False
        return self.allow_release(wheel.release)

    def allow_release(self, release: TorchRelease) -> bool:
        """Return whether a release satisfies the pins on torch and on its companions."""
        if self.releases is not None:
            return release.version in self.releases
        if not (self.torch or self.family):
            return True
        return _contains(self.torch, release.version) and all(best_companion(pin, release) for pin in self.family)

    def unpinned(self) -> Pins:
        """Return the pins without those that restrict torch."""
        return self._replace(torch=SpecifierSet(), local=None, family=(), releases=None)

    @property
    def text(self) -> str:
        """The pins that restrict torch, as the user may read them; "" without any."""
        if not (self.torch or self.local or self.family):
            return ""
        torch = f"torch{self.torch}" + (f"+{self.local}" if self.local else "") if self.torch or self.local else ""
        return ", ".join(filter(None, (torch, *map(str, self.family))))


@lru_cache(maxsize=1024)  # a fleet's machines share their pins, and each is compared with every release
def _contains(specifiers: SpecifierSet, version: str) -> bool:
    return specifiers.contains(version, prereleases=True)


def best_companion(pin: Requirement, release: TorchRelease) -> str | None:
    """Return the newest torchvision or torchaudio that goes with a release and satisfies its pin; None for none."""
    return next(iter(companions(pin, release)), None)


def companions(pin: Requirement, release: TorchRelease) -> list[str]:
    """Return the versions of torchvision or torchaudio that go with a release and satisfy its pin, the newest first."""
    paired: tuple[str, ...] = getattr(release, canonicalize_name(pin.name))
    return sorted((version for version in paired if _contains(pin.specifier, version)), key=number, reverse=True)


def read_pins(pins: Iterable[str], catalog: Catalog, environment: Mapping[str, str]) -> Pins:
    """Read requirement lines and return them split into pins on torch, its build, its family, and other packages.

    A line whose marker is false for the target (`environment`: values by the names of PEP 508) is left out. `releases`
    of the result are the torch versions of the catalogue that the pins allow; None if no pin restricts torch. Raises
    `BadInput` for a line that cannot be read, and `NothingFits` if pins contradict each other or allow no release.
    """
    torch, local = SpecifierSet(), None
    family: list[Requirement] = []
    others: list[Requirement] = []
    for pin in applicable_requirements(pins, environment):
        name = canonicalize_name(pin.name)
        if name not in CORE:
            others.append(pin)
            continue
        public = SpecifierSet()
        for item in pin.specifier:  # the local part of ==2.6.0+cu124 names the variant
            version, plus, tag = item.version.partition("+")
            if plus and local not in {None, tag.lower()}:
                raise NothingFits(
                    _("{pin} names another build than {build}.", pin=pin, build=local),
                    hint=_("torch and its family must be of one build."),
                )
            local = tag.lower() if plus else local
            public &= SpecifierSet(f"{item.operator}{version}")
        if name == "torch":
            torch &= public
        else:
            pin = copy(pin)  # noqa: PLW2901 - what is read is shared
            pin.specifier = public
            family.append(pin)
    found = Pins(torch, local, tuple(family), tuple(others))
    exact = next((item.version for item in torch if item.operator == "==" and "*" not in item.version), "")
    own = catalog.release(exact) if exact else None
    releases = (own,) if own else catalog.releases
    if allowed := frozenset(release.version for release in releases if found.allow_release(release)):
        return found._replace(releases=allowed if found.text else None)
    for pin in family if any(_contains(torch, release.version) for release in catalog.releases) else ():
        alone = found._replace(torch=SpecifierSet(), family=(pin,))
        if torch and any(alone.allow_release(release) for release in catalog.releases):
            raise NothingFits(
                _("{pin} needs a torch version that torch{torch} excludes.", pin=pin, torch=torch),
                hint=_("Drop one of the two pins; each {name} goes with one torch.", name=pin.name),
            )
    hint = _("Loosen or leave out one of these bounds.")
    if not torch.is_unsatisfiable():
        hint = _(
            "The newest release in this catalogue is {version}; for anything newer, choose nightly builds.",
            version=catalog.newest_torch,
            option="--nightly",
        )
    raise NothingFits(_("No release of torch satisfies {pins}.", pins=found.text), hint=hint)


def applicable_requirements(lines: Iterable[str], environment: Mapping[str, str]) -> list[Requirement]:
    """Return the requirements in `lines` whose markers are true with the values of `environment`, without markers.

    They are read once and shared: change a copy. Raises `BadInput` for a line that cannot be read, and for one that
    gives the URL of a file of torch or its family.
    """
    values = tuple(environment.items())
    return [pin for line in lines if (pin := _read_if_true(line, values))]


@lru_cache(maxsize=4096)  # a search reads the same pins once for each release
def _read_if_true(line: str, environment: tuple[tuple[str, str], ...]) -> Requirement | None:
    """Return a line's requirement without its marker, None if that is false; raise like `applicable_requirements`."""
    try:
        pin = Requirement(line)
    except InvalidRequirement as error:
        raise BadInput(
            _('"{pin}" is not a requirement.', pin=line), hint=_("Write it like torch==2.6.0 or torch<2.7.")
        ) from error
    if pin.url and canonicalize_name(pin.name) in CORE:
        raise BadInput(
            _('"{pin}" names a file; the planner chooses among published releases.', pin=line),
            hint=_("Leave it out here and install that file afterwards."),
        )
    if pin.marker and not pin.marker.evaluate({**dict(environment), "extra": ""}):
        return None
    pin.marker = None
    return pin


class Context(NamedTuple):
    """Everything that a plan may rest on: the machine and what was read off it, the tables, and the user's request."""

    machine: Machine
    catalog: Catalog
    target: Target
    pins: Pins
    cards: tuple[Card, ...]
    driver: Driver
    request: Request

    def wheels(self, family: str) -> list[TorchWheel]:
        """Return the builds that install here and that the pins allow, of a variant family, newest first.

        `family` is "cu", "rocm", "xpu", "cpu" or "pypi".
        """
        wheels = self.catalog.wheels(self.target.platform, self.target.tag, family)
        return [wheel for wheel in wheels if self.is_system_new_enough(wheel) and self.pins.allow(wheel)]

    def is_system_new_enough(self, wheel: TorchWheel) -> bool:
        """Return whether glibc or macOS is new enough for a build of this platform; True if unknown, and on Windows."""
        target = self.target
        if target.platform == "macos_x86_64":
            return True  # these end with 2.2.2, which loads on every macOS that such a Python runs on
        if target.os == "macos":
            return not target.macos or target.macos >= macos_minimum(wheel.release.macos.wheel)
        return not target.glibc or target.glibc >= wheel.glibc

    def published_line(self, package: str, cuda: int | None = None) -> str | None:
        """Return the requirement line for a package such as NumPy, which plans add; None if it has no wheel here.

        `cuda` is the CUDA major for `onnxruntime-gpu`, which has a line for each.
        """
        row = self.catalog.by("torch.basics", "package", "cuda").get((package, cuda))
        if row and self.target.tag in row.pythons.get(self.target.platform, ()):
            return str(row.requirement or row.package)
        return None

    def with_any_driver(self) -> Context:
        """Return this context with an NVIDIA driver that runs every build."""
        return self._replace(driver=self.driver._replace(version=(), api=()))

    def without_each(self, conditions: Iterable[str], find: Callable[[Context], T | None]) -> dict[str, T]:
        """Call `find` once for each of the conditions, with this context freed from that one alone.

        Returns what it finds by condition, without those for which it returns None. Conditions: "driver" (NVIDIA's
        version), "pins" (on torch, where the release nearest to them that gives something counts), "system" (its age
        and the Python), "wsl".
        """
        freed: dict[str, Iterable[Context]] = {
            "driver": (self.with_any_driver(),),
            "pins": self._with_releases_near_the_pins(),
            "system": (self._replace(target=self.target.anywhere()),),
            "wsl": (self._replace(target=self.target._replace(wsl=False)),),
        }
        answers = {name: next(filter(None, map(find, freed[name])), None) for name in conditions}
        return {name: found for name, found in answers.items() if found}

    def _with_releases_near_the_pins(self) -> Iterator[Context]:
        """Yield contexts with one release allowed in place of the pins: the newest of each line, the nearest first."""
        rows, pins = self.catalog.releases, self.pins
        allowed = [place for place, row in enumerate(rows) if pins.allow_release(row)] or [0]
        newest = {number(row.version)[:2]: place for place, row in reversed(list(enumerate(rows)))}
        for place in sorted(newest.values(), key=lambda place: min(abs(place - one) for one in allowed)):
            yield self._replace(pins=pins.unpinned()._replace(releases=frozenset({rows[place].version})))


def macos_minimum(version: str) -> Number:
    """Return an oldest macOS as numbers that any of its minor versions reaches: "14.0" is (14,), "12.3" is (12, 3)."""
    major, _dot, minor = version.partition(".")
    return (int(major), int(minor)) if minor != "0" else (int(major),)


class Candidate(NamedTuple):
    """A build that works here: torch `version` from `variant`, on the GPUs `cards`, none for the CPU and Apple's.

    `env` are variables to set, `also` further requirement lines. `targets` are the GPU targets ("gfx1100") whose code
    an index keeps in extras, as AMD's does; `index_url` is set where the variant alone does not tell it.
    """

    backend: Backend
    variant: str
    version: str
    reasons: tuple[Message, ...]
    warnings: tuple[Message, ...] = ()
    env: dict[str, str] = {}
    also: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    wheel: TorchWheel | None = None
    cards: tuple[Card, ...] = ()
    index_url: str = ""

    @property
    def integrated(self) -> bool:
        """Whether all GPUs that it serves share the processor's memory."""
        return bool(self.cards) and all(card.integrated for card in self.cards)

    @property
    def rank(self) -> int:
        """How well torch is supported, smaller is better: current builds, DirectML's frozen one, the CPU's."""
        return {Backend.DIRECTML: 1, Backend.CPU: 2}.get(self.backend, 0)


SENTENCES = {
    "cuda-build-has-code": _("{variant} of torch {version} holds code for {names} (compute capability {code})."),
    "cuda-build-has-code-assumed": _(
        "{variant} of torch {version} is assumed to hold code for {names} (compute capability {code}), as the build "
        "before it does."
    ),
    "jetson-index-has-code": _("NVIDIA's index for JetPack holds torch {version} with code for {name} ({board})."),
    "jetson-index-is-nvidias": _(
        "These wheels come from NVIDIA's index for Jetson boards, {url}, not from pytorch.org."
    ),
    "jetson-needs-cudss": _("They need cuDSS: install it first (sudo apt install cudss, from NVIDIA's repository)."),
    "cuda-build-has-ptx": _(
        "{variant} of torch {version} holds PTX, which the driver compiles for {names} (compute capability {code})."
    ),
    "nvidia-driver-suffices": _("Driver {driver} meets the required {floor}."),
    "pypi-has-build": _("PyPI's own wheel of torch {version} is this very build: every mirror of PyPI has it, too."),
    "card-unused": _("This build has no code for {name}, which stays unused."),
    "capability-assumed": _("{name} is in no table; its compute capability is assumed to be {code}, from its name."),
    "card-assumed-current": _("{name} is in no table; it is assumed to be a current card."),
    "nvidia-driver-unknown": _("The driver version is not known; this build needs {floor} or newer."),
    "nvidia-driver-branch-last": _("Driver branches after {branch} no longer list this card; keep {branch}."),
    "build-not-seen": _("This build has not been seen in any index; check before you rely on it."),
    "rocm-build-has-code": _("{variant} of torch {version} holds code for {names} ({targets})."),
    "rocm-build-has-code-assumed": _(
        "{variant} of torch {version} is assumed to hold code for {names} ({targets}), as the build before it does."
    ),
    "rocm-support-ended": _(
        "ROCm has no kernels for {name} ({gfx}) since {rocm}; torch {version} is the last release with them."
    ),
    "rocm-no-newer-build": _("No newer build is known to hold code for {name} ({gfx}) than that of torch {version}."),
    "rocm-sister-code": _("{variant} lacks {targets}; with {name}={value} these cards run the code of {twin}."),
    "rocm-in-wsl": _("In WSL, ROCm goes over /dev/dxg: install AMD's WSL runtime (librocdxg) and a current driver."),
    "hsa-override-misleads": _("{name}={value} is set here and would mislead this build; remove it."),
    "hide-integrated-gpu": _(
        "Hide the integrated GPU with HIP_VISIBLE_DEVICES where a program picks it instead of the discrete card."
    ),
    "amd-nightly-index-alone": _("AMD's nightly index alone holds newer builds for {name} ({gfx}); nobody tests them."),
    "amd-nightly-index-has-code": _(
        "You asked for a nightly build: AMD's nightly index holds torch with code for {names} ({targets})."
    ),
    "amd-index-has-code": _("AMD's own index for ROCm {rocm} holds torch {version} with code for {names} ({targets})."),
    "nightly-untested": _("A nightly build is made each night and barely tested; use it only for what no release has."),
    "adrenalin-advised": _("AMD advises Adrenalin {driver} or newer for these wheels."),
    "xpu-drives-card": _("{name} is on the list of GPUs that the XPU build of torch {version} drives."),
    "xpu-card-not-listed": _("Intel does not list {name}; its architecture is listed."),
    "xpu-windows-not-documented": _("Intel documents {windows} for current XPU builds."),
    "intel-driver-newest": _("It needs Intel's newest graphics driver; nothing of oneAPI has to be installed."),
    "directml-drives-card": _("{name} supports DirectX 12, which torch-directml {version} uses."),
    "directml-frozen": _("torch-directml is the last resort: it is no longer developed and stays at torch {torch}."),
    "directml-in-wsl": _("In WSL, /usr/lib/wsl/lib must be on the loader's path; native Linux has no DirectML."),
    "mps-in-wheel": _("The macOS wheel of torch {version} contains MPS, which works from macOS {least} on."),
    "newer-macos": _("Newer macOS versions can use newer releases with MPS; the newest needs macOS {macos}."),
    "cpu-build-runs": _("The CPU build of torch {version} runs on any processor of this kind."),
    "newer-torch-not-for-system": _("torch {version} is newer, but no {backend} build of it is known for this system."),
    "newer-torch-not-for-python": _("torch {version} is newer, but has no {backend} build for Python {python}."),
    "newer-torch-needs-newer-system": _("torch {version} is newer, but its {backend} build needs a newer system."),
    "newer-torch-not-seen": _("torch {version} is newer, but no index has been seen to hold its {backend} build."),
    "container-without-gpu": _("The NVIDIA driver is available but no GPU is: start the container with --gpus all."),
    "nvidia-driver-without-gpu": _("The NVIDIA driver is installed, but no GPU was found."),
    "python-allowed": _("What you ask for needs Python {pythons}, so the plan takes Python {python} instead of {own}."),
    "python-installs": _("What you ask for cannot all be installed for Python {own}; for Python {python} it can."),
    "nightly-asked-for": _("You asked for a nightly build: it continues from torch {version}."),
    "nightly-without-companions": _("Without {packages}: their nightly builds fit only the torch of the same night."),
    "bundle-incomplete": _(
        "“{bundle}” comes without {packages}: no build is known for torch {torch} and Python {python} on this system."
    ),
    "ort-plugin-registers": _(
        "A program registers {package} with ONNX Runtime (register_execution_provider_library) before it uses it."
    ),
    "ort-catalog-needs-windows": _(
        "{package} finds providers only on {windows} or newer; until then DirectML and the CPU compute."
    ),
    "ort-ended": _("{package} ended with {version}."),
    "ort-ended-for-python": _("{package} ended with {version}; {successor} takes its place, for Python {pythons}."),
    "ort-ended-on-windows": _("{package} ended with {version}; {successor} takes its place, on {windows} or newer."),
    "ort-succeeded": _("{package} ended with {version}; {successor} takes its place."),
    "current-torch-for-card": _("Instead of torch-directml, {name} can use {backend} with torch {torch}."),
    "ort-for-card": _("For ONNX models, {package} is current and computes on {name}."),
    "ort-plugin-for-card": _("For ONNX models, the plug-in {package} computes on {name}, too."),
    "ort-plugin-for-npu": _("torch computes on the CPU here; {package} can use the Snapdragon's NPU for ONNX models."),
    "first-has-current-torch": _("{first} goes before {second}, for which only the old torch of DirectML is released."),
    "first-has-known-speed": _("{first} goes before {second}, whose speed is not in the tables."),
    "first-is-faster": _("{first} goes before {second}: {ours} TFLOPS in half precision against {theirs}."),
    "first-is-discrete": _("{first} goes before {second}, which shares memory and power with the processor."),
    "first-is-better-tested": _("{first} goes before {second}, whose build is less tested."),
    "first-has-more-memory": _("{first} goes before {second}: {ours} GB of memory against {theirs}."),
    "first-has-more-software": _("{first} goes before {second}: more software is written for {backend}."),
}


def sentence(key: str, /, **params: object) -> Message:
    """Return a sentence of a plan by its key, its placeholders filled."""
    text = SENTENCES[key]
    return Message(text.id, key=key).format(**params)


def why_not_newest(candidate: Candidate, context: Context) -> Message | None:
    """Return why a candidate is not of the newest release that the pins allow; None if it is, or the cause is another.

    None for DirectML, too: its own warning says that its torch is frozen.
    """
    allowed = (row for row in context.catalog.releases if context.pins.allow_release(row))
    newest = next(allowed, None)
    if candidate.backend is Backend.DIRECTML or newest is None or number(candidate.version) >= number(newest.version):
        return None
    family = candidate.wheel.variant.rstrip("0123456789.") if candidate.wheel else "rocm"
    wheels = context.catalog.wheels(context.target.platform, None, family)
    builds = [wheel for wheel in wheels if wheel.release is newest]
    here = [wheel for wheel in builds if context.target.tag in (None, *wheel.pythons)]
    holds = {
        "newer-torch-not-for-system": bool(builds),
        "newer-torch-not-for-python": bool(here),
        "newer-torch-needs-newer-system": any(context.is_system_new_enough(wheel) for wheel in here),
        "newer-torch-not-seen": any(wheel.confirmed for wheel in here),
    }
    key = next((key for key, holds_here in holds.items() if not holds_here), "")
    values = {"version": newest.version, "backend": candidate.backend.title, "python": context.target.python}
    return sentence(key, **values) if key else None


def with_assumed_code(text: Message, wheel: TorchWheel) -> Message:
    """Return a sentence about the code in a build; if nobody has looked into that build, one that calls it assumed."""
    if not wheel.assumed:
        return text
    key = f"{text.key}-assumed"
    if key in SENTENCES:
        return sentence(key, **text.params)
    return sentences((text, _("That is assumed from the build before it.")), text.key and key)


Offer = Candidate | Rejection  # a backend answers with candidates, best first, and with what it rejects and why


def reject(backend: Backend, key: str, why: Text, would_help: Text = "", variant: str = "") -> Rejection:
    """Return the rejection of a backend, or of one of its variants."""
    return Rejection(backend=backend, variant=variant, key=key, why=why, would_help=would_help)


def reject_hidden(backend: Backend, vendor: Vendor, context: Context) -> Rejection | None:
    """Return a rejection if a variable such as CUDA_VISIBLE_DEVICES=-1 hides all of a maker's GPUs here, else None."""
    for row in context.catalog.rows("systems.hiding"):
        value = context.machine.env.get(row.variable) if vendor.value in row.vendors else None
        if value is not None and value.split(",")[0].strip().lower() in _NO_DEVICE:
            setting = f"{row.variable}={value}"
            why = _("{setting} hides every {vendor} GPU from PyTorch.", setting=setting, vendor=MAKERS[vendor])
            return reject(backend, "devices-hidden", why, _("Remove that setting from the environment."))
    return None


def reject_pins(backend: Backend, context: Context, version: str, variant: str) -> Rejection:
    """Return the rejection of a backend that only the pins exclude: torch `version` with `variant` would run here."""
    return reject(
        backend,
        "pins-exclude-build",
        _("No {backend} build that satisfies {pins} runs here.", backend=backend.title, pins=context.pins.text),
        _("Relax the pin: torch {version} with {variant} runs here.", version=version, variant=variant),
        variant,
    )


def reject_system(backend: Backend, context: Context, would_help: Message, variant: str = "") -> Rejection:
    """Return the rejection of a backend of which no build that the pins allow installs on this system and Python."""
    pins = context.pins.text
    with_pins = _("No {backend} build that satisfies {pins} installs with Python {python} on this system.")
    why = with_pins if pins else _("No {backend} build installs with Python {python} on this system.")
    why = why.format(backend=backend.title, pins=pins, python=context.target.python)
    return reject(backend, "no-wheel-for-system", why, would_help, variant)
