"""Why an operation stays FP32, in the user's language."""

from __future__ import annotations

from assistant.i18n import _

__all__ = ["reason"]


def reason(key: str) -> str:
    """Put the reason for which an operation stays FP32 into words."""
    return {
        "asked": _("you asked for it"),
        "between": _("it stands between operations in FP32"),
        "beyond": _("one of its values is too large for FP16, or too small"),
        "bits": _("it reads bits, not numbers"),
        "epsilon": _("its epsilon is zero in FP16"),
        "exact": _("an integer, a size or a threshold is computed from it"),
        "infinite": _("a value too large for FP16 would count as infinite"),
        "outputs": _("it has further outputs, which are FP32 and which no GPU kernel makes"),
        "quantised": _("it belongs to a quantised part, which is fused as it stands"),
        "range": _("DirectML has it in FP32 only, and FP16 loses integers above 2048"),
        "rehearsal": _("rounding it changes the result"),
        "scatter": _("it gathers many values into one"),
        "sequence": _("it handles sequences or optional values"),
        "subgraph": _("it passes values into its subgraphs and back"),
        "sums": _("the sums inside it are too large for FP16"),
        "threshold": _("its thresholds decide on the last digit"),
        "unseen": _("its values could not be observed"),
    }[key]
