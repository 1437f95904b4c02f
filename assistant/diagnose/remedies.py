"""What fills a rule's remedies: names that a log and its machine give, and the launch arguments of a program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import dropwhile, pairwise
from typing import NamedTuple

from packaging.utils import canonicalize_name

from assistant.catalog import load_catalog, number
from assistant.catalog.catalog import Launcher, correct_arguments, launch_line, launchers
from assistant.catalog.companions import all_names, carried_by_torch_index, find_companion
from assistant.catalog.tables import CORE
from assistant.diagnose.builds import (
    compiler_command,
    compiler_names,
    header_names,
    kit_names,
    package_built,
    source_of,
    wheel_names,
)
from assistant.diagnose.companions import CUDNN_9_SINCE, onnxruntime_names, triton_names
from assistant.diagnose.environments import (
    INDEX_OPTIONS,
    INSTALLERS,
    WITH_VALUE,
    distributions_in,
    project_names,
    project_of_text,
    quoted_words,
    typed_commands,
)
from assistant.diagnose.facts import LogContext, package_of, range_beside, torchcodec_install
from assistant.diagnose.index import builds, classify_address, platforms_of, tag_of
from assistant.diagnose.installers import UNNAMED
from assistant.diagnose.log import Log
from assistant.diagnose.rules import NO_NAMES, PLACEHOLDER, Rule, RuleRemedy, evaluate, holds, plain_table
from assistant.model.finding import Launch
from assistant.model.machine import Machine
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.parsers.mentioned import TARGET

# Downloading torch-2.4.0-cp310-cp310-manylinux1_x86_64.whl (797.2 MB)
_FETCHED = re.compile(
    r"downloading (?:\S{1,200}/)?(\w[\w.]{0,60})-(\d[\w.]{0,20})(?:(?:\+|%2b)([\w.]{1,20}))?-[\w.-]{5,90}\.whl"
)
# Options of pip whose value, a file or a folder, is what it is to install.
_OF_FILES = {"-r", "-c", "-e", "--requirement", "--constraint", "--editable"}


def typed_names(context: LogContext) -> dict[str, str]:
    """Return what pip was told to install, as placeholders `typed` and `typed_any`; {} if a log does not tell it.

    `typed` holds packages, files and indexes as words for a shell, or the last wheel that was downloaded.
    `typed_any` is the same without indexes, and `index_option` what names torch's index beside it: instead of PyPI
    where all are there.
    """
    for verb, command in typed_commands(context, within=True):
        words = _repeatable(command) if verb in {None, "pip install"} else []
        packages = [word for previous, word in pairwise(("", *words)) if not {previous, word} & INDEX_OPTIONS]
        if packages and not {*words} <= INSTALLERS:
            names = {canonicalize_name(re.split(r"[\[=<>~!]", package, maxsplit=1)[0]) for package in packages}
            has_all = all(name in CORE or carried_by_torch_index(name) for name in names)
            return {
                "typed": quoted_words(words),
                "typed_any": quoted_words(packages),
                "index_option": "--index-url" if has_all else "--extra-index-url",
            }
    downloads = _FETCHED.findall(context.text)
    if not downloads:
        return {}
    name, version, build = downloads[-1]
    index = load_catalog().index_url(build) if build.startswith(("cu", "rocm", "xpu", "cpu")) else None
    return {"typed": f'"{name.replace("_", "-")}=={version}"' + (f" --index-url {index}" if index else "")}


def _repeatable(command: Iterable[str]) -> list[str]:
    """Return the packages, files and known indexes of a command `pip install`, without other options."""
    repeated: list[str] = []
    rest = dropwhile(lambda word: word != "install", command)
    next(rest, "")
    for word in rest:
        if word in WITH_VALUE | INDEX_OPTIONS:
            value = next(rest, "")
            is_index = word in INDEX_OPTIONS and classify_address(value.rstrip("/").lower()).kind in {"pypi", "torch"}
            repeated += [word, value] if value and (is_index or word in _OF_FILES) else []
        elif not word.startswith("-"):
            repeated.append(word)
    return repeated


def _program_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders `program`, `saving` and `on_cpu` for the program that a log is of; {} if it is unknown.

    `saving` and `on_cpu` are the options that save memory and use the CPU; one that does not exist is left out.
    """
    rows = plain_table("options.toml")["program"]
    row: dict[str, str] = next((row for row in rows if re.search(row["words"], context.text)), {})
    placeholders = {"name": "program", "memory": "saving", "cpu": "on_cpu"}
    return {placeholders[key]: value for key, value in row.items() if key in placeholders}


_SUPPORTS = re.compile(r"support\s{1,20}versions? ([4-9](?:, (?:and )?[4-9]| and [4-9]){1,5})")


def _ffmpeg_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders of the newest FFmpeg that TorchCodec takes, as its message tells it, else FFmpeg 7.

    `ffmpeg` is its major version, `beyond` the next one, `ffmpeg_release` its release on conda-forge.
    """
    supported, releases = _SUPPORTS.search(context.text), plain_table("kits.toml")["ffmpeg"]
    newest = max(re.findall(r"\d", supported[1])) if supported else "7"
    release = releases.get(newest, releases["7"])
    return {"ffmpeg": newest, "beyond": str(int(newest) + 1), "ffmpeg_release": release}


def _server_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders `vllm` and `sglang`, the requirements of the releases that are there, else of any.

    For a vLLM that is there beside a CUDA build, `vllm_release` and `torch_build` are its version and the build's tag.
    """
    vllm, sglang = (context.machine.packages.get(name, "").partition("+")[0] for name in ("vllm", "sglang"))
    named = (("vllm", "vllm", vllm), ("sglang", "sglang[all]", sglang))
    requirements = {name: f"{full}=={version}" if version else full for name, full, version in named}
    of_build = {"vllm_release": vllm, "torch_build": context.build} if vllm and context.build.startswith("cu") else {}
    return {**requirements, **of_build}


def _bitsandbytes_names(context: LogContext) -> dict[str, str]:
    """Return the placeholder `bitsandbytes`, the newest release for torch, or of all where torch is unknown."""
    fitting = range_beside("bitsandbytes", context.torch)
    return {"bitsandbytes": f'"bitsandbytes{fitting.versions if fitting else ""}"'}


# docker run --gpus all -p 8880:8880 ghcr.io/remsky/kokoro-fastapi-gpu:v0.2.2
_STARTED = re.compile(r"(?:docker|podman) (?:run|pull) ([^\n]{1,300})")
_IMAGE = re.compile(r"[a-z0-9][\w.-]{0,80}(?:/[\w.-]{1,80}){0,3}(?::[\w.-]{1,80})?", re.ASCII)
# apptainer shell --nv model.sif
_SIF = re.compile(r"(?<![^\s\"'])([\w./~-]{1,200}\.sif)\b", re.ASCII)
_FLAGS = {"--rm", "-it", "-d", "-i", "-t", "-ti", "--privileged", "--init", "--detach", "--interactive", "--tty"}


def _container_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders `image`, what docker or podman was told to run, and `sif`, the file of Apptainer.

    For one that a log does not name, users read a word in capitals in its place.
    """
    command, file = _STARTED.search(context.text), _SIF.search(context.text)
    sif = file[1] if file else "IMAGE.sif"
    for previous, word in pairwise(("--rm", *(command[1].split() if command else ()))):
        is_value = previous.startswith("-") and previous not in _FLAGS and "=" not in previous
        image = word.rstrip(",.;")
        if not word.startswith("-") and not is_value and {*image} & {"/", ":"} and _IMAGE.fullmatch(image):
            return {"image": image, "sif": sif}
    return {"image": "IMAGE", "sif": sif}


def _amd_names(context: LogContext) -> dict[str, str]:
    """Return values for the placeholders `gfx`, a GPU's target, and `torch_here`, without those that are unknown."""
    gpus = " ".join(f"{gpu.gfx or ''} {gpu.name or ''}" for gpu in context.machine.gpus).lower()
    target = TARGET.search(gpus) or TARGET.search(context.text)
    placeholders = {"gfx": target[0] if target else "", "torch_here": context.torch}
    return {name: value for name, value in placeholders.items() if value}


def _uv_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders `uv` (how it is typed), `venv` (how an environment is made) and `get_uv` (how it is had).

    `get_uv` is empty where the user works with uv already; the environment that is there is replaced then. {} in a
    project, whose own tool is to be used.
    """
    if "sync" in project_of_text(context.text):
        return {}
    if re.search(r"\buv\b", context.text):
        return {"uv": "uv", "get_uv": "", "venv": "uv venv --clear"}
    # Installed into an environment that it replaces, uv would go with it.
    return {"uv": "python -m uv", "get_uv": "python -m pip install uv", "venv": "python -m uv venv"}


# Each gives values for some placeholders; those of the rule's cause go before them.
_FILLERS: tuple[Callable[[LogContext], Mapping[str, str]], ...] = (
    typed_names,
    project_names,
    _uv_names,
    _program_names,
    kit_names,
    compiler_names,
    header_names,
    _container_names,
    _amd_names,
    _ffmpeg_names,
    _server_names,
    _bitsandbytes_names,
)


def _names_for_rule(context: LogContext, key: str) -> dict[str, str]:
    """Return values for the placeholders that only some rules have, by the rule's key; {} if a log does not tell them.

    They are `package` (that is built, or does not load), `built_here` (what pip builds it from), `torch`,
    `install` (a command for Triton or TorchCodec), and `ort` (ONNX Runtime for the CUDA in use).
    """
    if key == "onnxruntime-packages-conflict":
        return onnxruntime_names(context)
    if key.startswith("triton-"):
        return triton_names(context)
    if key.startswith("ext-"):
        return {**({"torch": context.torch} if context.torch else {}), **package_built(context)}
    if key == "glibc-too-old":
        message = _REQUIRED.search(context.text)
        package = context.package_at(message.start(), message[1]) if message else ""
        row = find_companion(package)
        return {"package": package, "built_here": source_of(package)} if row and row.compiler else {}
    if key == "torch-abi-mismatch":
        return _unloadable_package(context)
    install = torchcodec_install(context) if key.startswith("torchcodec-") else ""
    return {"install": install} if install else {}


# /lib64/libc.so.6: version `GLIBC_2.32' not found (required by /…/site-packages/vllm/_C.abi3.so)
_REQUIRED = re.compile(r"version .glibc_[\d.]{2,8}. not found \(required by ([^)\n]{1,300})\)")


def _unloadable_package(context: LogContext) -> dict[str, str]:
    """Return the placeholder `package`: the one whose compiled part does not load; {} if unknown or of torch's trio.

    It is that of the frame above the message, or the only one with compiled code that the text names.
    """
    frames = context.frames_above(max(0, context.text.find("dll load failed")))
    words = {word.replace("_", "-") for word in re.findall(r"[a-z][\w-]{3,40}", context.text)}
    named = [name for name in all_names() & words if (row := find_companion(name)) and row.compiler]
    packages = [package_of(frames[-1])] if frames else named
    return {"package": packages[0]} if len(packages) == 1 and packages[0] not in CORE else {}


def with_remedy_names(context: LogContext, rule: Rule, names: Mapping[str, str]) -> Mapping[str, str]:
    """Return a cause's names with values for more placeholders of its rule's remedies, as far as they are known."""
    placeholders = {name for remedy in rule.remedy for name in remedy.placeholders}
    missing = {*placeholders, *PLACEHOLDER.findall(" ".join(rule.check))} - {*names}
    if not missing:
        return names
    filled = {name: value for find in _FILLERS for name, value in find(context).items() if name in missing}
    found = {**filled, **_names_for_rule(context, rule.key), **names}
    package = found.get("package", "")
    if present := number(context.machine.packages.get(package, ""))[:2]:
        found["older"] = f"{package}<{'.'.join(map(str, present))}"
        found["here"] = context.machine.packages[package].partition("+")[0]
    if package == UNNAMED:  # the installer refuses a Python without saying for which package
        found = {name: value for name, value in found.items() if name not in {"requirement", "release"}}
        found |= {"again": found["typed"]} if "typed" in found else {}
    if package and "uv_build" in missing:
        found |= project_names(context, package)
    if package:
        typed = typed_names(context).get("typed_any", "")
        of_folder = re.search(r"(?:^| )(?:\.{1,2}(?:[/\\]| |$)|\S{1,200}\.(?:tar\.gz|zip)(?: |$))", typed)
        is_pinned = "==" in typed and " " not in typed and canonicalize_name(typed.partition("==")[0]) == package
        fitting = range_beside(package, context.torch)
        beside = f'"{package}{fitting.versions}"' if fitting and fitting.torch and fitting.versions else package
        own = typed if of_folder or is_pinned else source_of(package)  # the user's copy, or release
        own = beside if own == package else own
        found = {"from_source": own, "beside": beside, **wheel_names(context, package), **found}
    return found


def remedies_for(
    rule: Rule,
    machine: Machine,
    names: Mapping[str, str] = NO_NAMES,
    is_in_log: Callable[[str], bool] = lambda _pattern: False,
    places: Collection[str] = (),
) -> tuple[RuleRemedy, ...]:
    """Return the remedies of a rule that are not excluded on a machine, without commands whose program it lacks.

    `names` fill placeholders; `is_in_log` returns whether a pattern is in the log, whose program runs in `places`. One
    that does something gets a check if its rule or its variables give one. What takes a package away is typed only
    where each of its facts is known, else told last, and what installs one only where it has a wheel. If no remedy
    remains, the first that the log admits is returned as advice, without its commands.
    """
    candidates = [
        remedy
        for remedy in rule.remedy
        if all(map(is_in_log, remedy.said)) and not any(map(is_in_log, remedy.unsaid))
        if (not remedy.place or {*remedy.place} & {*places}) and not {*remedy.outside} & {*places}
    ]
    names = {**names, "install_compiler": compiler_command(machine)}
    pairs = [(remedy, _fill_placeholders(remedy, names)) for remedy in candidates]
    has_specific = any(remedy is not filled for remedy, filled in pairs if filled) and not rule.lacks(names)
    candidates = [filled for remedy, filled in pairs if filled and not (remedy.general and has_specific)]
    able: dict[str, RuleRemedy] = {}
    withheld: set[str] = set()
    for remedy in candidates:
        is_fit, verdicts = holds(machine, remedy.requires, remedy.unless), evaluate(machine, remedy.facts).values()
        is_sound = _has_wheels(remedy.commands, machine) and _keeps_cudnn(remedy.commands, machine)
        is_possible = is_fit and False not in verdicts and is_sound
        if is_possible and all(runs_on(command, machine) for command in remedy.commands):
            may_replace = None not in verdicts or not any(map(_TAKES_AWAY.search, remedy.commands))
            commands = _available(remedy.commands, machine) if may_replace else ()
            withheld |= set() if may_replace else {remedy.text}
            checks = tuple(check for check in remedy.check if runs_on(check, machine))
            previous = able.get(remedy.text)
            if not previous or ((commands or remedy.plan) and not (previous.commands or previous.plan)):
                able[remedy.text] = replace(remedy, commands=commands, check=checks)
    filled_in = (
        PLACEHOLDER.sub(lambda match: names[match[1]], check)
        for check in rule.check
        if {*PLACEHOLDER.findall(check)} <= {*names}
    )
    of_rule = tuple(check for check in filled_in if runs_on(check, machine))
    usual = of_rule or next((remedy.check for remedy in able.values() if remedy.check), ())
    advice = tuple(replace(remedy, commands=(), check=()) for remedy in candidates[:1])
    ordered = sorted(able.values(), key=lambda remedy: remedy.text in withheld and not remedy.commands)
    return tuple(_with_check(remedy, usual) for remedy in ordered) or advice


# python -m pip uninstall -y onnxruntime     python -m pip install --force-reinstall torch
_TAKES_AWAY = re.compile(r"\b(?:pip|conda|mamba) (?:uninstall|remove)\b|--force-reinstall\b")


def _has_wheels(commands: Iterable[str], machine: Machine) -> bool:
    """Return whether each package that pip is to install has a wheel for a machine's Python, as far as known."""
    tag, platforms = tag_of(machine), platforms_of(machine.os, machine.arch)
    names = (name for command in commands if "pip install" in command for name in distributions_in(command))
    rows_of = ([row for row in builds(name) if row.pythons] for name in names)
    served = (any(row.serves(tag) for row in rows if row.platform in platforms) for rows in rows_of if rows)
    return not tag or all(served)


# "onnxruntime-gpu[cuda,cudnn]>=1.21,<1.27"     "nvidia-cudnn-cu12==9.*"     nvidia-cudnn-cu12
_BRINGS_CUDNN_9 = re.compile(r"\[cuda,cudnn\]|nvidia-cudnn-cu1[12](?!==8)")


def _keeps_cudnn(commands: Iterable[str], machine: Machine) -> bool:
    """Return whether no command puts cuDNN 9 in the place of the cuDNN 8 that torch requires on Linux."""
    torch = machine.packages.get("torch", "")
    needs_8 = machine.os == "linux" and "+cu" in torch and number(torch) < CUDNN_9_SINCE
    return not needs_8 or not any("pip install" in command and _BRINGS_CUDNN_9.search(command) for command in commands)


def _fill_placeholders(remedy: RuleRemedy, names: Mapping[str, str]) -> RuleRemedy | None:
    """Return a remedy whose commands, check and pins hold the values of `names` for {placeholders}.

    None if one of its placeholders has no value: half a command is worse than none.
    """
    if not remedy.placeholders or not remedy.placeholders <= {*names}:
        return None if remedy.placeholders else remedy

    def fill(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(PLACEHOLDER.sub(lambda match: names[match[1]], text) for text in texts)

    plan = remedy.plan and replace(remedy.plan, pins=fill(remedy.plan.pins))
    return replace(remedy, commands=fill(remedy.commands), check=fill(remedy.check), plan=plan, names=dict(names))


def runs_on(command: str, machine: Machine) -> bool:
    """Return whether a command may run on a machine: False if its program is of systems that this one is not."""
    program, rows = _program_name(command), plain_table("programs.toml")["systems"].items()
    systems = next((systems for systems, names in rows if program in names), None)
    systems = systems or ("linux" if command.startswith("sudo ") else None)
    return systems is None or evaluate(machine, {"os": systems.split()})["os"] is not False


def _available(commands: tuple[str, ...], machine: Machine) -> tuple[str, ...]:
    """Return the commands whose program this machine's distribution has; () if none is left of those that differ.

    An unknown distribution is taken for one of the many that have apt or dnf.
    """
    having, name = plain_table("programs.toml")["has"], (machine.os_version or "").lower()
    families = plain_table("programs.toml")["family"]
    known = ({row["name"]} for row in families if re.search("|".join((*row["names"], row["name"])), name))
    own = next(known, {"ubuntu", "fedora"})
    given = [command for command in commands if command]
    able = [command for command in given if own & {*having.get(_program_name(command), own)}]
    is_left = any(_program_name(command) in having for command in able)
    return tuple(able) if is_left or len(able) == len(given) else ()


def family_shown(text: str) -> str:
    """Return the family of Linux distributions whose tools a log's text shows, such as "fedora"; "" if none."""
    rows = plain_table("programs.toml")["family"]
    return next((row["name"] for row in rows if "text" in row and re.search("|".join(row["text"]), text)), "")


def _program_name(command: str) -> str:
    """Return the first word of a command, or the second after sudo."""
    return command.removeprefix("sudo ").partition(" ")[0]


def _with_check(remedy: RuleRemedy, usual_check: tuple[str, ...]) -> RuleRemedy:
    """Return a remedy with a check if it does something: its own, the usual one, or that its variables are set."""
    if remedy.check or not (remedy.commands or remedy.env or remedy.plan or remedy.launch):
        return remedy
    are_set = (
        f"""python -c "import os; assert os.environ['{name}'] == '{value}'\"""" for name, value in remedy.env.items()
    )
    return replace(remedy, check=usual_check or tuple(are_set))


KEEPER = "stabilitymatrix"  # which keeps the arguments of the applications that it starts
# What launchers print before they start their program, one sample of each:
#   Launching Web UI with arguments: --skip-torch-cuda-test --precision full     (Stable Diffusion WebUI, its forks)
#   Command line args: ['--use-directml', '--debug']                              (SD.Next)
#   C:\ComfyUI> python_embeded\python.exe -s ComfyUI\main.py --directml           (the prompt itself)
_ARGUMENTS = re.compile(
    r"(?:launching web ui with arguments|command.?line arg(?:ument)?s?) ?[:=] ?(.{1,600})|main\.py (-.{1,600})",
    re.IGNORECASE,
)
_LIST_SIGNS = re.compile(r"[\[\]]|,(?=\s)")  # of a list as Python prints it


class Start(NamedTuple):
    """How the application that wrote a log was started: its launcher, None if unknown, and its arguments.

    `keeper` is the program that keeps the arguments instead of the launcher, if the log names one; `text` is the log's.
    """

    program: Launcher | None
    arguments: tuple[str, ...]
    keeper: Launcher | None
    text: str

    def corrected_launches(self, backend: Backend, system: str) -> tuple[Launch, ...]:
        """Return corrected launch arguments for the application, or for each known one if it is unknown.

        Applications that cannot use the backend, need no change, or have no command line on `system` ("linux", …) are
        left out.
        """
        changes = []
        for launcher in [self.program] if self.program else launchers():
            new = correct_arguments(launcher, self.arguments, backend)
            if new is None or system not in launcher.lines:
                continue
            keeping = self.keeper or launcher
            given = self.arguments or tuple(word for word in launcher.choosing if word[0] == "-" and word in self.text)
            change = Launch(
                app=launcher.name,
                file=keeping.files.get(system, ""),
                drop=tuple(word for word in given if word in launcher.choosing and word not in new),
                add=tuple(word for word in new if word not in self.arguments),
                line=(launch_line(keeping, new, system) or "") if self.arguments else "",
            )
            changes += [change] if change.drop or change.add or change.line else []
        return tuple(changes)


def find_launch(log: Log) -> Start:
    """Return how the application that wrote a log was started."""
    launcher_of = {mark: launcher for launcher in launchers() for mark in launcher.marks if mark in log.text}
    # A folder's name says more than a sentence, and a long one more than a short one.
    launcher = launcher_of[max(launcher_of, key=lambda mark: (" " not in mark, len(mark)))] if launcher_of else None
    keeper = next((each for each in launchers() if each.key == KEEPER and each.marks[0] in log.text), None)
    arguments = (_ARGUMENTS.search(line) for _number, line in log.lines)
    printed = _LIST_SIGNS.sub("", next((match[1] or match[2] for match in arguments if match), ""))
    try:
        words = shlex.split(printed, posix=False)  # quoted words stay one, and a backslash is a backslash
    except ValueError:  # a quote that is never closed
        words = printed.split()
    return Start(launcher, tuple(word.strip("'\"") for word in words), keeper, log.text)
