"""What a model may run on: data/targets.toml as records; nothing of onnx is imported here."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Machine
from assistant.model.record import Record, from_plain

ALL = "all"


class Limit(Record, frozen=True):
    """What an operator is asked beside its types, one condition each; data/targets.toml says what each field means."""

    constant: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    rank: tuple[int, ...] = ()
    outputs: int = 0
    attribute: str = ""
    values: tuple[str | int | float, ...] = ()
    types: tuple[str, ...] = ()
    of: int = 0
    words: str = ""


class Target(Record, frozen=True):
    """A provider of ONNX Runtime on a device; data/targets.toml says what each field means."""

    title: str
    provider: str
    device: str = ""
    packages: tuple[str, ...] = ()
    types: frozenset[str] = frozenset()
    most_dimensions: int = 0
    fixed_sizes: bool = False
    main_graph_only: bool = False
    shapes_on_cpu: bool = False
    compiles: bool = False
    last_opset: int = 0
    fp16: bool = False
    like: str = ""
    systems: frozenset[str] = frozenset()
    makers: frozenset[str] = frozenset()


class Known(Record, frozen=True):
    """All targets by name, with what each asks of an operator, and who takes a value without dimensions where."""

    as_of: str
    targets: dict[str, Target]
    limits: dict[str, dict[str, tuple[Limit, ...]]]
    scalars: dict[str, frozenset[str]]


@cache
def known() -> Known:
    """Read all that is known of targets."""
    text = (files(__package__) / "data" / "targets.toml").read_text(encoding="utf-8")
    return from_plain(tomllib.loads(text), Known, "targets.toml")


def target(name: str) -> Target:
    """Return a target by its name; raises `BadInput` for an unknown one."""
    found = known().targets.get(name)
    if found is None:
        raise BadInput(
            _("There is no target {name}.", name=name),
            hint=_("Choose one of: {names}.", names=", ".join((*known().targets, ALL))),
        )
    return found


def chosen(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that a user gave, each once, "all" and lists with commas resolved; raises `BadInput`."""
    every = [name.strip() for given in names for name in given.split(",") if name.strip()]
    if ALL in every:
        return tuple(known().targets)
    for name in every:
        target(name)
    return tuple(dict.fromkeys(every))


def ordered(machine: Machine | None) -> tuple[str, ...]:
    """Return the names of all targets: those that this machine has come first; an unknown machine changes nothing."""
    return tuple(sorted(known().targets, key=lambda name: not is_on(known().targets[name], machine)))


def is_on(one: Target, machine: Machine | None) -> bool:
    """Return whether a machine is known to have a target: by its system and the makers of its GPUs."""
    if machine is None or (one.systems and machine.os not in one.systems):
        return False
    return bool(one.makers & {gpu.vendor.value for gpu in machine.gpus})


@cache
def limits(name: str, op: str) -> tuple[Limit, ...]:
    """Return what a target asks of an operator."""
    like = known().targets[name].like
    return tuple(limit for one in (like, name) if one for limit in known().limits.get(one, {}).get(op, ()))


@cache
def refuses_scalars(name: str, op: str) -> bool:
    """Return whether a target takes an operator's values only with dimensions."""
    takers = known().scalars.get(known().targets[name].like or name)
    return takers is not None and op not in takers
