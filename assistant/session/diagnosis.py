"""Diagnoses with all that is known: the reports inside a log, the machine at hand, and real plans for the remedies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from assistant.detect import read_report
from assistant.diagnose import (
    Log,
    PlanRequest,
    as_remedy,
    check_up,
    corrected_launches,
    find_launch,
    interpreter_of,
    load_rules,
    matches,
    matches_near_line,
    merged,
    question,
    remedies_for,
    supposed_cuda,
    symptoms,
    with_interpreter,
)
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.finding import Diagnosis, Finding, Remedy, Severity
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.privacy import Lines
from assistant.session.remedy_plans import CHECKS, any_nvidia, gpus_known, planned, whole, with_plans
from assistant.session.state import Place, Source, Unexplained

# Words of programs that gave up.
_FAILED = re.compile(r"error\b|\bfailed\b|\btraceback\b|\bexception\b|\bfatal\b|\bcannot\b|错误|失败|报错|异常")
LONGEST = 300  # chosen: characters of a line that are shown
_MODULE = re.compile(r"site-packages[\\/](\w{1,80})")
# Words by which one tells whose card it is that a log does not name.
_OF_NVIDIA = re.compile(
    r"nvidia|geforce|\b[rg]tx ?\d|quadro|\btesla\b|\bcu1[123]\d\b|\bcuda (?:version|toolkit|1[123])|\bnvcc\b|\bsm_\d"
)
_OF_OTHERS = re.compile(
    r"\bamd\b|radeon|\brocm|\bhip\b|\bgfx\d|directml|zluda|\bintel (?:arc|gpu|xpu)|\bxpu\b|\barc\b|\bmps\b"
    r"|mac(?:os|book| mini| studio)\b|apple|\bm[1-5] (?:pro|max|ultra)\b"
)
_SYSTEMS = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}
# What was loaded is NumPy itself, or what runs a notebook's cells and stands above them in each traceback.
_NOT_AT_FAULT = {"numpy", "_distutils_hack", "ipykernel_launcher", "ipykernel", "traitlets", "tornado", "IPython"}
# Python's own words, in lower case, as logs are searched; not those for torchvision or torch_directml.
_NO_TORCH = re.compile(r"no module named '?torch(?![\w.-])")
# Packages whose names differ from those of their modules; as published on PyPI.
_PACKAGE_OF = {"cv2": "opencv-python", "sklearn": "scikit-learn", "skimage": "scikit-image", "PIL": "pillow"}
_ANY = {"package": "NAME"}  # where a check of the machine is the reason, and no log names a package
# Words of the reports that people paste whole: collect_env, nvidia-smi, rocminfo, dxdiag, system_profiler.
REPORTS = ("pytorch version:", "nvidia-smi", "hsa agents", "dxdiag", "spdisplaysdatatype", "graphics/displays")


def diagnosed(log: Log, machine: Machine) -> tuple[Diagnosis, ...]:
    """Return the causes of what a log shows, best first, each remedy with the plan that can be installed."""
    return tuple(diagnosis for diagnosis, _line in diagnosed_lines(log, machine))


def diagnosed_lines(log: Log, machine: Machine) -> tuple[tuple[Diagnosis, int | None], ...]:
    """Return what `diagnosed` does, each cause with the index in `log.lines` of the line that shows it."""
    known = merged(machine, _stated(log))
    found, supposed = [], _supposed(known, log)
    for match in matches(log, known):
        where = interpreter_of(log, known, match.line)
        remedies = with_plans(zip(match.diagnosis.remedies, match.origins, strict=True), supposed, log, where)
        found.append((_with_module(replace(match.diagnosis, remedies=remedies), log, match.line), match.line))
    better = _better(log, known) if found and not any(remedy.plan for remedy in found[0][0].remedies) else None
    if better:
        best, line = found[0]
        found[0] = replace(best, remedies=(*best.remedies, better)), line
    return tuple(found)


def _supposed(machine: Machine, log: Log) -> Machine:
    """Return a machine with the NVIDIA card that words or the build imply, where nobody told or looked which it has."""
    if gpus_known(machine):
        nvidia = bool(machine.gpus) and all(gpu.vendor is Vendor.NVIDIA for gpu in machine.gpus)
        return replace(machine, os=machine.os or "linux") if nvidia else machine
    words = bool(_OF_NVIDIA.search(log.text)) and not _OF_OTHERS.search(log.text)
    build = machine.packages.get("torch", "").partition("+")[2]
    implied = machine.os != "macos" and (words or build.startswith("cu"))
    return any_nvidia(machine, supposed_cuda()) if implied else machine


def placed_causes(
    causes: Iterable[tuple[Diagnosis, int | None]], log: Log, machine: Machine
) -> tuple[tuple[Diagnosis, int | None], ...]:
    """Return causes whose remedies' commands are typed for the Python that the log's program runs in."""
    known = merged(machine, _stated(log))
    wheres = ((cause, line, interpreter_of(log, known, line)) for cause, line in causes)
    return tuple(
        (replace(cause, remedies=tuple(with_interpreter(remedy, where) for remedy in cause.remedies)), line)
        for cause, line, where in wheres
    )


def places(log: Log, lines: Iterable[int | None]) -> tuple[Place | None, ...]:
    """Return where in a log its causes are shown, for the indexes in `log.lines` of the lines that show them."""
    return tuple(
        None
        if index is None
        else Place(
            line=log.lines[index][0],
            lines=tuple((number, line[:LONGEST]) for number, line in without_secrets(log, index - 2, index + 3)),
        )
        for index in lines
    )


def without_secrets(log: Log, first: int, last: int) -> list[tuple[int, str]]:
    """Return the lines of a log from one index up to another, without the private key that may have begun above."""
    begin, first = max(0, first - Lines.LONGEST), max(0, first)
    clean = Lines()
    lines = [(number, clean(line[: 10 * LONGEST])) for number, line in log.lines[begin:last]]
    return lines[first - begin :]


def source_of(log: Log, machine: Machine, here: Machine, line: int | None = None) -> Source:
    """Return what a log of a machine comes from; `line` is the index of the line that shows its first cause."""
    program, arguments = find_launch(log)
    gpus = _computing(machine.gpus)
    seen = machine.os and gpus_known(machine)
    best = planned(machine, PlanRequest()) if seen else None
    return Source(
        program=program.name if program else "",
        arguments=arguments if program else (),
        interpreter=interpreter_of(log, machine, line),
        os=machine.os,
        system=machine.os_version or _SYSTEMS.get(machine.os or "", ""),
        gpu=gpus[0].label if len(gpus) == 1 else "",
        best=best.backend if best else None,
        elsewhere=machine.os != here.os,
    )


def _computing(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Return the GPUs that are meant when one speaks of a computer's: the discrete ones, where there are any."""
    return tuple(gpu for gpu in gpus if gpu.integrated is False) or gpus


def _with_module(diagnosis: Diagnosis, log: Log, line: int | None) -> Diagnosis:
    """Name the module that was built for another NumPy, where the log names it, and what helps that module."""
    if diagnosis.key != "numpy2-abi":
        return diagnosis
    module = next((name for name in matches_near_line(log, line, _MODULE) if name not in _NOT_AT_FAULT), "")
    if not module:
        return diagnosis
    title = _("{module} was built for NumPy 1, and NumPy 2 is installed", module=module)
    if module == "torch":
        return replace(diagnosis, title=title)
    check = (f'python -W error -c "import {module}"',)
    back = replace(diagnosis.remedies[0], check=check)
    newer = Remedy(
        text=_("Or install a release of {module} that was built for NumPy 2.", module=module),
        commands=(f"python -m pip install --upgrade {_PACKAGE_OF.get(module, module)}",),
        check=check,
    )
    return replace(diagnosis, title=title, remedies=(back, newer))


def _better(log: Log, machine: Machine) -> Remedy | None:
    """Return the build that the planner prefers to the one that a log's program uses; None where there is none."""
    arguments = find_launch(log)[1]
    directml = any("directml" in word for word in arguments) or "torch-directml" in log.facts.packages
    cpu = log.facts.packages.get("torch", "").endswith("+cpu")
    used = Backend.DIRECTML if directml or "privateuseone" in log.text else Backend.CPU if cpu else None
    plan = planned(machine, PlanRequest()) if used and machine.os else None
    order = list(Backend)
    if used is None or plan is None or order.index(plan.backend) >= order.index(used):
        return None
    gpus = _computing(machine.gpus)
    text = _("Change from {used} to {better}: PyTorch for {better} runs on the {gpu} and suits it better.").format(
        used=used.title, better=plan.backend.title, gpu=gpus[0].label if gpus else "GPU"
    )
    launch = corrected_launches(log, plan.backend, machine.os or "") if find_launch(log)[0] else ()
    return Remedy(text=text, plan=plan, check=(CHECKS[plan.backend],), launch=tuple(map(whole, launch)), mends=False)


def with_torch(causes: tuple[Diagnosis, ...], log: Log, machine: Machine) -> tuple[Diagnosis, ...]:
    """Offer to install torch into the kernel's own environment where the cause is that it lacks torch.

    Other remedies lead to an environment that has it, if there is one.
    """
    lacks = "torch" not in machine.packages and _NO_TORCH.search(log.text)
    plan = planned(machine, PlanRequest()) if lacks else None
    if plan is None:
        return causes
    text = _("Install PyTorch into the environment of this kernel.")
    remedy = Remedy(text=text, plan=plan, check=(CHECKS[plan.backend],))
    return tuple(
        replace(cause, remedies=(*cause.remedies, remedy)) if cause.key == "kernel-env-mismatch" else cause
        for cause in causes
    )


def machine_of_log(log: Log, here: Machine) -> Machine:
    """Return the machine that a log comes from: what the log states, then the facts of the machine at hand.

    A log of another system, or whose cause the machine at hand cannot have, is not mixed with that machine.
    """
    stated = _stated(log)
    if stated.os and here.os and stated.os != here.os:
        return stated
    both = merged(stated, here)
    here_too = matches(log, both, supposing=False)
    return stated if not here_too and matches(log, stated, supposing=False) else both


def unexplained(log: Log, machine: Machine) -> Unexplained:
    """Return what can be said of a log whose cause is not known."""
    known = merged(machine, _stated(log))
    told = symptoms(log)
    asked = question(told, known)
    if asked is None and told == () and _FAILED.search(log.text):
        asked = Remedy(text=_("Paste the whole output, from the command on: what matters often stands above the end."))
    wrong = tuple(finding for finding in check_up(known) if finding.wrong)
    shown = tuple(Finding(key=one.key, severity=Severity.INFO, text=_(one.text)) for one in told)
    return Unexplained(symptoms=shown, findings=with_remedies(wrong, known), question=asked)


def with_remedies(findings: Iterable[Finding], machine: Machine) -> tuple[Finding, ...]:
    """Add the remedies of a known cause to findings of its key that have no command of their own."""
    rules = {rule.key: rule for rule in load_rules().rules}

    def helped(finding: Finding) -> Finding:
        able = any(remedy.commands for remedy in finding.remedies)
        if finding.key not in rules or not finding.wrong or able:
            return finding
        more = with_plans(
            ((as_remedy(each), each) for each in remedies_for(rules[finding.key], machine, _ANY)), machine
        )
        new = tuple(remedy for remedy in more if remedy.text not in {known.text for known in finding.remedies})
        return replace(finding, remedies=(*finding.remedies, *new))

    return tuple(map(helped, findings))


@lru_cache(maxsize=1)  # the machine is asked for before the causes are: one reading serves both
def _stated(log: Log) -> Machine:
    """Read what a log says of its machine: the tools' reports that it holds, then what it mentions in passing.

    Without evidence: that a report names no GPU does not say that anybody looked for one.
    """
    if not any(mark in log.text for mark in REPORTS):
        return log.facts
    try:
        reported = read_report("\n".join(line for _number, line in log.lines)).machine
        return merged(replace(reported, evidence=()), log.facts)
    except BadInput:
        return log.facts
