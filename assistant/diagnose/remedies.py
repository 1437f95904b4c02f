"""What fills a rule's remedies: names that a log and its machine give, and the launch arguments of a program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from itertools import pairwise

from assistant.catalog import has_code, identified, load_catalog, number
from assistant.catalog.companions import companion, known_names
from assistant.catalog.launchers import Launcher, corrected, launchers, written
from assistant.diagnose.attempts import tag_of, torch_install
from assistant.diagnose.extensions import package_built
from assistant.diagnose.index_addresses import judge
from assistant.diagnose.installers import UNNAMED
from assistant.diagnose.kits import compiler_names, header_names, kit_names, kits, source_of
from assistant.diagnose.log import Log
from assistant.diagnose.missing import package_of
from assistant.diagnose.rules import PLACEHOLDER, Rule, table
from assistant.diagnose.surroundings import Surroundings, for_cuda, torchcodec_install
from assistant.diagnose.wheels import wheel_names
from assistant.model.finding import Launch
from assistant.model.machine import Vendor
from assistant.model.plan import Backend
from assistant.model.record import Record

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
_INDEXES = {"-i", "--index-url", "--extra-index-url", "-f", "--find-links"}


def typed_names(case: Surroundings) -> dict[str, str]:
    """Return what pip was told to install, as words that a shell takes; {} where the log does not tell it."""
    for _number, line in reversed(case.log.lines):
        found = _PIP.search(line)
        listed = _LISTED.search(line)
        words = (
            _words(found[1]) if found else _words(" ".join(re.findall(r"'([^']{1,200})'", listed[1]))) if listed else []
        )
        if words:
            packages = [word for before, word in pairwise(("", *words)) if not {before, word} & _INDEXES]
            files = any(word in _WITH_VALUE or set(word) & {"/", "\\"} for word in packages)
            return {"typed": _joined(words), **({} if files or not packages else {"typed_packages": _joined(packages)})}
    fetched = list(_FETCHED.finditer(case.text))
    if not fetched:
        return {}
    name, version, build = fetched[-1].groups()
    index = load_catalog().index_url(build) if build and build.startswith(("cu", "rocm", "xpu", "cpu")) else None
    return {"typed": f'"{name.replace("_", "-")}=={version}"' + (f" --index-url {index}" if index else "")}


def _joined(words: list[str]) -> str:
    return " ".join(f'"{word}"' if set(word) & set("<>~![]#") else word for word in words)


def _words(text: str) -> list[str]:
    """Return the packages, files and indexes of an installation; [] where a word is not understood.

    Only what names packages is kept, in characters that no shell reads; of the indexes those that are known.
    """
    try:
        words = shlex.split(text.split("  ", maxsplit=1)[0], posix="\\" not in text)
    except ValueError:
        return []
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE or word in _INDEXES:
            value = next(rest, "")
            known = word in _WITH_VALUE or judge(value.rstrip("/").lower()).kind in {"pypi", "torch"}
            kept += [word, value] if known and value else []
        elif not word.startswith("-"):
            kept.append(word)
    return kept if all(_PLAIN.fullmatch(word) for word in kept) else []


class Program(Record, frozen=True):
    """A program that is told by its `words`, and what it takes to save memory or to use the CPU; "" for nothing."""

    name: str
    words: str
    source: str
    memory: str = ""
    cpu: str = ""


class _OptionsFile(Record, frozen=True):
    as_of: str
    program: tuple[Program, ...]


def programs() -> tuple[Program, ...]:
    """Read the shipped table, once."""
    return table("options.toml", _OptionsFile).program


def option_names(text: str) -> dict[str, str]:
    """Name the program that a text is of, and its options; {} for a program that the table lacks."""
    found = next((row for row in programs() if re.search(row.words, text)), None)
    if found is None:
        return {}
    names = {"saving": found.memory, "on_cpu": found.cpu}
    return {"program": found.name, **{name: value for name, value in names.items() if value}}


# /lib64/libc.so.6: version `GLIBC_2.32' not found (required by /…/site-packages/vllm/_C.abi3.so)
_REQUIRED = re.compile(r"version .(glibc(?:xx)?|cxxabi)_[\d.]{2,8}. not found \(required by ([^)\n]{1,300})\)")
# The NVIDIA driver on your system is too old (found version 11040).
_DRIVER_CUDA = re.compile(r"\(found version (1\d)0(\d)0\)")
_SUPPORTS = re.compile(r"support\s{1,20}versions? ([4-9](?:, (?:and )?[4-9]| and [4-9]){1,5})")


def _glibc(case: Surroundings) -> dict[str, str]:
    """Name the package that wants a newer C library, and what it is built from."""
    found = _REQUIRED.search(case.text)
    package = case.package(found.start(), found[2]) if found else ""
    row = companion(package) if package else None
    if not found or found[1] != "glibc" or row is None or not row.compiler:
        return {}
    return {"built_here": source_of(package), "package": package}


def _driver(case: Surroundings) -> dict[str, str]:
    """Name the newest build of PyTorch for the CUDA of a driver that is too old for the one that is installed.

    It has code for every NVIDIA card that is known here: of the steady variant where that has, else of another one.
    """
    found = _DRIVER_CUDA.search(case.text)
    platform = "windows_amd64" if case.machine.os == "windows" else "linux_x86_64"
    built = load_catalog().wheels(platform, tag_of(case.machine) or None, f"cu{found[1]}") if found else ()
    cards = [number(gpu.compute_capability) for gpu in case.machine.gpus if gpu.vendor is Vendor.NVIDIA]
    fitting = [one for one in built if all(has_code(one.sm, one.ptx, card, alone=False) for card in cards if card)]
    if found is None or not fitting:
        return {}
    steady = kits().steady.get(found[1], "")
    wheel = next((one for one in fitting if one.variant == steady), fitting[0])
    command = torch_install(wheel).replace("pip install", "pip install --force-reinstall", 1)
    return {"driver_cuda": f"{found[1]}.{found[2]}", "older": command, "older_torch": wheel.version}


def _onnxruntime(case: Surroundings) -> dict[str, str]:
    """Name the release of ONNX Runtime for the CUDA that is here, and the one that takes cuDNN 8 with CUDA 12."""
    major = max(case.cuda, default=0)
    versions = for_cuda(companion("onnxruntime-gpu"), major) if major else ""
    names = {"ort": f"onnxruntime-gpu{versions}"}
    if major == 12 and re.search(r"cudnn(?:64_8|_ops_infer64_8)|libcudnn\.so\.8", case.text):  # noqa: PLR2004 - the feed is CUDA 12's
        names["ort_eight"] = kits().onnxruntime_for_cudnn_8
    return names if versions else {}


def _ffmpeg(case: Surroundings) -> dict[str, str]:
    """Name the newest major FFmpeg that TorchCodec says it supports."""
    found = _SUPPORTS.search(case.text)
    newest = max(re.findall(r"\d", found[1])) if found else "7"
    return {
        "ffmpeg": newest,
        "beyond": str(int(newest) + 1),
        "ffmpeg_release": kits().ffmpeg.get(newest, kits().ffmpeg["7"]),
    }


# docker run --gpus all -p 8880:8880 ghcr.io/remsky/kokoro-fastapi-gpu:v0.2.2
_STARTED = re.compile(r"(?:docker|podman) (?:run|pull) ([^\n]{1,300})")
_IMAGE = re.compile(r"[a-z0-9][\w.-]{0,80}(?:/[\w.-]{1,80}){0,3}(?::[\w.-]{1,80})?", re.ASCII)
_FLAGS = {"--rm", "-it", "-d", "-i", "-t", "-ti", "--privileged", "--init", "--detach", "--interactive", "--tty"}
# gfx1151     AMD Radeon 780M, gfx1100 (0x1100)     AMDGPU_TARGETS=gfx1100
_TARGET = re.compile(r"gfx(?:9\d{2}|1[0-2]\d{2})")


_SIF = re.compile(r"(?<![^\s\"'])([\w./~-]{1,200}\.sif)\b", re.ASCII)


def _container(case: Surroundings) -> dict[str, str]:
    """Name the image that was started; IMAGE where the log does not tell it."""
    file = _SIF.search(case.text)
    return {**_started(case), "sif": file[1] if file else "IMAGE.sif"}


def _started(case: Surroundings) -> dict[str, str]:
    found = _STARTED.search(case.text)
    before = "--rm"
    for word in found[1].split() if found else ():
        value = before.startswith("-") and before not in _FLAGS and "=" not in before
        image = word.rstrip(",.;")
        if not word.startswith("-") and not value and {*image} & {"/", ":"} and _IMAGE.fullmatch(image):
            return {"image": image}
        before = word
    return {"image": "IMAGE"}


def _amd(case: Surroundings) -> dict[str, str]:
    """Return the placeholders `gfx` and `torch_here`, without those that are unknown.

    `gfx` is the target that a log says is in use, else the GPU's own, any that the log names, or that of its identity.
    """
    used = re.search(r"device \d: [^\n]{0,60}(gfx\w{3,5})", case.text)
    gpus = " ".join(f"{gpu.gfx or ''} {gpu.name or ''}" for gpu in case.machine.gpus).lower()
    named = _TARGET.search(gpus) or _TARGET.search(case.text)
    identities = filter(None, map(identified, case.machine.gpus))
    by_identity = next((identity.gfx for identity in identities if identity.gfx), None)
    target = used[1] if used else named[0] if named else by_identity
    placeholders = {"gfx": target or "", "torch_here": case.torch}
    return {name: value for name, value in placeholders.items() if value}


def _vllm(case: Surroundings) -> dict[str, str]:
    """Name the tag of vLLM's image: the release that is there, else the last one for CUDA 12.4."""
    version = case.versions.get("vllm", "").partition("+")[0]
    return {"vllm_tag": f"v{version}" if version else kits().images["vllm"]}


_FINDERS: tuple[tuple[frozenset[str], Callable[[Surroundings], Mapping[str, str]]], ...] = (
    (frozenset({"typed", "typed_packages", "again"}), typed_names),
    (frozenset({"program", "saving", "on_cpu"}), lambda case: option_names(case.text)),
    (frozenset({"cuda", "conda_kit", "deb_kit", "rpm_kit", "windows_kit", "repository", "kit_home"}), kit_names),
    (frozenset({"nvcc", "most_gcc", "least_gcc", "toolset", "component", "older_component"}), compiler_names),
    (frozenset({"headers_url", "headers_file", "portable"}), header_names),
    (frozenset({"built_here"}), _glibc),
    (frozenset({"vllm_tag"}), _vllm),
    (frozenset({"image", "sif"}), _container),
    (frozenset({"gfx", "torch_here"}), _amd),
    (frozenset({"driver_cuda", "older", "older_torch"}), _driver),
    (frozenset({"ort", "ort_eight"}), _onnxruntime),
    (frozenset({"ffmpeg", "beyond", "ffmpeg_release"}), _ffmpeg),
)


def _of_key(case: Surroundings, key: str, wanted: set[str]) -> dict[str, str]:
    """Return what the remedies of one rule want: the package that is built, that fails to load, or that asks."""
    if key.startswith("ext-"):
        return package_built(case)
    if key == "torch-abi-mismatch":
        return _failing(case)
    if key.startswith("torchcodec-") and (install := torchcodec_install(case)):
        return {"install": install}
    if "by" in wanted and key == "torch-no-intel-mac-wheel":
        return {"by": built["package"]} if (built := package_built(case)) else {}
    if "by" in wanted:
        found = _DEPENDS.search(case.text)
        return {"by": found[1]} if found else {}
    return {}


# What pip prints of a conflict: chatterbox-tts 0.1.1 depends on numpy==1.26.0
_DEPENDS = re.compile(r"^ {0,8}([a-z][\w.-]{1,40}) \d[\w.]{0,20} depends on \w", re.MULTILINE)
_LOAD = re.compile(
    r"dll load failed while importing ([\w.]{1,60})|import(?:ing)? ([\w.]{3,60})[^\n]{0,40}dll load failed"
    r"|dll load failed"
)


def _failing(case: Surroundings) -> dict[str, str]:
    """Name the package whose compiled part does not load, by the frame above the message or the module's own name."""
    found = _LOAD.search(case.text)
    frames = case.frames(found.start()) if found else ()
    module = (found[1] or found[2] or "") if found else ""
    own = package_of(module) if module and not module.startswith("_") else ""
    package = own or (package_of(frames[-1]) if frames else "") or ("" if found and frames else _only_one(case))
    return {"package": package} if package and package not in {"torch", "torchvision", "torchaudio"} else {}


def _only_one(case: Surroundings) -> str:
    """Return the one package with compiled code that a text names; "" for none or several."""
    words = {word.replace("_", "-") for word in re.findall(r"[a-z][\w-]{3,40}", case.text)}
    compiled = [name for name in known_names() & words if (row := companion(name)) and row.compiler]
    return compiled[0] if len(compiled) == 1 else ""


_OF_PACKAGE = frozenset(
    {"wheel_url", "its_torch", "torch_command", "pyg", "pyg_page", "from_source", "ready", "wheel_page"}
)


def named(case: Surroundings, rule: Rule, names: Mapping[str, str]) -> Mapping[str, str]:
    """Return the names of a cause, with those that its rule's remedies want and the log or the machine tells."""
    if not rule.computed:
        return names
    texts = (text for one in rule.remedy for text in (one.text, *one.commands, *one.check))
    wanted = {name for text in texts for name in PLACEHOLDER.findall(text)} - {*names}
    found: dict[str, str] = {}
    for gives, find in _FINDERS:
        if gives & wanted:
            found |= find(case)
    known = {**found, **_of_key(case, rule.key, wanted), **names}
    if known.get("package") == UNNAMED:  # the installer refuses a Python without saying for which package
        known = {name: one for name, one in known.items() if name not in {"requirement", "release"}}
        known |= {"again": known["typed"]} if "typed" in known else {"bare": known.get("best_python", "")}
    if _OF_PACKAGE & wanted and (package := known.get("package", "")):
        known = {"from_source": source_of(package), **wheel_names(case, package), **known}
    return known


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


def launched(log: Log) -> tuple[Launcher | None, tuple[str, ...]]:
    """Return the application that wrote a log, None for none that is known, and the arguments it was started with."""
    known = {mark: launcher for launcher in launchers() for mark in launcher.marks if mark in log.text}
    # A folder's name says more than a sentence, and a long one more than a short one.
    launcher = known[max(known, key=lambda mark: (" " not in mark, len(mark)))] if known else None
    found = (_ARGUMENTS.search(line) for _number, line in log.lines)
    printed = _LIST_SIGNS.sub("", next((match[1] or match[2] for match in found if match), ""))
    try:
        words = shlex.split(printed, posix=False)  # quoted words stay one, and a backslash is a backslash
    except ValueError:  # a quote that is never closed
        words = printed.split()
    return launcher, tuple(word.strip("'\"") for word in words)


def relaunched(log: Log, backend: Backend, system: str) -> tuple[Launch, ...]:
    """Return corrected launch arguments for the application that a log names, or for every known one."""
    launcher, arguments = launched(log)
    keeper = next((each for each in launchers() if each.key == KEEPER and each.marks[0] in log.text), None)
    changes = (
        _change(each, arguments, backend, system, keeper, log) for each in ([launcher] if launcher else launchers())
    )
    return tuple(change for change in changes if change and (change.drop or change.add or change.line))


def _change(
    launcher: Launcher, arguments: tuple[str, ...], backend: Backend, system: str, keeper: Launcher | None, log: Log
) -> Launch | None:
    new = corrected(launcher, arguments, backend)
    if new is None or system not in launcher.lines:
        return None
    mentioned = tuple(word for word in launcher.choosing if word.startswith("-") and word in log.text)
    kept = keeper or launcher
    return Launch(
        app=launcher.name,
        file=kept.files.get(system, ""),
        drop=tuple(word for word in arguments or mentioned if word in launcher.choosing and word not in new),
        add=tuple(word for word in new if word not in arguments),
        line=(written(kept, new, system) or "") if arguments else "",
    )
