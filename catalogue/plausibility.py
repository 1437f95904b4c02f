"""Judges the files that `assistant contribute` writes: what may be wrong with one is yielded, a sentence each.

Nothing that a file says is believed for itself: its machine is replayed, its plan is made anew, and the figures of its
verification are held against the machine, against one another and against what the catalogue knows of the card.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path

from assistant.catalog.limits import limits_of
from packaging.version import InvalidVersion, Version

from assistant import __version__
from assistant.catalog import load_catalog
from assistant.catalog.identity import CardTables, identified, identify_name, name_key
from assistant.catalog.tables import read_tables
from assistant.detect import detect
from assistant.host.files import read_plain
from assistant.host.recording import RecordingHost, ReplayHost, read_recording, write_recording
from assistant.i18n import render
from assistant.machines import load, shipped
from assistant.model.checks import CHECKS
from assistant.model.errors import AssistantError
from assistant.model.machine import Gpu, Machine, Recording, Vendor
from assistant.model.plan import Backend, Plan
from assistant.model.record import from_json, replace, to_json, to_plain
from assistant.model.report import RIGHT, Check, Report, Status
from assistant.model.speed import BANDWIDTH, Speed
from assistant.model.visible import printable, visible
from assistant.plan import architecture
from assistant.privacy import redact
from assistant.session.contribution import FACTS, Contribution, packages_of, plan_of
from assistant.session.seen import case_of

LIMIT = 1 << 20  # bytes, chosen: a contribution has 10 to 40 kB
SKEW = timedelta(hours=1)  # chosen: how far a clock may be ahead
# What files of Linux and of the firmware hold besides letters: `host/recording_filter.py` keeps it as it is.
BINARY = re.compile(r"/proc/device-tree/model|/sys/firmware/efi/efivars/SecureBoot-[\w-]+")
APPLE = re.compile(r"Apple M\d{1,2}(?: (?:Pro|Max|Ultra))?")
DEVICES = {Backend.ROCM: "cuda", Backend.DIRECTML: "privateuseone"}  # as torch calls them
# Chosen. A card sold as 24 GB shows 23.5 GiB; boost clocks and overclocking go some way beyond data sheets; caches hold
# what the memory alone would take four times as long for.
MEMORY, CLOCKS, CACHES = (0.85, 1.05), 1.3, 4.0
CORE_RATE = 500.0  # GFLOP/s in float32 that no thread reaches: two units of 16 numbers, multiplied and added, at 6 GHz
ROUNDING = 0.01  # of a rate
LONGEST, SHORTEST_IMPORT = 3600.0, 0.05  # seconds, chosen: of a verification, and of importing torch
UNCOMPARED = ("import", "device", "memory", "onnxruntime", "speed.")  # checks that may pass without an error
WINOGRAD = 2.25  # times fewer multiplications for a convolution of 3 by 3, of which its rate knows nothing
ROUNDED = ("matmul", "linalg.solve", "conv2d", "training")  # float32 never gives these to the last bit


class Refused(Exception):
    """A file that is not looked at any further, with the sentence that says why."""


def read(path: Path) -> Contribution:
    """Decode a file strictly; raise `AssistantError` or `Refused` with the sentence that refuses it."""
    try:
        data = read_plain(path, LIMIT)
        text = data.decode("utf-8")
    except OSError as error:
        raise Refused(f"It cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Refused("It is not in UTF-8.") from error
    if visible(text) != text:
        raise Refused("It holds characters that steer a terminal or cannot be seen.")
    return from_json(text, Contribution, path.name)


def faults(told: Contribution, now: datetime) -> Iterator[str]:
    """Yield what is wrong with a contribution by itself; the first sentences are why the later ones are not looked for.

    Words of the file stand in them as short, visible text.
    """
    for judge in (_hidden, _private, _dates, _recording):
        found = list(judge(told, now))
        yield from found
        if found:
            return
    machine = detect(ReplayHost(told.recording)).machine
    yield from _plan(told, machine)
    yield from _checks(told.report)
    yield from _device(told, machine)
    yield from _times(told.report)
    for check in told.report.checks:
        yield from _figures(check, told)


def figures(told: Contribution) -> str:
    """Return a digest of what was measured: two verifications never take the same times to the last digit."""
    measured = [(one.key, one.seconds, one.first_seconds, one.error) for one in told.report.checks]
    return hashlib.sha256(to_json([told.report.seconds, measured]).encode()).hexdigest()


def answers(recording: Recording) -> str:
    """Return a digest of a machine's answers, of which free memory and disk are another each time."""
    return hashlib.sha256(to_json(recording.said).encode()).hexdigest()


def _hidden(told: Contribution, _now: datetime) -> Iterator[str]:
    for said in told.recording.said:
        text = said.answer.text
        binary = said.ask[0] == "read" and BINARY.fullmatch(said.ask[-1])
        if visible(text) != text and not binary:
            yield f"The answer to {printable(' '.join(said.ask))} holds characters that steer a terminal or are hidden."
    bare = replace(told, recording=replace(told.recording, said=()))
    if any(visible(text) != text for _place, text in _texts(to_plain(bare))):
        yield "It holds characters that steer a terminal or cannot be seen."


def _private(told: Contribution, _now: datetime) -> Iterator[str]:
    """Name the places of what is private, and never what stands there."""
    before, after = dict(_texts(to_plain(told))), dict(_texts(to_plain(redact(told))))
    for place in [place for place, text in before.items() if after.get(place) != text][:1]:
        yield f"It holds something private at {printable(place)}; ask for a file that `assistant contribute` wrote."


def _texts(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text with its place, keys of objects included."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for number, (key, item) in enumerate(value.items()):
            yield f"{place}.{number}", str(key)
            yield from _texts(item, f"{place}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _texts(item, f"{place}[{number}]")


def _dates(told: Contribution, now: datetime) -> Iterator[str]:
    if told.when > now + SKEW:
        yield f"Its day, {told.when:%Y-%m-%d}, has not come yet."
    release = load_catalog().release(told.plan.torch)
    if release and release.date and told.when.date() < date.fromisoformat(release.date):
        yield f"Its day, {told.when:%Y-%m-%d}, is before PyTorch {release.version} came out, {release.date}."
    day = told.recording.date
    if not re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", day) or abs(_days(day) - told.when.date().toordinal()) > 1:
        yield "The machine was recorded on another day than the verification was made."
    try:
        newer = Version(told.assistant) > Version(__version__)
    except InvalidVersion:
        newer = True
    if newer:
        yield f"There is no version {printable(told.assistant)} of the assistant yet."


def _days(day: str) -> int:
    """Count the days to a date, 0 for one that no calendar has."""
    try:
        return date.fromisoformat(day).toordinal()
    except ValueError:
        return 0


def _recording(told: Contribution, _now: datetime) -> Iterator[str]:
    recording = told.recording
    if recording.origin != "recorded":
        yield "Its machine was composed, not recorded."
    if recording.label or recording.source or to_json(recording.expect) != "{}":
        yield "Its machine has words that only this script writes: label, source or expect."
    if not recording.said:
        yield "Its machine holds no answers."
    copied = next((name for name in shipped() if load(name).said == recording.said), "")
    if copied:
        yield f"Its machine is {copied}, which the project ships."
    host = RecordingHost(ReplayHost(recording))
    detect(host)
    again = read_recording(write_recording(host, ""), "").said
    if tuple(one for one in again if one.answer.status != "unrecorded") != recording.said:
        yield "Recorded anew, its machine is another one: it holds answers that no recording keeps."


def _plan(told: Contribution, machine: Machine) -> Iterator[str]:
    torch, plan = told.report.facts.get("torch", ""), told.plan
    if (torch.partition("+")[0] or None) != plan.torch:
        yield f"Its plan is for PyTorch {printable(plan.torch)}, and {printable(torch) or 'none'} was verified."
        return
    try:
        made = plan_of(machine, plan.backend, torch, plan.python)
    except AssistantError as error:
        yield render(error.message)
        return
    same = ("variant", "torch", "python", "index_url")
    if any(getattr(made, name) != getattr(plan, name) for name in same):
        yield f"Its plan is for {printable(plan.variant)}, and what was verified, {torch}, is {made.variant}."
    elif replace(plan, download_mb=None) != replace(made, download_mb=None):
        yield "Its plan is not as this assistant makes it for this build; an older one may have made it."
    unknown = sorted(set(told.packages) - packages_of(made))
    if unknown:
        yield f"It names packages that its plan does not: {printable(', '.join(unknown))}."


def _checks(report: Report) -> Iterator[str]:
    keys = tuple(check.key for check in report.checks)
    if keys not in CHECKS.values():
        yield "Its checks are not those of a quick or a full verification."
    if report.limits or any(check.detail for check in report.checks):
        yield "Its checks have words or limits, which contributions leave out."
    if wrong := [check.key for check in report.wrong if check.status is not Status.UNSUPPORTED]:
        yield f"Not all of its checks passed: {printable(', '.join(wrong))}."
    skipped = {check.key for check in report.checks if check.status is Status.SKIPPED} & {*CHECKS["quick"]}
    if not report.usable or skipped - {"onnxruntime"}:
        yield "Its verification does not show that torch computes: what all else rests on was not checked."
    if unknown := set(report.facts) - FACTS:
        yield f"Its verification tells what none does: {printable(', '.join(sorted(unknown)))}."


def _device(told: Contribution, machine: Machine) -> Iterator[str]:
    """Hold what torch says of itself and its device against the plan and the machine."""
    report, backend, facts = told.report, told.plan.backend, told.report.facts
    device, python = facts.get("device", "none"), facts.get("python", "none")
    if report.device != backend.value or device.partition(":")[0] != DEVICES.get(backend, report.device):
        yield f"Its verification was of the device {printable(device)}, and its plan is for {backend.title}."
    if not f"{python}.".startswith(f"{told.plan.python.rstrip('t')}."):
        yield f"Its plan is for Python {printable(told.plan.python)}, and {printable(python)} was verified."
    tag, cuda = facts.get("torch", "").partition("+")[2], facts.get("cuda", "none")
    if tag.startswith("cu") and tag != f"cu{cuda.replace('.', '')}":
        yield f"Its torch is built as {printable(tag)} and says that its CUDA is {printable(cuda)}."
    if bool(facts.get("hip")) != (backend is Backend.ROCM) or (backend is Backend.CPU and facts.get("cuda")):
        yield f"Its torch is not built for {backend.title}."
    gpus, case = [gpu for gpu in machine.gpus if gpu.vendor is not Vendor.OTHER], case_of(machine, told.plan)
    for gpu in gpus:
        if gpu.vendor is Vendor.UNKNOWN or not (
            APPLE.fullmatch(gpu.name or "") if gpu.vendor is Vendor.APPLE else _is_known(gpu)
        ):
            yield f"The catalogue does not know the GPU {printable(gpu.label)}; it comes first."
    if case is None:
        yield "Its machine does not tell its system, its processor or its GPU."
    elif backend is not Backend.CPU:
        alone = [replace(machine, gpus=(gpu,)) for gpu in gpus]
        planned = [one.gpus[0] for one in alone if architecture(one, backend) == case.architecture]
        yield from _card(facts, planned, told.plan)
    elif {"device memory", "compute capability", "architecture"} & {*facts}:
        yield "It computed on the processor, and tells of a GPU."


def _card(facts: Mapping[str, str], gpus: list[Gpu], plan: Plan) -> Iterator[str]:
    """Find the machine's GPU that torch named, and compare the two."""
    name, architecture = facts.get("device name", ""), facts.get("architecture", "").partition(":")[0]
    known = [identify_name(vendor, name) for vendor in {gpu.vendor for gpu in gpus}]
    named = [gpu for gpu in gpus if name_key(name) in _names(gpu)]
    if not name and plan.backend is not Backend.MPS:
        yield "Its torch does not name the device."
    elif name and not named and (any(known) or not architecture):
        there = ", ".join(gpu.label for gpu in gpus) or "none"
        yield f"Its torch computed on {printable(name)}, and the machine's GPU is {printable(there)}."
    fitting = named or gpus
    capability = facts.get("compute capability", "none")
    if plan.backend is Backend.CUDA and capability not in _of(fitting, "compute_capability"):
        yield f"Its torch saw the compute capability {printable(capability)}, which is not the card's."
    if plan.backend is Backend.ROCM and architecture not in {*_of(fitting, "gfx"), _played(plan)}:
        yield f"Its torch saw the architecture {printable(architecture) or 'none'}, which is not the card's."
    seen, sizes = _number(facts.get("device memory", "")), [gpu.vram_gb or 0.0 for gpu in fitting if not gpu.integrated]
    if seen and all(sizes) and sizes and not any(MEMORY[0] * size < seen < MEMORY[1] * size for size in sizes):
        yield f"Its torch saw {seen:g} GiB of memory, and the card has {sizes[0]:g}."


def _played(plan: Plan) -> str:
    """Return the target that a plan lets ROCm take a card for: HSA_OVERRIDE_GFX_VERSION=10.3.0 is gfx1030."""
    parts = plan.env.get("HSA_OVERRIDE_GFX_VERSION", "").split(".")
    return f"gfx{parts[0]}{parts[1]}{int(parts[2]):x}" if len(parts) == 3 and parts[2].isdecimal() else ""  # noqa: PLR2004


def _is_known(gpu: Gpu) -> bool:
    """Return whether the tables have a GPU's whole name, as a part of one could stand among words of anybody's."""
    if gpu.vendor is Vendor.APPLE:
        return bool(APPLE.fullmatch(gpu.name or ""))
    return identified(gpu) is not None and name_key(gpu.name or "") in _known_names(gpu.vendor)


@cache
def _known_names(vendor: Vendor) -> frozenset[str]:
    tables = read_tables(f"gpus_{vendor.value}", CardTables)
    rows = (*tables.cards.rows, *(tables.chips.rows if tables.chips else ()))
    return frozenset(name_key(name) for row in rows for name in row.names)


def _names(gpu: Gpu) -> set[str]:
    """Return the keys of all names of a GPU: that of its driver, and those that the tables have for its id."""
    known = identified(gpu)
    names = [gpu.name or "", *(known.name.split(" / ") if known else ())]
    return {name_key(name) for name in names if name}


def _of(gpus: list[Gpu], field: str) -> set[str]:
    """Return a fact of some GPUs, from the tables where the machine does not tell it."""
    facts = {getattr(gpu, field) or getattr(identified(gpu), field, None) for gpu in gpus}
    return {str(fact) for fact in facts if fact}


def _number(text: str) -> float | None:
    found = re.fullmatch(r"(\d{1,5}(?:\.\d)?) GiB", text)
    return float(found[1]) if found else None


def _times(report: Report) -> Iterator[str]:
    """Compare the times with one another: the checks follow one another, each run at least once."""
    times = [time for one in report.checks for time in (one.seconds, one.first_seconds) if time is not None]
    if not 0 < report.seconds < LONGEST or any(not 0 < time < LONGEST for time in times):
        yield "Its times are not possible: none is below zero or above an hour."
        return
    least = sum(max(one.seconds or 0.0, one.first_seconds or 0.0) for one in report.checks)
    if least > report.seconds:
        yield f"Its checks took {least:.1f} seconds together, and the whole verification {report.seconds:.1f}."
    imported = next((one.seconds for one in report.checks if one.key == "import"), None)
    if (imported or 0.0) < SHORTEST_IMPORT:
        yield "Nobody imports torch that fast."
    if len(times) > 4 and len({*times}) < len(times) // 2:  # noqa: PLR2004 - import and device count theirs twice
        yield "Its times repeat one another, which those of a clock do not."


def _figures(check: Check, told: Contribution) -> Iterator[str]:
    """Judge one check's error and speed."""
    error, tolerance = check.error, check.tolerance
    if check.status in RIGHT and error is not None and not 0 <= error <= (tolerance or 0.0):
        yield f"The check {printable(check.key)} passed with an error of {error:g}, and {tolerance or 0:g} is allowed."
    if check.status in RIGHT and error is None and not check.key.startswith(UNCOMPARED):
        yield f"The check {printable(check.key)} passed and compared nothing."
    if check.key in ROUNDED and (not error or not tolerance or tolerance > 2e-2):  # noqa: PLR2004 - half precision's
        yield f"The check {printable(check.key)} has an error that no hardware gives: {error}, of {tolerance} allowed."
    if (check.speed is not None) != (check.key.startswith(("speed.", "workload.")) or check.key == "small_kernels"):
        if check.status in RIGHT:
            yield f"The check {printable(check.key)} has or lacks a speed."
    elif check.speed is not None:
        yield from _speed(check.key, check.speed, told)


def _speed(key: str, speed: Speed, told: Contribution) -> Iterator[str]:
    """Compare a speed with itself, and with the most that the card, or a processor with so many threads, can do."""
    work = {"GFLOP/s": speed.flops, "GB/s": speed.bytes}.get(speed.unit, 0.0)
    steady = 0 < speed.best <= speed.seconds and speed.seconds * speed.repeats / 2 <= told.report.seconds
    follows = not key.startswith("speed.") or (work > 0 and abs(speed.rate * speed.seconds * 1e9 / work - 1) < ROUNDING)
    if not (steady and follows and speed.rate > 0 and speed.spread >= 0):
        yield f"The speed of {printable(key)} does not follow from its times: {speed.rate:g} {printable(speed.unit)}."
        return
    facts = told.report.facts
    if told.plan.backend is Backend.CPU:
        threads = re.fullmatch(r"[0-9]{1,4}", facts.get("threads", "1"))
        most = {"float32": CORE_RATE * int(threads[0] if threads else 1)} if speed.dtype == "float32" else {}
    else:
        known = limits_of(facts.get("device name", ""), _number(facts.get("device memory", "")))
        most = {name: limit.value * (CACHES if name == BANDWIDTH else CLOCKS) for name, limit in known.items()}
    saved = WINOGRAD if key == "speed.conv2d" else 1.0
    rates = {speed.dtype: speed.flops / saved / speed.best / 1e9, BANDWIDTH: speed.bytes / speed.best / 1e9}
    for name, rate in rates.items():
        if rate > most.get(name, rate):
            reached = f"{rate:,.0f} {'GB/s' if name == BANDWIDTH else 'GFLOP/s'}"
            yield f"The check {printable(key)} reached {reached}, and the device can do {most[name]:,.0f} at most."
