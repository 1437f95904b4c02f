"""Diagnoses with all that is known: the reports inside a log, the machine at hand, and real plans for the remedies."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from assistant.catalog import load_catalog
from assistant.catalog.launchers import launchers, written
from assistant.catalog.rows import FAMILY
from assistant.detect import read_report
from assistant.diagnose import (
    Log,
    PlanRequest,
    RuleRemedy,
    as_remedy,
    check_up,
    launched,
    load_rules,
    matches,
    merged,
    question,
    relaunched,
    remedies_for,
    resembled,
    symptoms,
)
from assistant.host.identity import known_here
from assistant.i18n import Message, Text, _
from assistant.model.errors import BadInput
from assistant.model.finding import Diagnosis, Finding, Launch, Remedy, Severity
from assistant.model.machine import Gpu, Machine
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import from_json, replace, to_json
from assistant.plan import make_plans
from assistant.privacy import redact
from assistant.session.state import Place, Source, Unexplained

# What shows that a plan has helped, where its remedy has no check of its own.
CHECKS = {
    Backend.CUDA: 'python -c "import torch; assert torch.cuda.is_available()"',
    Backend.ROCM: 'python -c "import torch; assert torch.cuda.is_available()"',
    Backend.XPU: 'python -c "import torch; assert torch.xpu.is_available()"',
    Backend.MPS: 'python -c "import torch; assert torch.backends.mps.is_available()"',
    Backend.DIRECTML: 'python -c "import torch, torch_directml as d; torch.ones(2, device=d.device()).sum()"',
    Backend.CPU: 'python -c "import torch; torch.ones(2).sum()"',
}
_WHICH_GPU = Remedy(text=_("First find out which GPU is in the computer."), commands=("assistant detect",))
# Words of programs that gave up.
_FAILED = re.compile(r"error\b|\bfailed\b|\btraceback\b|\bexception\b|\bfatal\b|\bcannot\b|错误|失败|报错|异常")
REPORTED = 80  # last lines of a log that go into a report
LONGEST = 300  # chosen: characters of a line that are shown
# The folder of an environment, in the lines of a traceback:
#   File "/home/ada/webui/venv/lib/python3.10/site-packages/torch/__init__.py", line 237, in <module>
#   File "C:\Users\ada\ComfyUI\python_embeded\Lib\site-packages\torch_directml\__init__.py", line 21, in <module>
_ENVIRONMENT = re.compile(
    r"(?<![^\s\"'(=])((?:[A-Za-z]:)?[\\/][^\n\"'*?<>|:]{1,300}?)[\\/](?:lib(?:64)?/python3\.\d{1,2}t?|Lib)[\\/]site-packages[\\/]"
)
_MODULE = re.compile(r"site-packages[\\/](\w{1,80})")
# \\server\share\…: to look whether it is there would ask that server, and tell it who this user is.
_OF_A_SERVER = re.compile(r"[\\/]{2}")
_OF_SYSTEM = re.compile(r"/usr(?:/local)?|.*/\.local")  # whose Python is no environment of anybody's
# On Windows some keep `python.exe` in the folder itself, where an environment of venv has `Scripts`.
_FLAT = re.compile(
    r".*[\\/](?:envs[\\/][^\\/]+|python_embed\w*|(?:mini|ana)conda\d?|miniforge\d?|Python3\d+)", re.IGNORECASE
)
_SYSTEMS = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}
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
    found = []
    for match in matches(log, known):
        remedies = _with_plans(zip(match.diagnosis.remedies, match.origins, strict=True), known, log)
        found.append((_with_module(replace(match.diagnosis, remedies=remedies), log, match.line), match.line))
    better = _better(log, known) if found and not any(remedy.plan for remedy in found[0][0].remedies) else None
    if better:
        best, line = found[0]
        found[0] = replace(best, remedies=(*best.remedies, better)), line
    return tuple(found)


def places(log: Log, lines: Iterable[int | None]) -> tuple[Place | None, ...]:
    """Return where in a log its causes are shown, for the indexes in `log.lines` of the lines that show them."""
    return tuple(
        None
        if index is None
        else Place(
            line=log.lines[index][0],
            lines=tuple((number, redact(line[: 10 * LONGEST])[:LONGEST]) for number, line in log.around(index, 2)),
        )
        for index in lines
    )


def source_of(log: Log, machine: Machine, here: Machine, line: int | None = None) -> Source:
    """Return what a log of a machine comes from; `line` is the index of the line that shows its first cause."""
    program, arguments = launched(log)
    gpus = _computing(machine.gpus)
    seen = machine.os and _gpus_known(machine)
    best = _plan(to_json(replace(machine, evidence=())), PlanRequest()) if seen else None
    return Source(
        program=program.name if program else "",
        arguments=arguments if program else (),
        python=_python_named(log, line),
        system=machine.os_version or _SYSTEMS.get(machine.os or "", ""),
        gpu=gpus[0].label if len(gpus) == 1 else "",
        best=best.backend if best else None,
        elsewhere=machine.os != here.os,
    )


def _computing(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Return the GPUs that are meant when one speaks of a computer's: the discrete ones, where there are any."""
    return tuple(gpu for gpu in gpus if gpu.integrated is False) or gpus


def _near(log: Log, line: int | None, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield what lines name, from the one that shows a cause upwards, then those below it."""
    start = len(log.lines) if line is None else line + 1
    for _number, text in (*reversed(log.lines[:start]), *log.lines[start:]):
        if "site-packages" in text and (found := pattern.search(text)):
            yield found[1]


def _python_named(log: Log, line: int | None) -> str:
    """Return the interpreter of the environment in which a log's program runs; "" where the log names none."""
    for folder in _near(log, line, _ENVIRONMENT):
        if _OF_SYSTEM.fullmatch(folder) or _OF_A_SERVER.match(folder):
            continue
        if "\\" not in folder:
            return f"{folder}/bin/python"
        return f"{folder}\\python.exe" if _FLAT.fullmatch(folder) else f"{folder}\\Scripts\\python.exe"
    return ""


def _with_module(diagnosis: Diagnosis, log: Log, line: int | None) -> Diagnosis:
    """Name the module that was built for another NumPy, where the log names it, and what helps that module."""
    if diagnosis.key != "numpy2-abi":
        return diagnosis
    module = next((name for name in _near(log, line, _MODULE) if name not in {"numpy", "_distutils_hack"}), "")
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
    arguments = launched(log)[1]
    directml = any("directml" in word for word in arguments) or "torch-directml" in log.facts.packages
    cpu = log.facts.packages.get("torch", "").endswith("+cpu")
    used = Backend.DIRECTML if directml or "privateuseone" in log.text else Backend.CPU if cpu else None
    plan = _plan(to_json(replace(machine, evidence=())), PlanRequest()) if used and machine.os else None
    order = list(Backend)
    if used is None or plan is None or order.index(plan.backend) >= order.index(used):
        return None
    gpus = _computing(machine.gpus)
    text = _("Change from {used} to {better}: PyTorch for {better} runs on the {gpu} and suits it better.").format(
        used=used.title, better=plan.backend.title, gpu=gpus[0].label if gpus else "GPU"
    )
    launch = relaunched(log, plan.backend, machine.os or "") if launched(log)[0] else ()
    return Remedy(text=text, plan=plan, check=(CHECKS[plan.backend],), launch=tuple(map(_whole, launch)), mends=False)


def machine_of_log(log: Log, here: Machine) -> Machine:
    """Return the machine that a log comes from: what the log states, then the facts of the machine at hand.

    A log of another system, or whose cause the machine at hand cannot have, is not mixed with that machine.
    """
    stated = _stated(log)
    if stated.os and here.os and stated.os != here.os:
        return stated
    both = merged(stated, here)
    return stated if not matches(log, both) and matches(log, stated) else both


def unexplained(log: Log, machine: Machine) -> Unexplained:
    """Return what can be said of a log whose cause is not known."""
    known = merged(machine, _stated(log))
    told = symptoms(log)
    asked = question(told, known)
    if asked is None and told == () and _FAILED.search(log.text):
        asked = Remedy(text=_("Paste the whole output, from the command on: what matters often stands above the end."))
    wrong = tuple(finding for finding in check_up(known) if finding.wrong)
    shown = tuple(Finding(key=one.key, severity=Severity.INFO, text=_(one.text)) for one in told)
    rules = (load_rules().by_key[key] for key in resembled(log, known))
    alike = tuple(Finding(key=rule.key, severity=Severity.INFO, text=_(rule.title)) for rule in rules if rule.named)
    return Unexplained(symptoms=shown, alike=alike, findings=with_remedies(wrong, known), question=asked)


def inquiry(log: Log, machine: Machine, found: Iterable[Diagnosis]) -> str:
    """Return a report to paste into an issue: causes, machine and the log's last lines, without private things."""
    known = known_here()
    lines = "\n".join(line for _number, line in log.lines[-REPORTED:]).replace("```", "'''")
    keys = ", ".join(f"{diagnosis.key} ({diagnosis.confidence:g})" for diagnosis in found) or "none"
    facts = to_json(redact(replace(machine, evidence=()), known=known), indent=2)
    cleaned = redact(lines, known=known)
    return f"Causes found: {keys}\n\n## Machine\n\n```json\n{facts}\n```\n\n## Log\n\n```text\n{cleaned}\n```\n"


def with_remedies(findings: Iterable[Finding], machine: Machine) -> tuple[Finding, ...]:
    """Add the remedies of a known cause to findings of its key that have no command of their own."""
    rules = {rule.key: rule for rule in load_rules().rules}

    def helped(finding: Finding) -> Finding:
        able = any(remedy.commands for remedy in finding.remedies)
        if finding.key not in rules or not finding.wrong or able:
            return finding
        more = _with_plans(
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


def _with_plans(
    remedies: Iterable[tuple[Remedy, RuleRemedy | None]], machine: Machine, log: Log | None = None
) -> tuple[Remedy, ...]:
    """Fill in plans, their checks and launch arguments; leave out a remedy whose plan this machine cannot have."""
    facts = to_json(replace(machine, evidence=()))
    filled: list[tuple[Remedy, RuleRemedy | None]] = []
    for remedy, origin in remedies:
        if origin and origin.plan and origin.plan.backend is None and not _gpus_known(machine):
            asked = {each.text for each, _origin in filled}
            filled += [(each, None) for each in (_WHICH_GPU, remedy) if each.text not in asked]
            continue
        plan = _plan(facts, origin.plan) if machine.os and origin and origin.plan else None
        check = remedy.check or ((CHECKS[plan.backend],) if plan else ())
        filled.append((replace(remedy, plan=plan, check=check, text=_for_this(remedy.text, plan)), origin))
    first = next((remedy.plan for remedy, _origin in filled if remedy.plan), None)
    possible = tuple(
        replace(remedy, launch=tuple(map(_whole, relaunched(log, first.backend, machine.os or ""))))
        if origin and origin.launch and first and log and log.text
        else remedy
        for remedy, origin in filled
        if origin is None or origin.plan is None or remedy.plan or remedy.commands or remedy.env
    )
    return possible or tuple(remedy for remedy, _origin in filled)


def _gpus_known(machine: Machine) -> bool:
    """Return whether GPUs were told, or looked for: a machine that was not detected may have one that nobody named."""
    return bool(machine.gpus or machine.evidence)


def _for_this(text: Text, plan: Plan | None) -> Text:
    """Name the one build that was planned, where a rule's sentence lists those of every maker."""
    listed = text.id if isinstance(text, Message) else text
    if plan is None or sum(backend.title in listed for backend in Backend) <= 2:  # noqa: PLR2004 - a pair is a contrast
        return text
    return _("Install PyTorch for {backend}, the build that fits this computer.", backend=plan.backend.title)


def _whole(launch: Launch) -> Launch:
    """Write out the line of a file of settings, such as `device: auto`, in which a bare argument would be an error."""
    settings = next((each for each in launchers() if each.name == launch.app), None)
    if launch.line or settings is None or any(word.startswith("-") for word in settings.choosing):
        return launch
    line = written(settings, launch.add, next(iter(settings.lines))) if launch.add else None
    return replace(launch, line=line, add=()) if line else launch


@cache  # many remedies ask for the same plan; the machine as JSON, since a record with dicts has no hash
def _plan(facts: str, wanted: PlanRequest) -> Plan | None:
    """Plan for a machine; torchvision and torchaudio, which may lie beside a torch that is there, change with it."""
    machine = from_json(facts, Machine, "machine")
    family = FAMILY if "torch" in machine.packages and not wanted.pins else ()
    for pins in dict.fromkeys(((*wanted.pins, *family), wanted.pins)):
        request = Request(backend=wanted.backend, python=wanted.python, pins=pins)
        with contextlib.suppress(BadInput):
            if choice := make_plans(machine, load_catalog(), request).choice:
                return choice
    return None
