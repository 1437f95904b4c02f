"""Facts that the user sets by hand; they win over what was found and are marked so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Detection, Evidence, Machine
from assistant.model.record import reason_of

_GPU = re.compile(r"gpus[.\[](\d{1,2})\]?\.(\w+)")


def overridden(detection: Detection, overrides: Mapping[str, str]) -> Detection:
    """Set facts by name: `nvidia_driver`, `gpus[0].gfx` (or `gpus.0.gfx`), `env.NAME`, `packages.NAME`.

    "" makes a fact unknown. Raises `BadInput` for a fact that does not exist or a value that does not fit it.
    """
    if not overrides:
        return detection
    overrides = {_GPU.sub(r"gpus[\1].\2", name): value for name, value in overrides.items()}
    facts: dict[str, Any] = msgspec.to_builtins(detection.machine)
    for name, text in overrides.items():
        group, _dot, key = name.partition(".")
        gpu, gpus = _GPU.fullmatch(name), list(facts.get("gpus") or ())
        if gpu and int(gpu[1]) <= len(gpus):  # one behind the last adds a GPU
            index = int(gpu[1])
            known = gpus[index] if index < len(gpus) else {}
            facts["gpus"] = [*gpus[:index], {**known, gpu[2]: text or None}, *gpus[index + 1 :]]
        elif key and group in {"env", "packages"}:
            facts[group] = {**facts.get(group, {}), key: text}
        else:
            facts[name] = text or None
    try:
        machine = msgspec.convert(facts, Machine, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(
            _("A fact that you set does not fit: {reason}.", reason=reason_of(error)),
            hint=_("Use the names and values of the machine description, for example python=3.12 or os=linux."),
        ) from error
    yours = tuple(Evidence(fact=name, source="you", text=value) for name, value in overrides.items())
    kept = tuple(item for item in machine.evidence if item.fact not in overrides)
    return msgspec.structs.replace(detection, machine=msgspec.structs.replace(machine, evidence=(*yours, *kept)))
