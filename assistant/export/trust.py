"""What a configuration from somebody else may hold: each value of a plain form, so that nothing in it can run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from assistant.host.quiet import quiet
from assistant.i18n import _, say
from assistant.model.errors import BadInput
from assistant.model.plan import Plan
from assistant.model.report import Environment
from assistant.model.visible import one_line

# What a plan may set. Others make a program load libraries or code (LD_PRELOAD, PYTHONPATH, CUDA_INJECTION64_PATH).
VARIABLES = frozenset(
    (
        "CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES",
        "HSA_ENABLE_DXG_DETECTION", "HSA_OVERRIDE_GFX_VERSION", "INFERENCE_DEVICE", "MIOPEN_DEBUG_CONV_WINOGRAD",
        "MIOPEN_FIND_MODE", "ONEAPI_DEVICE_SELECTOR", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_ENABLE_MPS_FALLBACK", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
        "ROCR_VISIBLE_DEVICES", "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS",
        "ZE_AFFINITY_MASK",
    )
)  # fmt: skip
_VALUE = re.compile(r"[\w.,:;=+*-]{0,200}", re.ASCII)
_FOLDER = re.compile(r"[^/\\:\x00-\x1f\x7f]{1,200}")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_FORMS = {
    "plan.variant": re.compile(r"[a-z][\w.-]{0,40}(/[\w.-]{1,40})?", re.ASCII),
    "plan.python": re.compile(r"\d{1,2}\.\d{1,3}(\.\d{1,3})?t?"),
    "verification.device": re.compile(r"[a-z_]{1,20}(:\d{1,3})?", re.ASCII),
    "environment.kernel": re.compile(r"[A-Za-z0-9._-]{1,120}"),
}
_INDEX = re.compile(
    r"(https?://[\w.-]{1,200}(:\d{1,5})?|file:///)(/?[\w./+~:%-]{0,400})?(\?[\w=&.%-]{0,200})?", re.ASCII
)
_SHA256 = re.compile(r"[0-9a-f]{64}")


def check_values(file: str, plan: Plan, environment: Environment, device: str, hashes: dict[str, str]) -> None:
    """Raise `BadInput` naming `file` and the first value that is not of the plain form that this program writes."""
    texts = {
        "plan.variant": plan.variant,
        "plan.python": plan.python,
        "verification.device": device,
        "environment.kernel": environment.kernel or "none",
    }
    for place, text in texts.items():
        if not _FORMS[place].fullmatch(text) or ".." in text:
            raise _refusal(file, place, text, say("it is not of the form that the assistant writes"))
    for place, text, why in (*_addresses(plan), *_paths(environment), *_packages(plan, environment), *_others(plan)):
        raise _refusal(file, place, text, why)
    for name, digest in hashes.items():
        if not _SHA256.fullmatch(digest) or name not in environment.packages:
            raise _refusal(file, f"hashes.{name}", digest, say("it is not the SHA-256 of a package that is listed"))


def plain(text: object) -> str:
    """Make a text from outside one printable line, so that it cannot steer the terminal."""
    return one_line(str(text))[:300]


Fault = tuple[str, str, str]


def _addresses(plan: Plan) -> Iterator[Fault]:
    if plan.index_url is not None and (not _INDEX.fullmatch(plan.index_url) or "/.." in plan.index_url):
        yield "plan.index_url", plan.index_url, say("it is not the plain address of a package index")


def _paths(environment: Environment) -> Iterator[Fault]:
    """Accept one folder's name, and an interpreter inside of it: nothing that could lead anywhere else."""
    folder = environment.path
    if not _FOLDER.fullmatch(folder) or folder.strip(". ") != folder or _RESERVED.fullmatch(folder):
        yield "environment.path", folder, say("it is not the plain name of a folder")
    parts = environment.python.split("/")
    if not all(_FOLDER.fullmatch(part) and part.strip(".") for part in parts) or len(parts) > 2:  # noqa: PLR2004
        yield "environment.python", environment.python, say("it leads out of the environment")


def _packages(plan: Plan, environment: Environment) -> Iterator[Fault]:
    try:
        Version(plan.torch)
    except InvalidVersion:
        yield "plan.torch", plan.torch, say("it is not a version")
    for line in plan.requirements:
        if (why := _fault_of_requirement(line)) is not None:
            yield "plan.requirements", line, why
    for name, version in environment.packages.items():
        try:
            Version(version)
        except InvalidVersion:
            yield f"environment.packages.{name}", version, say("it is not a version")
        if canonicalize_name(name) != name or not re.fullmatch(r"[a-z0-9-]{1,120}", name):
            yield "environment.packages", name, say("it is not the name of a package")


def _others(plan: Plan) -> Iterator[Fault]:
    for name, value in plan.env.items():
        if name not in VARIABLES and quiet().get(name) != value:
            yield f"plan.env.{name}", value, say("no plan sets this variable")
        elif not _VALUE.fullmatch(value):
            yield f"plan.env.{name}", value, say("such values can name files or commands")


def _fault_of_requirement(line: str) -> str | None:
    try:
        need = Requirement(line)
    except InvalidRequirement:
        return say("it is not a requirement")
    if need.url:
        return say("it names an address of its own")
    if need.marker:
        return say("it holds under a condition only")
    return None if line.isprintable() and line.isascii() else say("it is not a requirement")


def _refusal(file: str, place: str, text: str, why: str) -> BadInput:
    return BadInput(
        _(
            "{file} is refused at {place}: {why} ({text}).",
            file=file,
            place=plain(place),
            why=why,
            text=ascii(text)[1:-1][:80],
        ),
        hint=_("Export it anew where it came from, and do not edit that place."),
    )
