"""The file `assistant.toml`: one setup as people and the assistant read it; nothing in it can run."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Literal

from packaging.utils import canonicalize_name
from packaging.version import VERSION_PATTERN

from assistant.export.packages import lock_text
from assistant.export.setup import MARKER, Setup, toml_text, without_path
from assistant.i18n import Message, Text, _, render, say
from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine
from assistant.model.plan import Plan, foreign_index_fault, plain_requirement
from assistant.model.record import Record, from_plain, replace, to_plain
from assistant.model.report import RIGHT, Environment, Report, status_word
from assistant.model.visible import printable

# What a plan may set. Others make a program load libraries or code (LD_PRELOAD, PYTHONPATH, CUDA_INJECTION64_PATH).
VARIABLES = frozenset(
    (
        "CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES",
        "HSA_ENABLE_DXG_DETECTION", "HSA_OVERRIDE_GFX_VERSION", "INFERENCE_DEVICE", "MIOPEN_DEBUG_CONV_WINOGRAD",
        "MIOPEN_FIND_MODE", "ONEAPI_DEVICE_SELECTOR", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_ENABLE_MPS_FALLBACK", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
        "ROCR_VISIBLE_DEVICES", "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS",
        "ZE_AFFINITY_MASK",
    )
)  # fmt: skip
_VALUE = re.compile(r"[\w.,:;=+*-]{0,200}", re.ASCII)
_FOLDER = re.compile(r"[^/\\:\x00-\x1f\x7f]{1,200}")
# Devices of Windows in every folder, with any ending: https://learn.microsoft.com/windows/win32/fileio/naming-a-file
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_VARIANT = re.compile(r"[a-z][\w.-]{0,40}(/[\w.-]{1,40})?", re.ASCII)
_PYTHON = re.compile(r"\d{1,2}\.\d{1,3}(\.\d{1,3})?t?")
_DEVICE = re.compile(r"[a-z_]{1,20}(:\d{1,3})?", re.ASCII)
_KERNEL = re.compile(r"[A-Za-z0-9._-]{1,120}")
_PACKAGE = re.compile(r"[a-z0-9]([a-z0-9-]{0,118}[a-z0-9])?")
_VERSION = re.compile(VERSION_PATTERN, re.VERBOSE | re.IGNORECASE | re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


_Checked = tuple[str, str, bool, Text]  # where a text is, the text, whether it may be there, and why it may not


def check_values(file: str, config: Config) -> None:
    """Raise `BadInput` naming `file` and the first value that is not of the plain form that this program writes."""
    for place, value, fits, why in chain(_check_names(config), _check_packages(config), _check_sources(config.plan)):
        if not fits:
            raise BadInput(
                _(
                    "{file} is refused at {place}: {why} ({text}).",
                    file=file,
                    place=printable(place),
                    why=why,
                    text=ascii(value)[1:-1][:80],
                ),
                hint=_("Export it again where it came from, and leave that value as it is."),
            )


def _check_names(config: Config) -> Iterator[_Checked]:
    """Yield for each name in a configuration its place, the name, whether it may be there, and why it may not.

    A path may be one folder's plain name, an interpreter lie within it; the name in the launcher has to be empty.
    """
    plan, environment, folder = config.plan, config.environment, config.environment.path
    forms: tuple[tuple[str, re.Pattern[str], Iterable[str]], ...] = (
        ("plan.variant", _VARIANT, (plan.variant,) if plan.torch else ()),
        ("plan.name", _PACKAGE, filter(None, (plan.name,))),
        ("plan.python", _PYTHON, (plan.python,)),
        ("plan.recipe", _PACKAGE, filter(None, (plan.recipe,))),
        ("plan.asked", _PACKAGE, plan.asked),
        ("plan.apart", _PACKAGE, plan.apart),
        ("verification.device", _DEVICE, (config.verification.device,)),
        ("environment.kernel", _KERNEL, filter(None, (environment.kernel,))),
    )
    why = _("it is not of the form that the assistant writes")
    for place, form, texts in forms:
        yield from ((place, text, bool(form.fullmatch(text)) and ".." not in text, why) for text in texts)
    # The assistant leaves this name out, as it names a card.
    yield "environment.display_name", environment.display_name, not environment.display_name, why
    plain = _FOLDER.fullmatch(folder) and folder.strip(". ") == folder and not _RESERVED.fullmatch(folder)
    yield "environment.path", folder, bool(plain), _("it is not the plain name of a folder")
    parts = environment.python.split("/")
    inside = len(parts) <= 2 and all(_FOLDER.fullmatch(part) and part.strip(".") for part in parts)  # noqa: PLR2004 - bin/python
    yield "environment.python", environment.python, inside, _("it leads out of the environment")


def _check_packages(config: Config) -> Iterator[_Checked]:
    """Yield for each version, name, hash and requirement its place, the text, whether it may be there, and why not.

    A requirement may hold no address.
    """
    packages, plan = config.environment.packages, config.plan
    versions = {f"environment.packages.{name}": version for name, version in packages.items()}
    torch = {"plan.torch": plan.torch} if plan.torch else {}
    for place, text in {**torch, **versions}.items():
        yield place, text, bool(_VERSION.fullmatch(text)), _("it is not a version")
    for name in packages:
        fits = canonicalize_name(name) == name and _PACKAGE.fullmatch(name) is not None
        yield "environment.packages", name, fits, _("it is not the name of a package")
    for name, digest in config.hashes.items():
        fits = name in packages and _SHA256.fullmatch(digest) is not None
        yield f"hashes.{name}", digest, fits, _("it is not the SHA-256 of a package that is listed")
    bounds = (("constraints", plan.constraints), ("overrides", plan.overrides))
    for place, lines in (("requirements", plan.requirements), *bounds):
        for line in lines:
            need = plain_requirement(line) if line.isascii() else None
            why = _("it names an address of its own") if need else _("it is not a requirement")
            yield f"plan.{place}", line, need is not None and not need.url, why


def _check_sources(plan: Plan) -> Iterator[_Checked]:
    """Yield for each address and variable of a plan its place, the text, whether it may be there, and why it may not.

    Whether the addresses are trusted is asked before their use.
    """
    indexes = () if plan.index_url is None else (plan.index_url,)
    for place, urls in (("index_url", indexes), ("indexes", plan.indexes), ("links", plan.links)):
        for url in urls:
            why = foreign_index_fault(url)
            yield f"plan.{place}", url, not why, why
    for name, value in plan.env.items():
        yield f"plan.env.{name}", value, name in VARIABLES, _("no plan sets this variable")
        yield f"plan.env.{name}", value, bool(_VALUE.fullmatch(value)), _("such values can name files or commands")


SCHEMA = 1
NAME = "assistant.toml"


class Config(Record, frozen=True, omit_defaults=False):
    """A setup as it was: machine, plan, environment, verification, and the versions that wrote it.

    `environment` names its folder alone and the interpreter inside of it: nobody else has that path. `hashes` holds
    the SHA-256 of each package's file (`locked` of them, so that a file without its end is noticed), `lock` that of the
    `pylock.toml`, "" where there is none.
    """

    plan: Plan
    environment: Environment
    verification: Report
    machine: Machine
    versions: dict[str, str] = {}
    hashes: dict[str, str] = {}
    lock: str = ""
    locked: int = 0
    schema: Literal[1] = 1

    def is_called(self, folder: Path) -> bool:
        """Return whether a folder has the name that is kept of the environment's path."""
        return without_path(replace(self.environment, path=str(folder))).path == self.environment.path

    def same_hardware(self, here: Machine) -> bool:
        """Return whether its lock fits a machine: the same system, processor and GPUs."""
        then = self.machine
        return (then.os, then.arch, _labels(then.gpus)) == (here.os, here.arch, _labels(here.gpus))


def config_text(setup: Setup) -> str:
    """Return the setup as the text of an `assistant.toml`, without paths and folders of wheels on this machine."""
    pages = tuple(place for place in setup.plan.links if "://" in place and not place.startswith("file:"))
    named = {"assistant": setup.version, "python": setup.report.facts.get("python"), "torch": setup.plan.torch}
    config = Config(
        versions={name: version for name, version in named.items() if version},
        plan=replace(setup.plan, links=pages),
        environment=without_path(setup.environment),
        verification=setup.report,
        machine=setup.machine,
        hashes=setup.hashes,
        locked=len(setup.hashes),
        lock=hashlib.sha256(lock_text(setup).encode()).hexdigest() if setup.lock else "",
    )
    plain = _drop_none(to_plain(config))
    return f"# {MARKER}: `assistant apply` rebuilds this setup, `assistant check` compares with it.\n" + toml_text(
        plain if isinstance(plain, dict) else {}
    )


def read_config(text: str, file: str = NAME) -> Config:
    """Return the setup in the text of an `assistant.toml`, decoded strictly, as anybody may have written it.

    `file` is its name in refusals. Raises `BadInput` naming the place at fault: broken or cut TOML, another schema, an
    unknown key, a wrong type, a value that is not of the plain form that the assistant writes.
    """
    try:
        plain = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(
            _("{file} is not valid TOML: {reason}.", file=file, reason=printable(str(error).rstrip("."))),
            hint=_("Correct it there, or export the file again."),
        ) from error
    schema = plain.get("schema")
    if schema is None:
        raise BadInput(
            _("{file} is not a configuration exported by the assistant.", file=file),
            hint=_("Give the assistant.toml of an export."),
        )
    if schema != SCHEMA or isinstance(schema, bool):
        raise BadInput(
            _(
                "{file} has schema {found}; this version reads schema {known}.",
                file=file,
                found=ascii(schema)[:40],
                known=SCHEMA,
            ),
            hint=_("Update the assistant, or export the file again."),
        )
    config = from_plain(plain, Config, file)
    if len(config.hashes) != config.locked:
        raise BadInput(
            _(
                "{file} announces {locked} hashes but holds {found}; its end may be missing.",
                file=file,
                locked=config.locked,
                found=len(config.hashes),
            ),
            hint=_("Get the complete file, or export it again."),
        )
    check_values(file, config)
    return config


def _drop_none(value: object) -> object:
    """Return a value without keys that are None, at any depth: TOML has no null, and None is their default."""
    if isinstance(value, dict):
        return {key: _drop_none(part) for key, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [_drop_none(part) for part in value]
    return value


_DIGITS = 16  # of a hash: enough to tell files apart, and to be read
_KINDS = {
    "driver": _("driver"),
    "system": _("system"),
    "gpu": _("GPU"),
    "plan": _("plan"),
    "package": _("package"),
    "file": _("file of the package"),
    "python": _("Python"),
    "device": _("device"),
    "check": _("check"),
    "environment": _("environment"),
}


class Drift(Record, frozen=True, omit_defaults=False):
    """One difference: its kind (a key of `_KINDS`), what it concerns, the value then and now; None for not there."""

    kind: str
    name: str
    was: str | None = None
    now: str | None = None

    @property
    def text(self) -> str:
        """The difference as one line, in the current language."""
        kind = _KINDS.get(self.kind, printable(self.kind))
        what = Message("{kind} {name}" if self.name else "{kind}").format(kind=kind, name=printable(self.name))
        was, now = map(printable, (self.was, self.now))
        if self.was is None:
            return say("{what}: {now} is new", what=what, now=now)
        if self.now is None:
            return say("{what}: {was} is gone", what=what, was=was)
        return say("{what}: was {was}, is {now}", what=what, was=was, now=now)


def machine_drift(was: Machine, now: Machine) -> tuple[Drift, ...]:
    """Return the differences in drivers, system and GPUs; what was unknown of the system then is not compared."""
    drivers = {
        "NVIDIA": (was.nvidia_driver, now.nvidia_driver),
        "CUDA": (was.cuda_driver_api, now.cuda_driver_api),
        "ROCm": (was.rocm_version, now.rocm_version),
    }
    words = {True: say("yes"), False: say("no"), None: None}
    system = {
        "os": (was.os_version or was.os, now.os_version or now.os),
        "arch": (was.arch, now.arch),
        "WSL": (words[was.wsl], words[was.wsl if now.wsl is None else now.wsl]),
    }
    known = {name: values for name, values in system.items() if values[0] is not None}
    return (*_list_changes("driver", drivers), *_list_changes("system", known), *_gpu_drift(was.gpus, now.gpus))


def plan_drift(was: Plan, now: Plan) -> tuple[Drift, ...]:
    """Return the differences between two plans in backend, variant, torch, Python, index and variables."""
    facts = {
        "backend": (was.backend.value, now.backend.value),
        "variant": (was.variant, now.variant),
        "torch": (was.torch, now.torch),
        "python": (was.python, now.python),
        "index": (was.index_url or say("pip's own"), now.index_url or say("pip's own")),
    }
    return _list_changes("plan", {**facts, **_pair_by_name(was.env, now.env)})


def package_drift(
    was: Mapping[str, str], now: Mapping[str, str], hashes: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
) -> tuple[Drift, ...]:
    """Return the packages whose versions differ, then those of one version whose files differ in their SHA-256.

    `hashes` are those then and now, by package; files are compared where both are known, by the first digits. pip is
    left out: it is a tool that users update as they please, and no part of a setup.
    """
    versions = {name: pair for name, pair in _pair_by_name(was, now).items() if name != "pip"}
    moved = _list_changes("package", versions)
    skipped = {"pip", *(drift.name for drift in moved)}
    digests = {
        name: (then[:_DIGITS], today[:_DIGITS])
        for name, (then, today) in _pair_by_name(*hashes).items()
        if then and today and name not in skipped
    }
    return (*moved, *_list_changes("file", digests))


def report_drift(was: Report, now: Report) -> tuple[Drift, ...]:
    """Return the differences in device and Python, and the checks that were right then and are not now.

    A check that did not run both times is not compared, nor is a Python that is not known of both.
    """
    ran = {check.key: check.status for check in now.checks}
    python = was.facts.get("python"), now.facts.get("python")
    worse = {
        check.key: (render(status_word(check.status)), render(status_word(ran[check.key])))
        for check in was.checks
        if check.status in RIGHT and check.key in ran and ran[check.key] not in RIGHT
    }
    pythons = _list_changes("python", {"": python}) if all(python) else ()
    return (*_list_changes("device", {"": (was.device, now.device)}), *pythons, *_list_changes("check", worse))


_Values = tuple[str | None, str | None]  # then and now, None where there is none


def _pair_by_name(was: Mapping[str, str], now: Mapping[str, str]) -> dict[str, _Values]:
    """Return the values then and now of all names, in the order of the alphabet."""
    return {name: (was.get(name), now.get(name)) for name in sorted({*was, *now})}


def _list_changes(kind: str, values: Mapping[str, _Values]) -> tuple[Drift, ...]:
    """Return a difference of this kind for each name whose value then is another now."""
    return tuple(Drift(kind=kind, name=name, was=was, now=now) for name, (was, now) in values.items() if was != now)


def _gpu_drift(was: tuple[Gpu, ...], now: tuple[Gpu, ...]) -> Iterable[Drift]:
    """Yield one difference if the GPUs have other names now, else one for each whose driver was known and changed."""
    before, after = _labels(was), _labels(now)
    if before != after:
        yield Drift(kind="gpu", name="", was=", ".join(before) or None, now=", ".join(after) or None)
        return
    by_label = attrgetter("label")
    for old, new in zip(sorted(was, key=by_label), sorted(now, key=by_label), strict=True):
        if old.driver and old.driver != new.driver:
            yield Drift(kind="driver", name=old.label, was=old.driver, now=new.driver)


def _labels(gpus: tuple[Gpu, ...]) -> list[str]:
    """Return what GPUs are called, in the order of the alphabet."""
    return sorted(gpu.label for gpu in gpus)
