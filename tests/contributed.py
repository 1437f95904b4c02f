"""A contribution for tests, as a GPU would give it: a machine like a recorded one, with figures to match."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from assistant import __version__
from assistant.detect import detect
from assistant.host.recording import RecordingHost, ReplayHost, read_recording, write_recording
from assistant.machines import load
from assistant.model.checks import CHECKS
from assistant.model.machine import Exchange, Recording
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.model.report import Check, Report, Status
from assistant.model.speed import Speed
from assistant.session.contribution import Contribution, plan_of
from assistant.session.seen import SeenRow

WHEN = datetime(2026, 11, 27, 12, tzinfo=UTC)
TORCH = "2.15.0+cu130"
FACTS = {
    "torch": TORCH,
    "python": "3.12.4",
    "cuda": "13.0",
    "threads": "16",
    "device": "cuda",
    "device name": "NVIDIA GeForce RTX 4090",
    "device memory": "23.5 GiB",
    "compute capability": "8.9",
}
# A row of the table "seen to work".
ROW = SeenRow(
    card="GeForce RTX 4090",
    architecture="8.9",
    system="linux",
    arch="x86_64",
    backend=Backend.CUDA,
    variant="cu130",
    torch="2.15.0",
    last=date(2026, 10, 3),
    machines=3,
)
# Of a full verification: GFLOP, GB and seconds of one run, as a card of this kind takes them.
SPEEDS = {
    "speed.bandwidth": (0.0, 0.537, 6.1e-4, "float32"),
    "speed.matmul.float32": (1099.5, 0.8, 0.0201, "float32"),
    "speed.matmul.float16": (1099.5, 0.4, 0.0068, "float16"),
    "speed.matmul.bfloat16": (1099.5, 0.4, 0.0069, "bfloat16"),
    "speed.conv2d": (1.2, 0.0168, 6.2e-5, "float32"),
    "speed.attention": (2.15, 0.0084, 9.1e-5, "float32"),
    "speed.softmax": (0.084, 0.134, 1.7e-4, "float32"),
}
EXACT = {"copy", "integers", "small_kernels", "out_of_memory"}  # whose error is none
OTHERS = {
    "small_kernels",
    "workload.llm",
    "workload.tts",
    "workload.vocoder",
    "workload.lora",
}  # no rate of work


def machine_like(name: str = "linux-ubuntu2404-rtx4090", free: int = 98_765_432_100) -> Recording:
    """Return a machine that answers like a shipped one, and has other room on its disk."""
    host = RecordingHost(ReplayHost(load(name)))
    detect(host)
    text = write_recording(host, "")
    said = tuple(_with_room(one, free) for one in read_recording(text, name).said if one.answer.status != "unrecorded")
    return Recording(date=f"{WHEN:%Y-%m-%d}", said=tuple(one for one in said if one.ask != ("kernels",)))


def _with_room(said: Exchange, free: int) -> Exchange:
    if said.ask[0] != "disk":
        return said
    return replace(said, answer=replace(said.answer, text=f'{{"free":{free},"total":429496729600}}'))


def contribution(level: str = "full", **more: Any) -> Contribution:
    """Return the contribution of a PC with an RTX 4090; `more` are fields that are to be different."""
    recording = more.pop("recording", machine_like())
    machine = detect(ReplayHost(recording)).machine
    told = Contribution(
        schema=1,
        when=WHEN,
        assistant=__version__,
        mark="0123456789abcdef0123456789abcdef",
        recording=recording,
        plan=plan_of(machine, Backend.CUDA, TORCH, "3.12"),
        packages={"torch": TORCH, "numpy": "2.4.6"},
        report=report(level),
    )
    return replace(told, **more)


def report(level: str = "full", facts: dict[str, str] = FACTS, pace: float = 1.0) -> Report:
    """Return a verification that passed; `pace` makes all of it slower or quicker."""
    checks = tuple(_check(key, number, pace) for number, key in enumerate(CHECKS[level]))
    return Report(device="cuda", checks=checks, facts=facts, seconds=pace * (48.1 if level == "full" else 6.3))


def _check(key: str, number: int, pace: float) -> Check:
    """Return a check that passed, with figures that are its own."""
    seconds = pace * (1.9371 if key == "import" else 2.13e-5 * (number + 1))
    first = seconds if key in {"import", "device"} else 31.7 * seconds
    plain = Check(key=key, status=Status.PASSED, seconds=seconds, first_seconds=first)
    if key in SPEEDS:
        return Check(key=key, status=Status.PASSED, seconds=SPEEDS[key][2], speed=_rate(*SPEEDS[key]))
    if key in {"import", "device", "memory"}:
        return plain
    error = {"error": 0.0, "tolerance": 0.0} if key in EXACT else {"error": 1.3e-7 * (number + 1), "tolerance": 1e-4}
    speed = Speed(rate=3.1e4, unit="tokens/s", seconds=0.011, best=0.0102, spread=0.1, repeats=5)
    return replace(plain, **error, **({"speed": speed} if key in OTHERS else {}))


def _rate(gflop: float, gigabytes: float, seconds: float, dtype: str) -> Speed:
    counted, unit = (gflop, "GFLOP/s") if gflop > 1 else (gigabytes, "GB/s")
    return Speed(
        rate=counted / seconds,
        unit=unit,
        seconds=seconds,
        best=0.97 * seconds,
        spread=0.05,
        repeats=30,
        flops=gflop * 1e9,
        bytes=gigabytes * 1e9,
        dtype=dtype,
    )
