"""A plan is assembled of a candidate: its packages, variables, reasons, warnings and download."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from assistant.i18n import Message, _, sentences
from assistant.model.plan import Backend, Plan, Rejection
from assistant.plan import surroundings
from assistant.plan.bundles import beside
from assistant.plan.candidates import Candidate, Context, passed_over
from assistant.plan.onnxruntimes import about_onnxruntime
from assistant.plan.requirements import download_mb, requirements


def plan_of(candidate: Candidate, context: Context, rejected: Collection[Rejection]) -> Plan:
    """Return the plan of a candidate; `rejected` is told beside a plan for the CPU and in place of a newer torch."""
    bundle = beside(candidate, context)
    told = any(rejection.backend is candidate.backend for rejection in rejected)
    newer = None if told else passed_over(candidate, context)
    warnings = [*candidate.warnings, *context.target.warnings, *bundle.warnings]
    warnings += surroundings.warnings(candidate, context)
    if candidate.backend is Backend.CPU:
        warnings += _why_no_gpu(context, rejected)
    lines = requirements(candidate, context, bundle)
    warnings += about_onnxruntime(candidate, context, lines)
    # In WSL, PyPI's torch would draw in CUDA, which DirectML has no use for.
    bare = candidate.backend is Backend.DIRECTML and context.target.os == "linux"
    return Plan(
        backend=candidate.backend,
        variant=candidate.variant,
        torch=candidate.version,
        python=context.target.python,
        index_url=candidate.index_url or context.catalog.index_url("cpu" if bare else candidate.variant),
        requirements=lines,
        env=candidate.env,
        download_mb=download_mb(candidate, context),
        reasons=(*candidate.reasons, newer) if newer else candidate.reasons,
        warnings=tuple(warnings),
    )


def _why_no_gpu(context: Context, rejected: Iterable[Rejection]) -> Iterator[Message]:
    """Explain beside a CPU plan why it is not for the GPU."""
    for rejection in rejected:
        yield sentences((rejection.why, rejection.would_help))
    if not context.cards and context.driver.text and not context.driver.obstacle:
        if context.machine.container:
            yield _("The NVIDIA driver is available but no GPU is: start the container with --gpus all.")
        else:
            yield _("The NVIDIA driver is installed, but no GPU was found.")
