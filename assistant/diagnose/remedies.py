"""What fills a rule's remedies: names that a log and its machine give, and the launch arguments of a program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import NamedTuple

from packaging.utils import canonicalize_name

from assistant.catalog import has_code, identify_gpu, load_catalog, number
from assistant.catalog.companions import all_names, carried_by_torch_index, find_companion
from assistant.catalog.launchers import Launcher, correct_arguments, launch_line, launchers
from assistant.catalog.rows import FAMILY
from assistant.diagnose.builds import (
    compiler_command,
    compiler_names,
    header_names,
    kit_names,
    package_built,
    source_of,
    wheel_names,
)
from assistant.diagnose.companions import triton_names
from assistant.diagnose.environments import project_of_text
from assistant.diagnose.facts import LogContext, package_of, torchcodec_install, versions_for_cuda
from assistant.diagnose.index import classify_address, platforms_of, tag_of, torch_install
from assistant.diagnose.installers import UNNAMED
from assistant.diagnose.log import Log
from assistant.diagnose.projects import INSTALLERS, project_names
from assistant.diagnose.rules import NO_NAMES, PLACEHOLDER, Rule, RuleRemedy, evaluate, holds, plain_table
from assistant.model.finding import Launch
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend
from assistant.model.record import replace

# (venv) $ pip install -r requirements.txt      > python -m pip install "xformers==0.0.28" torch
_PIP = re.compile(r"(?:^|[\s!%&>$'\"\[])(?:python[\w.]{0,5}(?:\.exe)? -m )?pip3?(?:\.exe)? install ([^\n]{2,300})")
# Downloading torch-2.4.0-cp310-cp310-manylinux1_x86_64.whl (797.2 MB)
_FETCHED = re.compile(
    r"downloading (?:\S{1,200}/)?(\w[\w.]{0,60})-(\d[\w.]{0,20})(?:(?:\+|%2b)([\w.]{1,20}))?-[\w.-]{5,90}\.whl"
)
# The same as a list of Python's, as an application prints the command that it ran.
_LISTED = re.compile(r"'pip', 'install', ([^\]\n]{3,400})")
_PLAIN = re.compile(r"[A-Za-z0-9_.,/:@=+\[\]<>~!#-]{1,200}")
_WITH_VALUE = {"-r", "--requirement", "-c", "--constraint", "-e", "--editable"}
# Options whose value is no package, and that are not repeated.
_LEFT_OUT = {"--python", "-p", "--target", "-t", "--prefix", "--root", "--trusted-host", "--proxy", "--cache-dir"}
_LEFT_OUT |= {"--timeout", "--retries", "--index-strategy", "--torch-backend", "--only-binary", "--no-binary"}
_LEFT_OUT |= {"--platform", "--python-version", "--progress-bar", "--upgrade-strategy", "--use-feature", "--log"}
_INDEXES = {"-i", "--index-url", "--extra-index-url", "-f", "--find-links"}


def typed_names(context: LogContext) -> dict[str, str]:
    """Return what pip was told to install, as placeholders `typed` and `typed_packages`; {} if a log does not tell it.

    `typed` holds packages, files and indexes as words for a shell, or the last wheel that was downloaded.
    `typed_any` is the same without indexes, and `index_option` what names torch's index beside it: instead of PyPI
    where all are there. `typed_packages` is `typed_any`, and missing if that would hold a file, as are `typed_torch`,
    what torch's index has, and `typed_rest`, both of which are there or neither.
    """
    for _number, line in reversed(context.log.lines):
        typed, listed = _PIP.search(line), _LISTED.search(line)
        text = typed[1] if typed else " ".join(re.findall(r"'([^']{1,200})'", listed[1])) if listed else ""
        words = _installable_words(text)
        if words and not {*words} <= INSTALLERS:
            packages = [word for previous, word in pairwise(("", *words)) if not {previous, word} & _INDEXES]
            of_torch = [word for word in packages if _is_on_torch_index(word)]
            rest = [word for word in packages if word not in of_torch]
            names = {
                "typed": _quoted_words(words),
                "typed_any": _quoted_words(packages),
                "index_option": "--extra-index-url" if rest else "--index-url",
            }
            if packages and not any(word in _WITH_VALUE or set(word) & {"/", "\\"} for word in packages):
                names["typed_packages"] = _quoted_words(packages)
                if of_torch and rest:
                    names |= {"typed_torch": _quoted_words(of_torch), "typed_rest": _quoted_words(rest)}
            return names
    downloads = list(_FETCHED.finditer(context.text))
    if not downloads:
        return {}
    name, version, build = downloads[-1].groups()
    index = load_catalog().index_url(build) if build and build.startswith(("cu", "rocm", "xpu", "cpu")) else None
    return {"typed": f'"{name.replace("_", "-")}=={version}"' + (f" --index-url {index}" if index else "")}


def _is_on_torch_index(requirement: str) -> bool:
    """Return whether torch's index has what a requirement names."""
    name = canonicalize_name(re.split(r"[\[=<>~!]", requirement, maxsplit=1)[0])
    return name in {"torch", *FAMILY} or carried_by_torch_index(name)


def _quoted_words(words: list[str]) -> str:
    """Return words joined for a shell, quoted if they hold what a shell reads."""
    return " ".join(f'"{word}"' if set(word) & set("<>~![]#") else word for word in words)


def _installable_words(text: str) -> list[str]:
    """Return the packages, files and known indexes of the arguments of `pip install`; [] if a word may not be repeated.

    Other options are left out. A word may be repeated if it is of characters that no shell reads.
    """
    try:
        words = shlex.split(text.split("  ", maxsplit=1)[0], posix="\\" not in text)
    except ValueError:
        return []
    understood: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _LEFT_OUT:
            next(rest, "")
        elif word in _WITH_VALUE or word in _INDEXES:
            value = next(rest, "")
            is_safe = word in _WITH_VALUE or classify_address(value.rstrip("/").lower()).kind in {"pypi", "torch"}
            understood += [word, value] if is_safe and value else []
        elif not word.startswith("-"):
            understood.append(word)
    return understood if all(_PLAIN.fullmatch(word) for word in understood) else []


def _program_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders `program`, `saving` and `on_cpu` for the program that a log is of; {} if it is unknown.

    `saving` and `on_cpu` are the options that save memory and use the CPU; one that does not exist is left out.
    """
    rows = plain_table("options.toml")["program"]
    row: dict[str, str] = next((row for row in rows if re.search(row["words"], context.text)), {})
    placeholders = {"name": "program", "memory": "saving", "cpu": "on_cpu"}
    return {placeholders[key]: value for key, value in row.items() if key in placeholders}


# /lib64/libc.so.6: version `GLIBC_2.32' not found (required by /…/site-packages/vllm/_C.abi3.so)
_REQUIRED = re.compile(r"version .(glibc(?:xx)?|cxxabi)_[\d.]{2,8}. not found \(required by ([^)\n]{1,300})\)")
# The NVIDIA driver on your system is too old (found version 11040).
_DRIVER_CUDA = re.compile(r"\(found version (1\d)0(\d)0\)")
_SUPPORTS = re.compile(r"support\s{1,20}versions? ([4-9](?:, (?:and )?[4-9]| and [4-9]){1,5})")


def _source_build_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders `package` and `built_here` if a package's compiled file needs a newer C library; {} else.

    `built_here` is what pip builds the package from, so that it suits this system.
    """
    message = _REQUIRED.search(context.text)
    package = context.package_at(message.start(), message[2]) if message else ""
    row = find_companion(package) if package else None
    if not message or message[1] != "glibc" or row is None or not row.compiler:
        return {}
    return {"built_here": source_of(package), "package": package}


def _older_torch_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders of an older torch for a driver that is too old; {} if no build for it is known.

    `driver_cuda` is the driver's CUDA, `older` the command that installs the newest torch for it, `older_torch` its
    version. That build has code for all NVIDIA cards of the machine, and is of the steady variant if one fits.
    """
    message = _DRIVER_CUDA.search(context.text)
    platform = platforms_of(context.machine.os, context.machine.arch)[0]
    wheels = load_catalog().wheels(platform, tag_of(context.machine) or None, f"cu{message[1]}") if message else ()
    cards = [number(gpu.compute_capability) for gpu in context.machine.gpus if gpu.vendor is Vendor.NVIDIA]
    fitting_wheels = [
        wheel for wheel in wheels if all(has_code(wheel.sm, wheel.ptx, card, alone=False) for card in cards if card)
    ]
    if message is None or not fitting_wheels:
        return {}
    steady_variant = plain_table("kits.toml")["steady"].get(message[1], "")
    wheel = next((wheel for wheel in fitting_wheels if wheel.variant == steady_variant), fitting_wheels[0])
    command = torch_install(wheel).replace("pip install", "pip install --force-reinstall", 1)
    return {"driver_cuda": f"{message[1]}.{message[2]}", "older": command, "older_torch": wheel.version}


def _onnxruntime_names(context: LogContext) -> dict[str, str]:
    """Return the placeholder `ort`, ONNX Runtime for the CUDA in use, and perhaps `ort_eight`; {} if none is known.

    `ort_eight` is the release that takes cuDNN 8 with CUDA 12, if a log names cuDNN 8.
    """
    major = max(context.cuda, default=0)
    versions = versions_for_cuda(find_companion("onnxruntime-gpu"), major) if major else ""
    names = {"ort": f"onnxruntime-gpu{versions}"}
    if major == 12 and re.search(r"cudnn(?:64_8|_ops_infer64_8)|libcudnn\.so\.8", context.text):  # noqa: PLR2004 - the feed is CUDA 12's
        names["ort_eight"] = plain_table("kits.toml")["onnxruntime_for_cudnn_8"]
    return names if versions else {}


def _listed_names(context: LogContext) -> dict[str, str]:
    """Return placeholders whose values are listed in kits.toml, unless a log tells them.

    `vllm` and `sglang` are the requirements of the releases that are there, `vllm_release` and `torch_build` the
    version of vLLM and torch's build for CUDA, `vllm_tag` the tag of vLLM's image. `ffmpeg`, `beyond` and
    `ffmpeg_release` are the newest FFmpeg that TorchCodec takes: its major version, the next one, and its release on
    conda-forge.
    """
    tables, vllm = plain_table("kits.toml"), context.versions.get("vllm", "").partition("+")[0]
    supported = _SUPPORTS.search(context.text)
    newest = max(re.findall(r"\d", supported[1])) if supported else "7"
    releases = tables["ffmpeg"]
    sglang = context.versions.get("sglang", "")
    of_build = {"vllm_release": vllm, "torch_build": context.build} if vllm and context.build.startswith("cu") else {}
    return {
        **of_build,
        "vllm": f"vllm=={vllm}" if vllm else "vllm",
        "sglang": f"sglang[all]=={sglang}" if sglang else "sglang[all]",
        "vllm_tag": f"v{vllm}" if vllm else tables["images"]["vllm"],
        "ffmpeg": newest,
        "beyond": str(int(newest) + 1),
        "ffmpeg_release": releases.get(newest, releases["7"]),
    }


# docker run --gpus all -p 8880:8880 ghcr.io/remsky/kokoro-fastapi-gpu:v0.2.2
_STARTED = re.compile(r"(?:docker|podman) (?:run|pull) ([^\n]{1,300})")
_IMAGE = re.compile(r"[a-z0-9][\w.-]{0,80}(?:/[\w.-]{1,80}){0,3}(?::[\w.-]{1,80})?", re.ASCII)
_FLAGS = {"--rm", "-it", "-d", "-i", "-t", "-ti", "--privileged", "--init", "--detach", "--interactive", "--tty"}
# gfx1151     AMD Radeon 780M, gfx1100 (0x1100)     AMDGPU_TARGETS=gfx1100
_TARGET = re.compile(r"gfx(?:9\d{2}|1[0-2]\d{2})")


_SIF_FILE = re.compile(r"(?<![^\s\"'])([\w./~-]{1,200}\.sif)\b", re.ASCII)


def _container_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders `image`, which docker or podman was told to run, and `sif`, the .sif file in use."""
    sif, command = _SIF_FILE.search(context.text), _STARTED.search(context.text)
    names = {"image": "IMAGE", "sif": sif[1] if sif else "IMAGE.sif"}
    for previous, word in pairwise(("--rm", *(command[1].split() if command else ()))):
        is_value = previous.startswith("-") and previous not in _FLAGS and "=" not in previous
        image = word.rstrip(",.;")
        if not word.startswith("-") and not is_value and {*image} & {"/", ":"} and _IMAGE.fullmatch(image):
            return {**names, "image": image}
    return names


def _amd_names(context: LogContext) -> dict[str, str]:
    """Return values for the placeholders `gfx` and `torch_here`, without those that are unknown.

    `gfx` is the target that a log says is in use, else the GPU's own, any that the log names, or that of its identity.
    """
    used = re.search(r"device \d: [^\n]{0,60}(gfx\w{3,5})", context.text)
    gpus = " ".join(f"{gpu.gfx or ''} {gpu.name or ''}" for gpu in context.machine.gpus).lower()
    named_target = _TARGET.search(gpus) or _TARGET.search(context.text)
    identities = filter(None, map(identify_gpu, context.machine.gpus))
    by_identity = next((identity.gfx for identity in identities if identity.gfx), None)
    target = used[1] if used else named_target[0] if named_target else by_identity
    placeholders = {"gfx": target or "", "torch_here": context.torch}
    return {name: value for name, value in placeholders.items() if value}


def _uv_names(context: LogContext) -> dict[str, str]:
    """Return the placeholders `uv`, which types it, and `get_uv`, which installs it where the user works without it.

    {} in a project, whose own tool is to be used.
    """
    project = project_of_text(context.text)
    if project and project.sync:
        return {}
    is_there = re.search(r"\buv\b", context.text)
    return {"uv": "uv", "get_uv": ""} if is_there else {"uv": "python -m uv", "get_uv": "python -m pip install uv"}


# Each gives values for some placeholders; those of the rule's cause go before them.
_FILLERS: tuple[Callable[[LogContext], Mapping[str, str]], ...] = (
    typed_names,
    project_names,
    _uv_names,
    _program_names,
    kit_names,
    compiler_names,
    header_names,
    _source_build_names,
    _container_names,
    _amd_names,
    _older_torch_names,
    _onnxruntime_names,
    _listed_names,
)


def _names_for_rule(context: LogContext, key: str, placeholders: set[str]) -> dict[str, str]:
    """Return values for the placeholders that only some rules have, by the rule's key; {} if a log does not tell them.

    They are `package` (that is built, or does not load), `install` (a command for TorchCodec), and `by` (what asks).
    """
    if key.startswith(("ext-", "triton-")):
        torch = {"torch": context.torch} if context.torch else {}
        return triton_names(context) if key.startswith("triton-") else {**torch, **package_built(context)}
    if key == "torch-abi-mismatch":
        return _unloadable_package(context)
    if key.startswith("torchcodec-") and (install := torchcodec_install(context)):
        return {"install": install}
    if "by" in placeholders and key == "torch-no-intel-mac-wheel":
        return {"by": package["package"]} if (package := package_built(context)) else {}
    if "by" in placeholders:
        requirer = _DEPENDS.search(context.text)
        return {"by": requirer[1]} if requirer else {}
    return {}


# What pip prints of a conflict: chatterbox-tts 0.1.1 depends on numpy==1.26.0
_DEPENDS = re.compile(r"^ {0,8}([a-z][\w.-]{1,40}) \d[\w.]{0,20} depends on \w", re.MULTILINE)
_LOAD = re.compile(
    r"dll load failed while importing ([\w.]{1,60})|import(?:ing)? ([\w.]{3,60})[^\n]{0,40}dll load failed"
    r"|dll load failed"
)


def _unloadable_package(context: LogContext) -> dict[str, str]:
    """Return the placeholder `package`: the one whose compiled part does not load; {} if unknown or of torch's trio.

    It is named by the module that is imported, by the frame above the message, or is the only one in the text.
    """
    message = _LOAD.search(context.text)
    frames = context.frames_above(message.start()) if message else ()
    module = (message[1] or message[2] or "") if message else ""
    by_module = package_of(module) if module and not module.startswith("_") else ""
    package = (
        by_module
        or (package_of(frames[-1]) if frames else "")
        or ("" if message and frames else _only_compiled_package(context))
    )
    return {"package": package} if package and package not in {"torch", "torchvision", "torchaudio"} else {}


def _only_compiled_package(context: LogContext) -> str:
    """Return the only package with compiled code that a text names; "" if it names none or several."""
    words = {word.replace("_", "-") for word in re.findall(r"[a-z][\w-]{3,40}", context.text)}
    packages = [name for name in all_names() & words if (row := find_companion(name)) and row.compiler]
    return packages[0] if len(packages) == 1 else ""


_OF_PACKAGE = frozenset({"wheel_url", "wheel_page", "wheel_links", "from_source", "ready", "torch_first"})


def with_remedy_names(context: LogContext, rule: Rule, names: Mapping[str, str]) -> Mapping[str, str]:
    """Return a cause's names with values for more placeholders of its rule's remedies, as far as they are known.

    Those of a rule that is not computed are returned as they are.
    """
    texts = (text for remedy in rule.remedy for text in (remedy.text, *remedy.commands, *remedy.check))
    missing = {name for text in (*texts, *rule.check) for name in PLACEHOLDER.findall(text)} - {*names}
    if not rule.computed or not missing:
        return names
    filled = {name: value for find in _FILLERS for name, value in find(context).items() if name in missing}
    found = {**filled, **_names_for_rule(context, rule.key, missing), **names}
    package = found.get("package", "")
    if "typed_right" in missing and package and {"typed", "right"} <= {*found}:
        found["typed_right"] = re.sub(rf"(?<![\w.-]){re.escape(package)}(?![\w.-])", found["right"], found["typed"])
    if package == UNNAMED:  # the installer refuses a Python without saying for which package
        found = {name: value for name, value in found.items() if name not in {"requirement", "release"}}
        found |= {"again": found["typed"]} if "typed" in found else {"bare": found.get("best_python", "")}
    if package and "uv_build" in missing:
        found |= project_names(context, package)
    if package and _OF_PACKAGE & missing:
        found = {"from_source": source_of(package), **wheel_names(context, package), **found}
    return found


def remedies_for(
    rule: Rule,
    machine: Machine,
    names: Mapping[str, str] = NO_NAMES,
    is_in_log: Callable[[str], bool] = lambda _pattern: False,
) -> tuple[RuleRemedy, ...]:
    """Return the remedies of a rule that are not excluded on a machine, without commands whose program it lacks.

    `names` fill placeholders; `is_in_log` returns whether a pattern is in the log, by default that none is. A remedy
    that does something gets a check if its rule or its variables give one. If no remedy remains, the first that the log
    admits is returned as advice, without its commands.
    """
    candidates = [
        remedy for remedy in rule.remedy if all(map(is_in_log, remedy.said)) and not any(map(is_in_log, remedy.unsaid))
    ]
    if rule.computed:
        pairs = [(remedy, _fill_placeholders(remedy, names)) for remedy in candidates]
        has_specific = any(remedy is not filled for remedy, filled in pairs if filled) and not rule.lacks(names)
        candidates = [filled for remedy, filled in pairs if filled and not (remedy.general and has_specific)]
    able: dict[str, RuleRemedy] = {}
    for remedy in candidates:
        is_possible = False not in evaluate(machine, remedy.facts).values() and holds(machine, {}, remedy.unless)
        if is_possible and all(_runs_on(command, machine) for command in remedy.commands):
            commands = _available(
                [text.replace("{install-compiler}", compiler_command(machine)) for text in remedy.commands], machine
            )
            checks = tuple(check for check in remedy.check if _runs_on(check, machine))
            previous = able.get(remedy.text)
            if not previous or ((commands or remedy.plan) and not (previous.commands or previous.plan)):
                able[remedy.text] = replace(remedy, commands=commands, check=checks)
    filled_in = (
        PLACEHOLDER.sub(lambda match: names[match[1]], check)
        for check in rule.check
        if {*PLACEHOLDER.findall(check)} <= {*names}
    )
    of_rule = tuple(check for check in filled_in if _runs_on(check, machine))
    usual = of_rule or next((remedy.check for remedy in able.values() if remedy.check), ())
    advice = tuple(replace(remedy, commands=(), check=()) for remedy in candidates[:1])
    return tuple(_with_check(remedy, usual) for remedy in able.values()) or advice


def _fill_placeholders(remedy: RuleRemedy, names: Mapping[str, str]) -> RuleRemedy | None:
    """Return a computed cause's remedy with its placeholders filled; None if one of them has no name."""
    texts = (remedy.text, *remedy.commands, *remedy.check, *(remedy.plan.pins if remedy.plan else ()))
    placeholders = {name for text in texts for name in PLACEHOLDER.findall(text)}
    if not placeholders <= {*names}:
        return None
    if not placeholders:
        return remedy

    def fill(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(PLACEHOLDER.sub(lambda match: names[match[1]], text) for text in texts)

    plan = remedy.plan and replace(remedy.plan, pins=fill(remedy.plan.pins))
    return replace(remedy, commands=fill(remedy.commands), check=fill(remedy.check), plan=plan, names=dict(names))


def _runs_on(command: str, machine: Machine) -> bool:
    """Return whether a command may run on a machine: False if its program is of systems that this one is not."""
    program, rows = _program_name(command), plain_table("programs.toml")["systems"].items()
    systems = next((systems for systems, names in rows if program in names), None)
    systems = systems or ("linux" if command.startswith("sudo ") else None)
    return systems is None or evaluate(machine, {"os": systems.split()})["os"] is not False


def _available(commands: list[str], machine: Machine) -> tuple[str, ...]:
    """Return the commands whose program this machine's distribution has; () if none is left of those that differ.

    An unknown distribution is taken for one of the many that have apt or dnf.
    """
    having, name = plain_table("programs.toml")["has"], (machine.os_version or "").lower()
    families = plain_table("programs.toml")["family"]
    own = next(({row["name"]} for row in families if re.search("|".join((*row["names"], row["name"])), name)), None)
    own = own or {"ubuntu", "fedora"}
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
