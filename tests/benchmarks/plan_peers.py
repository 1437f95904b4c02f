"""Our planner beside its nearest peers on the same cases: `python tests/benchmarks/plan_peers.py CASES.json`.

Peers: torchruntime's platform function, light-the-torch's driver table, uv's `--torch-backend=auto` (the indexes that
it asks, read off its log offline; which Intel GPU is there cannot be told to it, so these cases are left out for it).
None of them is given the network: which release an index holds for a Python is filled in from our catalogue, in their
favour. A case is right when backend, variant and torch version are allowed and platforms without wheels are refused.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from assistant.catalog import load_catalog, number
from assistant.model.machine import Machine
from assistant.model.plan import Request
from assistant.model.record import from_plain
from assistant.plan import make_plans
from assistant.plan.candidates import read_pins
from assistant.plan.target import Refusal, Target, find_target

CATALOG = load_catalog()
GROUPS = {"10de": "NVIDIA", "1002": "AMD", "8086": "Intel", "apple": "Apple", "nvidia": "NVIDIA", "amd": "AMD"}


class Answer(NamedTuple):
    """What a tool would install; `backend` None where it refuses or fails."""

    backend: str | None
    variant: str = ""
    torch: str | None = None
    env: dict[str, str] = {}


Peer = Callable[[dict[str, Any]], Answer]
NOTHING = Answer(None)


def read(case: dict[str, Any]) -> tuple[Machine, tuple[str, ...]]:
    """Split a case's machine into the facts and the pins."""
    facts = dict(case)
    pins = tuple(facts.pop("pins", ()))
    facts.pop("request", None)
    return from_plain(facts, Machine, "the case"), pins


def held(case: dict[str, Any], variant: str) -> str | None:
    """Fill in the newest release that a variant's index holds for the case's Python, platform and pins."""
    machine, pins = read(case)
    target = find_target(machine, Request(), CATALOG)
    if isinstance(target, Refusal):
        return None
    wishes = read_pins(pins, CATALOG, target.markers)
    variant = "pypi" if target.os == "macos" else variant
    wheels = CATALOG.wheels(target.platform, target.tag, variant)
    return next((wheel.release.version for wheel in wheels if wheel.variant == variant and wishes.allow(wheel)), None)


def found(case: dict[str, Any], backend: str, variant: str) -> Answer:
    """Turn a peer's tag into an answer; a tag without any wheel for this Python is a failed install."""
    torch = "2.4.1" if backend == "directml" else held(case, variant)
    return Answer(backend, variant, torch) if torch else NOTHING


def ours(case: dict[str, Any]) -> Answer:
    """Ask our planner."""
    machine, pins = read(case)
    plan = make_plans(machine, CATALOG, Request(pins=pins)).choice
    return Answer(plan.backend.value, plan.variant, plan.torch, plan.env) if plan else NOTHING


def torchruntime(case: dict[str, Any]) -> Answer:
    """Ask torchruntime's platform function, with the names of its own database where it knows the card."""
    detection = importlib.import_module("torchruntime.platform_detection")
    database = importlib.import_module("torchruntime.device_db")
    systems = {"linux": "Linux", "windows": "Windows", "macos": "Darwin"}
    detection.os_name = systems[case["os"]]
    detection.arch = {"x86_64": "amd64"}.get(case["arch"], case["arch"]) if case["os"] == "windows" else case["arch"]
    detection.py_version = number(case["python"])
    cards = [card for gpu in case["gpus"] for card in database.get_device_infos([_ids(gpu)]) or [_card(gpu, database)]]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            tag = detection.get_torch_platform(cards, packages=list(case.get("pins", ())))
    except (NotImplementedError, KeyError, ValueError):
        return NOTHING
    return found(case, _backend(tag), tag)


def _ids(gpu: dict[str, Any]) -> tuple[str, str]:
    vendor, _colon, device = (gpu.get("pci_id") or ":").partition(":")
    return vendor, device


def _card(gpu: dict[str, Any], database: Any) -> Any:
    vendor = {"nvidia": "10de", "amd": "1002", "intel": "8086"}.get(gpu["vendor"], _ids(gpu)[0])
    return database.GPU(vendor, gpu["vendor"], _ids(gpu)[1], gpu.get("name") or "", not gpu.get("integrated"))


def _backend(tag: str) -> str:
    return "cuda" if tag.startswith("cu") else "rocm" if tag.startswith("rocm") else tag


def light_the_torch(case: dict[str, Any]) -> Answer:
    """Ask light-the-torch's table which CUDA tags the driver runs; it then takes the newest that has a wheel."""
    table = importlib.import_module("light_the_torch._cb")._MINIMUM_DRIVER_VERSIONS
    floors = table.get({"linux": "Linux", "windows": "Windows"}.get(case["os"], ""), {})
    driver = case.get("nvidia_driver")
    runs = sorted((cuda for cuda, least in floors.items() if driver and number(driver) >= least.release), reverse=True)
    for cuda in runs:
        variant = f"cu{cuda.major}{cuda.minor}"
        if held(case, variant):
            return found(case, "cuda", variant)
    return found(case, "mps" if case["os"] == "macos" and case["arch"] == "arm64" else "cpu", "cpu")


def uv(case: dict[str, Any]) -> Answer:
    """Read off uv's log which indexes it asks; it takes the first, newest tag first, that has a wheel."""
    machine, _pins = read(case)
    target = find_target(machine, Request(), CATALOG)
    if isinstance(target, Refusal):
        return NOTHING
    tags = _asked_by_uv(case, target)
    for tag in sorted(tags - {"cpu"}, key=lambda tag: number(tag.replace("cu", "cu ")), reverse=True):
        if held(case, tag):
            return found(case, _backend(tag), tag)
    return found(case, "mps" if target.platform == "macos_arm64" else "cpu", "cpu")


def _asked_by_uv(case: dict[str, Any], target: Target) -> set[str]:
    """Run uv's resolver offline; its wish for Intel GPUs cannot be set from outside."""
    gfx = next((gpu["gfx"] for gpu in case["gpus"] if gpu.get("gfx")), None) if case["os"] == "linux" else None
    wanted = {"UV_CUDA_DRIVER_VERSION": case.get("nvidia_driver"), "UV_AMD_GPU_ARCHITECTURE": gfx}
    done = subprocess.run(
        [
            *("uv", "pip", "compile", "-v", "--torch-backend=auto", "--offline", "-"),
            *("--python-version", target.python, "--python-platform", case["os"]),
        ],
        input="\n".join(case.get("pins", ())) or "torch",
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **{name: value for name, value in wanted.items() if value}},
    )
    return set(re.findall(r"download\.pytorch\.org/whl/([\w.]+)/torch", done.stderr))


def right(expect: dict[str, Any], answer: Answer) -> bool:
    """Tell whether an answer is allowed: its backend, variant, torch version and settings."""
    if expect.get("unsupported"):
        return answer.backend is None
    if answer.backend != expect["backend"]:
        return answer.backend in expect.get("backend_also_ok", [])
    harmful = {item.partition("=")[0]: item.partition("=")[2] for item in expect.get("env_none_of", [])}
    hurt = any(name in answer.env and value in ("", answer.env[name]) for name, value in harmful.items())
    return (
        answer.variant not in expect.get("index_none_of", [])
        and _allowed(expect.get("torch_version"), answer)
        and not hurt
    )


def _allowed(wanted: str | None, answer: Answer) -> bool:
    if not wanted:
        return True
    specifiers = SpecifierSet(wanted if wanted[0] in "<>=!~" else f"=={wanted}", prereleases=True)
    return bool(answer.torch) and specifiers.contains(Version(answer.torch or "0"))


def group(case: dict[str, Any]) -> str:
    """Sort a case by the maker of its first card."""
    cards = case["gpus"]
    return GROUPS.get(cards[0]["vendor"], "Intel" if cards[0]["vendor"] == "intel" else "other") if cards else "no GPU"


PEERS: dict[str, Peer] = {
    "this assistant": ours,
    "uv (--torch-backend=auto)": uv,
    "torchruntime": torchruntime,
    "light-the-torch": light_the_torch,
}
UNTOLD = {"uv (--torch-backend=auto)": ("Intel",)}


def main() -> None:
    """Print one Markdown table: right answers by maker, then in all."""
    cases = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    columns = Counter(group(case["machine"]) for case in cases)
    print(f"| | {' | '.join(f'{name} ({columns[name]})' for name in columns)} | all ({len(cases)}) |")
    print(f"|---|{'---:|' * (len(columns) + 1)}")
    for name, peer in PEERS.items():
        mine = [case for case in cases if group(case["machine"]) not in UNTOLD.get(name, ())]
        good = Counter(group(case["machine"]) for case in mine if right(case["expect"], peer(case["machine"])))
        cells = [str(good[column]) if column not in UNTOLD.get(name, ()) else "not comparable" for column in columns]
        print(f"| {name} | {' | '.join(cells)} | **{100 * good.total() / len(mine):.0f} %** |")


if __name__ == "__main__":
    main()
