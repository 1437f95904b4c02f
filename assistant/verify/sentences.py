"""What the checks have to say, in the user's language: the child sends a key and the values of its sentence."""

from __future__ import annotations

from collections.abc import Mapping

from assistant.i18n import Text, _

SENTENCES = {
    "shape": _("The result has shape {shape}, not {expected}."),
    "off": _("{off} of {size} elements are off; element [{place}] is {value}, not {expected}."),
    "seed": _("The same seed gave other numbers."),
    "constant": _("Another seed gave the same numbers."),
    "slower than the CPU": _(
        "At this size it is slower than this machine's CPU: {rate:.3g} against {cpu_rate:.3g} {unit}; "
        "larger work may favour the device."
    ),
    "slower than sound": _("It is slower than the sound that it makes."),
    "slow kernels": _("A small operator takes {each:.0f} µs."),
    "elsewhere": _("The result lives on {found}, not on {asked}."),
    "fallback": _("{operators} ran on the CPU instead of {device}."),
    "no memory taken": _("A tensor of {size} bytes took {taken} bytes on {device}."),
    "no rocm": _("This torch {torch} is not a ROCm build."),
    "unknown": _("There is no check called {check}."),
    "needs": _("It needs the check {need} to pass."),
    "too much": _("It took more than {size} MiB of memory and was stopped."),
    "granted": _("{size} bytes were granted, which are not there."),
    "kept": _("{size} MiB stayed taken after the refusal."),
    "leak": _("{grown} MiB stayed taken after {rounds} results of {size} MiB."),
    "not installed": _("{name} is not installed in this environment."),
    "no provider": _("onnxruntime {version} has no provider for {device}, only {there}."),
    "other provider": _("ONNX Runtime ran {nodes} on {found} instead of {provider}."),
    "no node": _("ONNX Runtime's profile names no node that {provider} ran."),
    "no autocast": _("Autocast is not supported on {device}."),
    "no compile": _("torch {torch} has no torch.compile."),
    "no backend": _("torch.compile has no finished backend for {device}."),
    "no triton": _("torch.compile needs triton here, which is not installed."),
    "no compiler": _("torch.compile needs a C++ compiler on the CPU, and none is found."),
    "space in path": _("torch.compile cannot build here: the path {path} holds a space. {error}"),
}


def sentence(reason: str, values: Mapping[str, str | int | float]) -> Text:
    """Write the sentence of a key of `child.explain`; "" for "" and the bare key and values for one that is unknown."""
    if not reason:
        return ""
    known = SENTENCES.get(reason)
    return known.format(**values) if known else " ".join([reason, *(f"{key}={value}" for key, value in values.items())])
