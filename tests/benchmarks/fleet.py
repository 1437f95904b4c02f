"""Time and memory for 10,000 machines through `plan --machines` and `fleet report`: `python tests/benchmarks/fleet.py`.

The machines are the recorded ones, varied: name, memory, disk, drivers, patch of Python, environment, verification.
The limit is on processor time, which is what the work takes where nobody else uses the machine.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assistant import __version__
from assistant.detect import detect
from assistant.fleet import FleetRecord, Installed
from assistant.host.recording import ReplayHost
from assistant.machines import load, shipped
from assistant.model.checks import QUICK
from assistant.model.finding import Finding
from assistant.model.machine import Machine
from assistant.model.record import replace, to_json
from assistant.model.report import Check, Report, Status
from assistant.session.doctor import judged, planned

COUNT = 10_000
MOST_SECONDS = 30.0
MOST_MB = 1000
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def varied(machine: Machine, draw: random.Random) -> Machine:
    """Return a machine of the same hardware in another state."""
    driver = machine.nvidia_driver and f"{machine.nvidia_driver.partition('.')[0]}.{draw.randint(0, 199):02d}"
    python = machine.python and ".".join((*machine.python.split(".")[:2], str(draw.randint(0, 15))))
    return replace(
        machine,
        memory_gb=draw.choice([8.0, 15.6, 31.2, 63.9]),
        disk_free_gb=round(draw.uniform(3, 900), 1),
        nvidia_driver=driver,
        python=python + "t" * machine.python.endswith("t") if python and machine.python else python,
        evidence=(),
    )


def report(device: str, draw: random.Random) -> Report:
    """Make up a verification, of which one in ten fails."""
    failing = draw.choice(QUICK) if draw.random() < 0.1 else ""
    checks = [
        Check(key=key, status=Status.PASSED, seconds=draw.random() / 10, first_seconds=draw.random(), error=1e-7)
        for key in QUICK
    ]
    detail = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    wrong = [replace(one, status=Status.FAILED, detail=detail) if one.key == failing else one for one in checks]
    facts = {"torch": "2.15.0", "device name": "a device", "cpu capability": "AVX2"}
    return Report(device=device, checks=tuple(wrong), facts=facts, seconds=9.5)


def records() -> Iterator[tuple[Machine, FleetRecord]]:
    """Yield the machines with their records."""
    draw = random.Random(23)  # noqa: S311 - a benchmark's numbers, no secret
    seen = [detect(ReplayHost(load(name))) for name in shipped()]
    told: list[tuple[Finding, ...]] = [judged(one) for one in seen]
    for number in range(COUNT):
        place = draw.randrange(len(seen))
        machine = varied(seen[place].machine, draw)
        planning = planned(machine)
        made = planning.choice if draw.random() < 0.8 else None
        device = made.backend.value if made else "cpu"
        yield (
            machine,
            FleetRecord(
                schema=1,
                name=f"pc-{number:05}",
                when=NOW - timedelta(minutes=draw.randint(0, 60 * 24 * 60)),
                assistant=__version__,
                machine=machine,
                plan=planning.choice,
                rejected=planning.rejected,
                environment=Installed(path="/opt/torch", python=made.python, torch=made.torch) if made else None,
                report=report(device, draw) if made else None,
                findings=told[place],
            ),
        )


def measured(*words: str, output: Path) -> bool:
    """Run a command with its output in a file; print its seconds and the most memory, and answer if it kept both."""
    started = time.perf_counter()
    with output.open("wb") as file:
        child = subprocess.Popen([sys.executable, "-m", "assistant", *words], stdout=file)
        _pid, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds, megabytes = time.perf_counter() - started, used.ru_maxrss / 1024
    work = used.ru_utime + used.ru_stime
    print(f"{' '.join(words[:2]):16} {work:5.1f} s of processor time, {seconds:.1f} s in all, {megabytes:.0f} MB")
    return child.returncode == 0 and work < MOST_SECONDS and megabytes < MOST_MB


def main() -> int:
    """Print a line for each command; answer 1 where one failed or took more than allowed."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "records").mkdir()
        with (place / "machines.jsonl").open("w", encoding="utf-8") as machines:
            for machine, record in records():
                machines.write(to_json(machine) + "\n")
                (place / "records" / f"{record.name}.json").write_text(to_json(record, indent=1), encoding="utf-8")
        kept = [measured("plan", "--machines", str(place / "machines.jsonl"), output=place / "plans.jsonl")]
        for kind in ("html", "ipynb", "csv", "json"):
            page = place / f"report.{kind}"
            words = ("fleet", "report", str(place / "records"), "--to", str(page))
            kept.append(measured(*words, output=place / "printed"))
            print(f"{'':16} {page.name}: {page.stat().st_size / 1e6:.1f} MB")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
