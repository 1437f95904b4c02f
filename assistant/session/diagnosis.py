"""Diagnoses with all that is known: the reports inside a log, the machine at hand, and real plans for the remedies."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Literal

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant.catalog import identify_gpu, load_catalog
from assistant.catalog.catalog import launch_line, launchers
from assistant.catalog.companions import carried_by_torch_index
from assistant.catalog.tables import CORE, FAMILY
from assistant.detect import read_report
from assistant.diagnose import (
    Log,
    PlanRequest,
    RuleRemedy,
    find_launch,
    interpreter_of,
    load_rules,
    matches,
    merged,
    next_step,
    remedies_for,
    supposed_cuda,
    with_interpreter,
)
from assistant.host.live import private_names_here
from assistant.i18n import Message, Text, _, in_language, render
from assistant.model.errors import BadInput
from assistant.model.finding import Diagnosis, Finding, Interpreter, Launch, Remedy
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan, Request, name_of
from assistant.model.record import from_json, replace, to_json
from assistant.parsers.mentioned import TARGET, find_replaced_torch
from assistant.plan import make_plans
from assistant.privacy import Lines, redact
from assistant.session.state import Place, Source, Unexplained

# What tells one model from another in a card's name: 4070 ti super, 7900 xtx, rx580, a770, m3 max, 8060s, h100
_MODEL = re.compile(
    r"\b(?:rx|[rg]tx?)?([a-z]?\d{1,4}(?!\d)(?:[ms]\b)?) ?((?:(?:ti|super|xtx|xt|gre|pro|max|ultra|d)\b ?){0,2})"
)
# Errors of what a GPU was already running, which no machine without one prints.
#   HIP error: invalid device function     CUDA error: no kernel image is available     CUDA out of memory. Tried …
_ON_A_GPU = re.compile(
    r"\b(?:hip|cuda) (?:error: (?:invalid device function|no kernel image|an illegal memory|unspecified launch"
    r"|misaligned|device-side assert|out of memory)|out of memory)"
)
LONGEST = 300  # chosen: characters of a line that are shown
TRIED = 2  # chosen: remedies of a cause that is only possible
_MODULE = re.compile(r"site-packages[\\/](\w{1,80})")
# Words by which one tells whose card it is that a log does not name.
_OF_NVIDIA = re.compile(
    r"nvidia|geforce|\b[rg]tx ?\d|quadro|\btesla\b|\bcu1[123]\d\b|\bcuda (?:version|toolkit|1[123])|\bnvcc\b|\bsm_\d"
)
_OF_OTHERS = re.compile(
    r"\bamd\b|radeon|\brocm|\bhip\b|\bgfx\d|directml|zluda|\bintel (?:arc|gpu|xpu)|\bxpu\b|\barc\b|\bmps\b"
    r"|mac(?:os|book| mini| studio)\b|apple|\bm[1-5] (?:pro|max|ultra)\b"
)
# The facts of a machine that a log can state, but for those that are lists of several.
_STATED = ("os", "os_version", "arch", "wsl", "container", "glibc", "python", "python_bits", "rosetta", "nvidia_driver")
# The packages whose versions a reader is told first.
_NAMED = ("torch", *FAMILY, "torch-directml", "onnxruntime", "onnxruntime-gpu", "onnxruntime-directml")
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
# What shows that a plan has helped, where its remedy has no check of its own.
CHECKS = {
    Backend.CUDA: 'python -c "import torch; assert torch.cuda.is_available()"',
    Backend.ROCM: 'python -c "import torch; assert torch.cuda.is_available()"',
    Backend.XPU: 'python -c "import torch; assert torch.xpu.is_available()"',
    Backend.MPS: 'python -c "import torch; assert torch.backends.mps.is_available()"',
    Backend.DIRECTML: 'python -c "import torch, torch_directml as d; torch.ones(2, device=d.device()).sum()"',
    Backend.CPU: 'python -c "import torch; torch.ones(2).sum()"',
}
# The NVIDIA driver on your system is too old (found version 11040). nvidia-smi writes CUDA Version: 12.2
_DRIVER_CUDA = re.compile(
    r"\(found version (1\d)0(\d)0\)"
    r"|nvidia.?smi(?:(?!nvcc|toolkit|torch)[^\n]){0,60}?cuda(?: version| ?版本)\W{0,6}(1\d)\.(\d)\b"
)
# Programs and images whose own kernels are compiled for the very PyTorch that they bring.
_COMPILED_FOR_TORCH = re.compile(r"\bvllm[\\/ =:]|\bvllm-openai\b|\bsglang\b|nvcr\.io/nvidia/pytorch")
_WHICH_GPU = Remedy(text=_("First find out which GPU is in the computer."), commands=("assistant detect",))
REPORTED = 20  # lines that name an error, which go into a report where no cause is known
LONGEST_TRACEBACK = 120  # lines
_TRACEBACK = "Traceback (most recent call last)"
_OF_TRACEBACK = re.compile(r"[ \t|│+]|$|.*(?:Traceback|exception)")  # lines within one
_NAMES_ERROR = re.compile(r"(?i)error|exception|fatal|fail(?:ed|ure)|cannot|not found|no such|错误|失败|找不到|无法")
TO_WRITE = "<!-- Please write this part yourself. -->"


def find_causes(log: Log, machine: Machine) -> tuple[Diagnosis, ...]:
    """Return the causes of what a log shows, best first, each remedy with the plan that can be installed."""
    return tuple(diagnosis for diagnosis, _line in find_causes_and_lines(log, machine))


def find_causes_and_lines(log: Log, machine: Machine) -> tuple[tuple[Diagnosis, int | None], ...]:
    """Return the causes of what a log shows, best first, each with the index in `log.lines` of its line, or None.

    Remedies hold the plan that can be installed. If none of the first cause has one, a change to a better build is
    added, if there is any.
    """
    facts = merged(machine, _machine_in_log(log))
    found, supposed = [], _with_implied_nvidia(facts, log)
    for match in matches(log, facts):
        where = interpreter_of(log, facts, match.line)
        remedies = fill_in_plans(zip(match.diagnosis.remedies, match.origins, strict=True), supposed, log, where)
        if supposed.nvidia_driver != facts.nvidia_driver:
            remedies = tuple(_without_driver(remedy, supposed.nvidia_driver or "") for remedy in remedies)
        found.append((_name_numpy_module(replace(match.diagnosis, remedies=remedies), log, match.line), match.line))
    better = _better_build(log, facts) if found and not any(remedy.plan for remedy in found[0][0].remedies) else None
    if better:
        best, line = found[0]
        found[0] = replace(best, remedies=(*best.remedies, better)), line
    return tuple(found)


def _with_implied_nvidia(machine: Machine, log: Log) -> Machine:
    """Return the machine completed by what the log implies of NVIDIA: an unnamed GPU, the driver's CUDA or version.

    A GPU is supposed if nothing is known of GPUs, and the log's words or torch's build imply NVIDIA's. If nothing is
    known of a driver, it is one for the installed build. If all GPUs are NVIDIA's, an unknown system becomes Linux.
    """
    told = _DRIVER_CUDA.search(log.text)
    if told and not machine.cuda_driver_api and not machine.nvidia_driver:
        machine = replace(machine, cuda_driver_api=".".join(filter(None, told.groups())))
    if has_gpu_facts(machine):
        nvidia = bool(machine.gpus) and all(gpu.vendor is Vendor.NVIDIA for gpu in machine.gpus)
        if not nvidia:
            return machine
        machine = replace(machine, os=machine.os or "linux")
        # If no build tells, a driver for CUDA 12 is supposed: CUDA 13 could fail.
        tags = _installed_cuda_tags(machine, log) or (() if machine.evidence else ("cu126", "cu128"))
        supposed = (_with_driver_of(machine, tag) for tag in tags)
        return next((one for one in supposed if plan_for(one, PlanRequest(backend=Backend.CUDA))), machine)
    words = bool(_OF_NVIDIA.search(log.text)) and not _OF_OTHERS.search(log.text)
    build = machine.packages.get("torch", "").partition("+")[2]
    if machine.os == "macos" or not (words or build.startswith("cu")):
        return machine
    for tag in _installed_cuda_tags(machine, log):
        machine = _with_driver_of(machine, tag)
    return with_any_nvidia_gpu(machine, supposed_cuda())


def _without_driver(remedy: Remedy, driver: str) -> Remedy:
    """Return a remedy whose plan has no reasons and warnings that name `driver`, a version that was only supposed."""
    if remedy.plan is None:
        return remedy
    with in_language("en"):
        reasons = tuple(reason for reason in remedy.plan.reasons if driver not in render(reason))
        warnings = tuple(warning for warning in remedy.plan.warnings if driver not in render(warning))
    return replace(remedy, plan=replace(remedy.plan, reasons=reasons, warnings=warnings))


def _installed_cuda_tags(machine: Machine, log: Log) -> tuple[str, ...]:
    """Return the tag of the installed CUDA build, such as ("cu126",), which the driver should run; () if unknown.

    If the installed torch has no tag, the newest one of CUDA 12 in the text counts.
    """
    here = re.findall(r"\+(cu1\d\d)$", machine.packages.get("torch", ""))
    return tuple((here or sorted(re.findall(r"\d\+(cu12\d)\b", log.text)))[-1:])


def _with_driver_of(machine: Machine, tag: str) -> Machine:
    """Return a machine with the driver that came with a build's CUDA, if nothing is known of its own."""
    if machine.nvidia_driver or machine.cuda_driver_api:
        return machine
    floor = load_catalog().drivers.get((tag, machine.os == "windows" or bool(machine.wsl)))
    return replace(machine, nvidia_driver=".".join(map(str, floor.own))) if floor and floor.own else machine


def causes_for_log_python(
    causes: Iterable[tuple[Diagnosis, int | None]], log: Log, machine: Machine
) -> tuple[tuple[Diagnosis, int | None], ...]:
    """Return the causes, the remedies' commands rewritten to call the Python that the log's program runs in."""
    facts = merged(machine, _machine_in_log(log))
    wheres = ((cause, line, interpreter_of(log, facts, line)) for cause, line in causes)
    return tuple(
        (replace(cause, remedies=tuple(with_interpreter(remedy, where) for remedy in cause.remedies)), line)
        for cause, line, where in wheres
    )


def places_in_log(log: Log, lines: Iterable[int | None]) -> tuple[Place | None, ...]:
    """Return, for each index in `log.lines`, the line with up to two before and after it, clean and cut; None for None.

    Secrets are taken out of the lines, of which the first `LONGEST` characters are kept.
    """
    return tuple(
        None
        if index is None
        else Place(
            line=log.lines[index][0],
            lines=tuple((number, line[:LONGEST]) for number, line in lines_without_secrets(log, index - 2, index + 3)),
        )
        for index in lines
    )


def lines_without_secrets(log: Log, first: int, last: int) -> list[tuple[int, str]]:
    """Return the lines (number, text) of a log from one index up to, not including, another, secrets taken out.

    Negative indexes count as 0. A private key that began above is recognised. Lines are cut to ten times `LONGEST`.
    """
    begin, first = max(0, first - Lines.LONGEST), max(0, first)
    clean = Lines()
    lines = [(number, clean(line[: 10 * LONGEST])) for number, line in log.lines[begin:last]]
    return lines[first - begin :]


def log_source(log: Log, machine: Machine, line: int | None = None, *, elsewhere: bool = False) -> Source:
    """Return which program, system and GPU a log of `machine` is of; `line` is the index of its first cause's line.

    `elsewhere` says that this is not the machine at hand.
    """
    start = find_launch(log)
    gpus = _main_gpus(machine.gpus)
    seen = machine.os and has_gpu_facts(machine)
    best = plan_for(machine, PlanRequest()) if seen else None
    return Source(
        program=start.program.name if start.program else "",
        arguments=start.arguments if start.program else (),
        interpreter=interpreter_of(log, machine, line),
        os=machine.os,
        system=machine.os_version or _SYSTEMS.get(machine.os or "", ""),
        gpu=gpus[0].label if len(gpus) == 1 else "",
        best=best.backend if best else None,
        elsewhere=elsewhere,
        facts=facts_line(log),
    )


def _main_gpus(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Return the discrete GPUs; all of them if none is known to be discrete."""
    return tuple(gpu for gpu in gpus if gpu.integrated is False) or gpus


def _name_numpy_module(diagnosis: Diagnosis, log: Log, line: int | None) -> Diagnosis:
    """Return a "numpy2-abi" diagnosis that names the module that the log shows, with remedies for it.

    Any other diagnosis, and one whose log names no module, comes back unchanged; for torch only the title changes.
    """
    if diagnosis.key != "numpy2-abi":
        return diagnosis
    module = next((name for name in log.near(line, _MODULE) if name not in _NOT_AT_FAULT), "")
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


def _better_build(log: Log, machine: Machine) -> Remedy | None:
    """Return the remedy "change from DirectML (or the CPU) to a better backend"; None if a log shows no use of these.

    None also if no better one can be planned for the machine.
    """
    start = find_launch(log)
    directml = any("directml" in word for word in start.arguments) or "torch-directml" in log.facts.packages
    cpu = log.facts.packages.get("torch", "").endswith("+cpu")
    used = Backend.DIRECTML if directml or "privateuseone" in log.text else Backend.CPU if cpu else None
    plan = plan_for(machine, PlanRequest()) if used and machine.os else None
    order = list(Backend)
    if used is None or plan is None or order.index(plan.backend) >= order.index(used):
        return None
    gpus = _main_gpus(machine.gpus)
    text = _("Change from {used} to {better}: PyTorch for {better} runs on the {gpu} and suits it better.").format(
        used=used.title, better=plan.backend.title, gpu=gpus[0].label if gpus else "GPU"
    )
    launch = start.corrected_launches(plan.backend, machine.os or "") if start.program else ()
    return Remedy(
        text=text, plan=plan, check=(CHECKS[plan.backend],), launch=tuple(map(with_settings_line, launch)), mends=False
    )


LACKS_TORCH = 0.97  # chosen: asked and not found, but for what a cell adds to `sys.path`


def offer_torch_for_kernel(
    causes: tuple[Diagnosis, ...], log: Log, machine: Machine, takes: Callable[[Plan], bool]
) -> tuple[Diagnosis, ...]:
    """Return the causes; if the log says that torch is missing, a "kernel-env-mismatch" gets a remedy to install it.

    It goes into the kernel's environment if that `takes` the plan, else into a new one for the notebook to run in. If
    the kernel's Python told its packages, it is no guess that torch is missing there, and that is said.
    """
    lacks = "torch" not in machine.packages and _NO_TORCH.search(log.text)
    plan = plan_for(machine, PlanRequest()) if lacks else None
    if plan is None:
        return causes
    text = _("Make an environment with PyTorch, and let this notebook run in it.")
    if takes(plan):
        text = _("Install PyTorch into the environment of this kernel.")
    remedy = Remedy(text=text, plan=plan, check=(CHECKS[plan.backend],))
    told = {
        "title": _("The environment of this notebook has no PyTorch"),
        "cause": _("Its kernel was asked which packages it has, and torch is not among them."),
        "confidence": LACKS_TORCH,
    }
    return tuple(
        replace(cause, remedies=(*cause.remedies, remedy), **(told if machine.packages else {}))
        if cause.key == "kernel-env-mismatch"
        else cause
        for cause in causes
    )


def machine_of_log(log: Log, here: Machine, origin: str) -> Machine:
    """Return the machine that a log comes from: what the log states, completed by the facts of the machine at hand.

    If the log is of another machine (`origin`, see `log_origin`) nothing is taken from this one; if it is of this one,
    the GPUs are those of this one.
    """
    stated = _machine_in_log(log)
    if origin == "other":
        return stated
    # Of two machines that a text compares, what is installed here is this one's; of one version told in short it is the
    # whole: 2.6.0+cu126 for what a person calls 2.6.
    named_here = {
        name: version
        for name, version in here.packages.items()
        if f"{version.partition('+')[0]}.".startswith(f"{stated.packages.get(name)}.")
        or (
            version.partition("+")[0] in log.text
            and version.partition("+")[0] != stated.packages.get(name, "").partition("+")[0]
        )
    }
    stated = replace(stated, packages={**stated.packages, **named_here})
    return merged(replace(stated, gpus=here.gpus) if origin == "same" else stated, here)


def log_origin(log: Log, here: Machine) -> Literal["same", "other", "unknown"]:
    """Return whether a log comes from the machine at hand: "same", "other", or "unknown" if nothing in it decides.

    It is "other" if its system differs, if none of the GPUs that it names is here, nor the target (gfx…) that it
    prints, nor any GPU for an error of one, if a person says so in it, or if it shows causes that are impossible here;
    "same" only if the system does not differ and a GPU that it names is here.
    """
    stated = _machine_in_log(log)
    if "for-another" in log.prose.told or (stated.os and here.os and stated.os != here.os):
        return "other"
    if stated.gpus and has_gpu_facts(here):
        verdicts = [_is_same_gpu(gpu, other) for gpu in stated.gpus for other in here.gpus]
        if True in verdicts:
            return "same"
        if None not in verdicts:
            return "other"
    has_no_gpu = has_gpu_facts(here) and not here.gpus
    if _prints_other_target(log, here) or (has_no_gpu and _ON_A_GPU.search(log.text)):
        return "other"
    is_possible_here = matches(log, merged(stated, here), supposing=False)
    return "other" if not is_possible_here and matches(log, stated, supposing=False) else "unknown"


def _prints_other_target(log: Log, here: Machine) -> bool:
    """Return whether a log prints one target of AMD's alone, such as gfx900, and no GPU here is of its generation."""
    printed = {*TARGET.findall(log.text)}
    pairs = [(gpu, identify_gpu(gpu)) for gpu in here.gpus if gpu.vendor is Vendor.AMD]
    here_too = {gpu.gfx or (identity.gfx if identity else None) for gpu, identity in pairs} - {None}
    generations = {target[:-2] for target in printed}
    return len(printed) == 1 and bool(here_too) and not generations & {str(target)[:-2] for target in here_too}


def facts_in(log: Log) -> list[dict[str, object]]:
    """Return the facts of its machine that a log states: the name in the machine's JSON as `key`, the `value` as text.

    `line` is the number of the first line that holds the value; it is left out if none holds it literally.
    """
    stated = _machine_in_log(log)
    found = [(name, str(getattr(stated, name))) for name in _STATED if getattr(stated, name) is not None]
    found += [("gpus", gpu.name or gpu.gfx or gpu.vendor.value) for gpu in stated.gpus]
    found += [("packages", f"{name} {version}") for name, version in stated.packages.items()]
    found += [("env", f"{name}={value}") for name, value in stated.env.items()]
    facts = []
    for key, value in found:
        words = re.split("[ =]", value.lower(), maxsplit=1) if key in {"packages", "env"} else [value.lower()]
        lines = (number for number, line in log.lines if all(word in line.lower() for word in words))
        line = next(lines, None)
        facts.append({"key": key, "value": redact(value), **({"line": line} if line is not None else {})})
    return facts


def facts_line(log: Log) -> str:
    """Return in one line what a log states of its machine: GPUs, torch and its companions, Python, driver, system.

    "" if it states nothing. Of a torch that was replaced, both versions are there.
    """
    stated, replaced = _machine_in_log(log), find_replaced_torch(log.text)
    packages = {name: stated.packages[name] for name in _NAMED if name in stated.packages}
    if replaced:
        packages = {"torch": " → ".join(replaced)} | {name: packages[name] for name in packages if name != "torch"}
    facts = [
        *(gpu.name or gpu.gfx for gpu in stated.gpus),
        *(f"{name} {version}" for name, version in packages.items()),
        stated.python and f"Python {stated.python}",
        stated.nvidia_driver and f"NVIDIA {stated.nvidia_driver}",
        stated.os_version or _SYSTEMS.get(stated.os or "", ""),
        stated.wsl and "WSL",
    ]
    return redact(" · ".join(str(fact) for fact in facts if fact))


def _is_same_gpu(first: Gpu, second: Gpu) -> bool | None:
    """Return whether two GPUs are of one model: same maker, and the same model in both names; None if that is unknown.

    If a name shows no model, another gfx target rules it out.
    """
    if Vendor.UNKNOWN in {first.vendor, second.vendor}:
        return None
    if first.vendor is not second.vendor:
        return False
    models = [_MODEL.search((gpu.name or "").lower()) for gpu in (first, second)]
    if models[0] and models[1]:
        (number, suffix), (other, other_suffix) = (model.groups() for model in models if model)
        if number != other or first.vendor is Vendor.APPLE:  # an M1 Pro is "my m1" to many
            return bool(number == other)
        shorter, longer = sorted((suffix.split(), other_suffix.split()), key=len)
        if longer[: len(shorter)] != shorter:
            return False
        return True if shorter == longer else None  # many leave the end out, as in "my rx 7800"
    return False if first.gfx and second.gfx and first.gfx != second.gfx else None


def explain_unknown(log: Log, machine: Machine, *, guessing: bool = True) -> Unexplained:
    """Return what a log of no sure cause tells, and a next step or possible causes, each with its first remedies.

    Without `guessing`, as beside causes that are known and not sure, no others are named.
    """
    facts = merged(machine, _machine_in_log(log))
    step = next_step(log, facts, guessing=guessing)
    possible = []
    for match in step.possible:
        first = [*zip(match.diagnosis.remedies, match.origins, strict=True)][:TRIED]
        possible.append(replace(match.diagnosis, remedies=fill_in_plans(first, facts, log)))
    return Unexplained(symptoms=step.symptoms, question=step.advice, possible=tuple(possible))


def add_rule_remedies(findings: Iterable[Finding], machine: Machine) -> tuple[Finding, ...]:
    """Return all findings; those that are wrong and have no command get the remedies of the rule of their key, too."""
    rules = load_rules().by_key

    def with_rule_remedies(finding: Finding) -> Finding:
        """Return a finding with what its rule advises; unchanged if it is no problem, has a command, or has no rule."""
        able = any(remedy.commands for remedy in finding.remedies)
        if finding.key not in rules or not finding.wrong or able:
            return finding
        more = fill_in_plans(((each.shown, each) for each in remedies_for(rules[finding.key], machine, _ANY)), machine)
        own = {remedy.text for remedy in finding.remedies}
        new = tuple(remedy for remedy in more if remedy.text not in own)
        return replace(finding, remedies=(*finding.remedies, *new))

    return tuple(map(with_rule_remedies, findings))


@lru_cache(maxsize=1)  # the machine is asked for before the causes are: one reading serves both
def _machine_in_log(log: Log) -> Machine:
    """Return the machine that a log describes: by the tools' reports that it holds, then by what it mentions.

    Evidence is left out: that a report names no GPU does not say that anybody looked for one.
    """
    if not any(mark in log.text for mark in REPORTS):
        return log.facts
    try:
        reported = read_report("\n".join(line for _number, line in log.lines)).machine
        return merged(replace(reported, evidence=()), log.facts)
    except BadInput:
        return log.facts


def lines_that_tell(log: Log, indexes: Iterable[int | None]) -> list[tuple[int, str]]:
    """Return the lines of a log that a diagnosis rests on, each with its number in the file, secrets taken out.

    These are the lines of the causes (`indexes` in `log.lines`), without a cause the last `REPORTED` lines that name an
    error, and the tracebacks that end in any of them. What else stands in a log is nobody's business.
    """
    texts = [line for _number, line in log.lines]
    ends = [index for index in indexes if index is not None]
    if not ends:
        ends = [index for index, line in enumerate(texts) if _NAMES_ERROR.search(line)][-REPORTED:]
    shown = {*ends}
    for end in ends:
        block = range(max(0, end - LONGEST_TRACEBACK), end)
        start = next((index for index in reversed(block) if _TRACEBACK in texts[index]), end)
        if all(_OF_TRACEBACK.match(line) for line in texts[start + 1 : end]):
            shown.update(range(start, end))
    if not shown:
        return []
    first = min(shown)
    clean = lines_without_secrets(log, first, max(shown) + 1)
    return [clean[index - first] for index in sorted(shown)]


def log_report(log: Log, machine: Machine, causes: Iterable[tuple[Diagnosis, int | None]]) -> str:
    """Return a report in English Markdown for a forum: causes, the log's lines that tell, machine; nothing private.

    Each cause comes with the index of its line in `log.lines`, or None. What happened is left for the user to write.
    """
    private = private_names_here()
    here: Machine = redact(replace(machine, nvidia_smi_output=None, evidence=()), known=private)
    found = tuple(causes)
    shown: tuple[Diagnosis, ...] = redact(tuple(cause for cause, _line in found), known=private)
    telling = "\n".join(line for _number, line in lines_that_tell(log, (line for _cause, line in found)))
    text: str = redact(telling.replace("```", "'''"), known=private) or "(no line names an error)"
    with in_language("en"):
        lines = [f"- {cause.title} (`{cause.key}`, {cause.confidence:.0%})" for cause in shown]
    parts = {
        "What happened": TO_WRITE,
        "Likely causes": "\n".join(("What torch-setup-assistant takes for the cause:", "", *lines))
        if lines
        else "torch-setup-assistant knows no cause for this log.",
        "Log": f"```text\n{text}\n```",
        "Machine": "```json\n{}\n```".format(to_json(here, indent=1).replace("```", "'''")),
    }
    return "\n".join(f"### {title}\n\n{part}\n" for title, part in parts.items())


def fill_in_plans(
    remedies: Iterable[tuple[Remedy, RuleRemedy | None]],
    machine: Machine,
    log: Log | None = None,
    where: Interpreter | None = None,
) -> tuple[Remedy, ...]:
    """Return remedies with plans, checks and launch arguments filled in; each comes with its rule's remedy, or None.

    A remedy whose plan this machine cannot have is left out unless it helps without, by variables or commands of its
    own. So is one that moves torch if the `log` shows a program compiled for the torch that is there. Neither is left
    out if none would remain. A remedy that depends on the GPU's maker gets no plan if nothing is known of GPUs, but the
    remedy "find out which GPU" beside it. `where` is the Python of the log's program: a plan that can be installed
    there gets the commands for that. A text that lists three or more backends becomes one that names the plan's.
    """
    filled: list[tuple[Remedy, RuleRemedy | None]] = []
    for remedy, origin in remedies:
        by_maker = origin and origin.plan and (origin.plan.backend is None or "vendor" in origin.facts)
        if by_maker and not has_gpu_facts(machine):
            asked = {each.text for each, _origin in filled}
            both = (remedy, _WHICH_GPU) if remedy.commands else (_WHICH_GPU, remedy)
            filled += [(each, None) for each in both if each.text not in asked]
            continue
        request = origin.plan if origin else None
        plan = plan_for(machine, request, where) if request else None
        check = remedy.check or ((CHECKS[plan.backend],) if plan else ())
        commands = (*remedy.commands, *(_in_place_commands(plan, machine, request, where) if plan and request else ()))
        text = _name_planned_build(remedy.text, plan)
        filled.append((replace(remedy, plan=plan, check=check, text=text, commands=commands), origin))
    if log and _COMPILED_FOR_TORCH.search(log.text):
        filled = [pair for pair in filled if not _moves_torch(*pair, machine)] or filled
    first = next((remedy.plan for remedy, _origin in filled if remedy.plan), None)
    start = find_launch(log) if log and log.text else None
    changes = start.corrected_launches(first.backend, machine.os or "") if start and first else ()
    launches = tuple(map(with_settings_line, changes))
    is_by_argument = bool(start and start.program) and any(launch.add or launch.drop for launch in launches)
    possible = tuple(
        # A program that is known is told which build to use, once that is there.
        replace(remedy, launch=launches)
        if origin and (origin.launch or (remedy.plan is first and is_by_argument))
        else remedy
        for remedy, origin in filled
        # Without its plan a remedy stays if its commands do more than take a package away.
        if origin is None
        or origin.plan is None
        or remedy.plan
        or remedy.env
        or any("uninstall" not in command for command in remedy.commands)
    )
    return possible or tuple(replace(remedy, commands=(), check=()) for remedy, _origin in filled)


def _moves_torch(remedy: Remedy, origin: RuleRemedy | None, machine: Machine) -> bool:
    """Return whether a remedy puts another release of PyTorch in place without naming what else is to change."""
    is_bare = origin is not None and origin.plan is not None and not origin.plan.pins
    return bool(is_bare and remedy.plan and _torch(machine) and remedy.plan.torch != _torch(machine))


def with_any_nvidia_gpu(machine: Machine, cuda: str) -> Machine:
    """Return the machine as one with NVIDIA's GPU and driver; what is known of it stays.

    If no GPU is listed, an unnamed one of NVIDIA's is; if neither the driver's version nor its CUDA is known, its CUDA
    becomes `cuda`; an unknown system becomes Linux. A driver takes all minor releases of its CUDA:
    https://docs.nvidia.com/deploy/cuda-compatibility/. The system matters little: CUDA's indexes serve both.
    """
    driver = None if machine.cuda_driver_api or machine.nvidia_driver else cuda
    cards = machine.gpus or (Gpu(vendor=Vendor.NVIDIA),)
    return replace(machine, os=machine.os or "linux", gpus=cards, cuda_driver_api=machine.cuda_driver_api or driver)


def has_gpu_facts(machine: Machine) -> bool:
    """Return whether GPUs are listed, or were looked for: a machine that was not detected may have some anyway."""
    return bool(machine.gpus or machine.evidence)


def plan_for(machine: Machine, request: PlanRequest, where: Interpreter | None = None) -> Plan | None:
    """Return the plan for a request; None if there is none, or if the machine's system is unknown.

    If the request can be met in the environment of the Python `where`, a plan of the same backend is preferred that
    keeps its Python, and torch's version if only another build is needed. If CUDA or XPU is asked for and
    nothing is known of GPUs, one of that maker is assumed.
    """
    if request.backend is Backend.CUDA and not has_gpu_facts(machine):
        machine = with_any_nvidia_gpu(machine, supposed_cuda(new_card=True))
    if request.backend is Backend.XPU and not has_gpu_facts(machine):
        machine = replace(
            machine, os=machine.os or "linux", gpus=(Gpu(vendor=Vendor.INTEL, name="Intel Arc Graphics"),)
        )
    if not machine.os:
        return None
    facts = to_json(replace(machine, evidence=()))  # of what was looked at the planner asks nothing
    in_place = _is_change_in_place(request, where)
    family = in_place or "torch" in machine.packages
    plan = _cached_plan(facts, request, family=family)
    if plan is None or not in_place:
        return plan
    there = replace(request, python=_minor(machine) or None)
    same = replace(there, pins=(f"torch=={_torch(machine)}", *request.pins))
    nearest = [replace(there, pins=(f"torch=={minor}.*", *request.pins)) for minor in _later_minors(_torch(machine))]
    kept = [same, *nearest] if request.changes == "build" and _torch(machine) else []
    plans = (_cached_plan(facts, each, family=family) for each in (*kept, *([there] if there.python else ())))
    return next((other for other in plans if other and other.backend is plan.backend), plan)


def _later_minors(torch: str) -> list[str]:
    """Return the minor releases of PyTorch after one, such as "2.7" after 2.6.0, the nearest first."""
    releases = {Version(row.version).release[:2] for row in load_catalog().releases}
    own = Version(torch).release[:2] if re.match(r"\d", torch) else (99, 0)
    return [".".join(map(str, release)) for release in sorted(releases) if release > own]


def _is_change_in_place(request: PlanRequest, where: Interpreter | None) -> bool:
    """Return whether a request can be met by changing packages in the environment of the Python `where`; no if None."""
    return where is not None and request.changes != "environment" and request.python is None


def _minor(machine: Machine) -> str:
    return ".".join((machine.python or "").split(".")[:2])


def _torch(machine: Machine) -> str:
    return machine.packages.get("torch", "").partition("+")[0]


def _in_place_commands(plan: Plan, machine: Machine, request: PlanRequest, where: Interpreter | None) -> Iterator[str]:
    """Yield the pip commands that change a log's environment to a plan: torch's core and what is pinned, no more.

    Yields none if the request needs another environment, or the plan another Python.
    """
    if not _is_change_in_place(request, where) or _minor(machine) not in {"", plan.python}:
        return
    needs: dict[str, Requirement] = {canonicalize_name(need.name): need for need in map(Requirement, plan.requirements)}
    if not (_minor(machine) or plan.torch == _torch(machine)):  # nobody knows that these releases are for its Python
        for need in needs.values():
            need.specifier = SpecifierSet()
    stays = bool(request.pins) and machine.packages.get("torch") == f"{plan.torch}+{plan.variant}"
    asked = {"torch-directml", *(name_of(pin) for pin in request.pins)}
    lines = {
        name: str(need) for name, need in needs.items() if name in CORE | asked and not (stays and name == "torch")
    }
    if here := _from_torch_index(plan, lines):
        yield f"python -m pip uninstall -y {' '.join(here)}"
    yield from _pip_install_commands(plan, lines)


def pip_commands(plan: Plan) -> Iterator[str]:
    """Yield the commands of plain pip that install what a plan requires, torch and what shares its index first."""
    return _pip_install_commands(plan, {name_of(line): line for line in plan.requirements})


def _pip_install_commands(plan: Plan, lines: Mapping[str, str]) -> Iterator[str]:
    """Yield up to two `pip install` commands for `lines` (requirements by name): from torch's index, then the rest."""
    here = _from_torch_index(plan, lines)
    index = f" --index-url {plan.index_url}" if here and plan.index_url else ""
    for names, source in ((here, index), ([name for name in lines if name not in here], "")):
        if names:
            # Quoted where a shell would read a sign of it.
            words = (f'"{line}"' if set(line) & set("<>;[ !~") else line for line in map(lines.__getitem__, names))
            yield f"python -m pip install {' '.join(words)}{source}"


def _from_torch_index(plan: Plan, names: Iterable[str]) -> list[str]:
    """Return those of `names` that come from the index of the plan's torch: all of them if the plan names no index."""
    own = plan.index_url
    return [
        name
        for name in names
        if own is None or name in CORE or (name not in plan.apart and carried_by_torch_index(name, plan.variant))
    ]


def _name_planned_build(text: Text, plan: Plan | None) -> Text:
    """Return a sentence that names the planned backend if `text` names three or more backends; else the text."""
    listed = text.id if isinstance(text, Message) else text
    if plan is None or sum(backend.title in listed for backend in Backend) <= 2:  # noqa: PLR2004 - a pair is a contrast
        return text
    return _("Install PyTorch for {backend}, the build that fits this computer.", backend=plan.backend.title)


def with_settings_line(launch: Launch) -> Launch:
    """Return a launch with its added argument as a line of a settings file, such as `device: auto`.

    This is for programs that take the argument only there; for any other, the launch is returned unchanged.
    """
    settings = next((each for each in launchers() if each.name == launch.app), None)
    if launch.line or settings is None or any(word.startswith("-") for word in settings.choosing):
        return launch
    line = launch_line(settings, launch.add, next(iter(settings.lines))) if launch.add else None
    return replace(launch, line=line, add=()) if line else launch


@cache  # many remedies ask for the same plan; the machine as JSON, since a record with dicts has no hash
def _cached_plan(facts: str, request: PlanRequest, *, family: bool) -> Plan | None:
    """Return the plan for a machine (`facts`, as JSON), with torchvision and torchaudio if `family`; None if none fits.

    If nothing fits with those two, or the request pins one of them, it is planned without.
    """
    machine = from_json(facts, Machine, "machine")
    beside = FAMILY if family and not {*request.pins} & {*FAMILY} else ()
    for pins in dict.fromkeys(((*request.pins, *beside), request.pins)):
        whole = Request(backend=request.backend, python=request.python, pins=pins)
        with contextlib.suppress(BadInput):
            if choice := make_plans(machine, load_catalog(), whole).choice:
                return choice
    return None
