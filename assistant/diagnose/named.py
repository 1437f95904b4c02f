"""The names that a log and its machine give to a rule's remedies, beyond those that its cause was worked out with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from assistant.catalog import has_code, identified, load_catalog, number
from assistant.catalog.companions import companion, known_names
from assistant.diagnose.attempts import tag_of
from assistant.diagnose.builds import package_built
from assistant.diagnose.kits import compiler_names, header_names, kit_names, kits, source_of
from assistant.diagnose.libraries import package_of
from assistant.diagnose.offers import torch_install
from assistant.diagnose.options import option_names
from assistant.diagnose.python_bounds import UNNAMED
from assistant.diagnose.rules import PLACEHOLDER, Rule
from assistant.diagnose.surroundings import Surroundings, for_cuda, torchcodec_install
from assistant.diagnose.typed import typed_names
from assistant.diagnose.wheels import wheel_names
from assistant.model.machine import Vendor

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
    """Name the target that the GPU is run as, and the torch that is there."""
    run = re.search(r"device \d: [^\n]{0,60}(gfx\w{3,5})", case.text)
    told = " ".join(f"{gpu.gfx or ''} {gpu.name or ''}" for gpu in case.machine.gpus).lower()
    known = next((one.gfx for gpu in case.machine.gpus if (one := identified(gpu)) and one.gfx), None)
    found = _TARGET.search(told) or _TARGET.search(case.text)
    target = run[1] if run else found[0] if found else known or ""
    names = {"gfx": target, "torch_here": case.torch}
    return {name: value for name, value in names.items() if value}


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
