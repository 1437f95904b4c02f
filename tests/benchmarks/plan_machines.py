"""Time and memory of `plan --machines` for 10,000 machines: `python tests/benchmarks/plan_machines.py`.

The machines are the recorded ones, varied: memory, disk, drivers, patch of Python. The limit is on processor time,
which is what the work takes where nobody else uses the machine.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from assistant.detect import detect
from assistant.host.base import ReplayHost
from assistant.machines import load, shipped
from assistant.model.machine import Machine
from assistant.model.record import replace, to_json

COUNT = 10_000
MOST_SECONDS = 30.0
MOST_MB = 1000


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


def main() -> int:
    """Print the seconds and the most memory; answer 1 where the command failed or took more than allowed."""
    draw = random.Random(23)  # noqa: S311 - a benchmark's numbers, no secret
    recorded = [detect(ReplayHost(load(name))).machine for name in shipped()]
    with tempfile.TemporaryDirectory() as folder:
        machines, answers = Path(folder, "machines.jsonl"), Path(folder, "plans.jsonl")
        lines = (to_json(varied(draw.choice(recorded), draw)) for _number in range(COUNT))
        machines.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        started = time.perf_counter()
        with answers.open("wb") as file:
            child = subprocess.Popen([sys.executable, "-m", "assistant", "plan", "--machines", machines], stdout=file)
            _pid, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds, megabytes = time.perf_counter() - started, used.ru_maxrss / 1024
    work = used.ru_utime + used.ru_stime
    print(f"{work:.1f} s of processor time, {seconds:.1f} s in all, {megabytes:.0f} MB")
    return 0 if child.returncode == 0 and work < MOST_SECONDS and megabytes < MOST_MB else 1


if __name__ == "__main__":
    sys.exit(main())
