"""What was asked for is imported: no distribution that fails in a real environment passes, and no healthy one fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from shutil import which
from types import SimpleNamespace

import numpy as np
import pytest
import verify.mismatches as made

from assistant.catalog import catalog
from assistant.catalog.catalog import Bundle
from assistant.catalog.tables import Trial
from assistant.host.extras import find_uv
from assistant.host.process import CancelToken
from assistant.model.errors import Cancelled
from assistant.model.report import Check, Report
from assistant.verify import run_checks

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux" or not which("gcc"), reason="the extensions are compiled for Linux"),
]


class Ground:
    """A real environment, made and filled by uv."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wheels = folder / "env", folder / "wheels"
        self.wheels.mkdir()
        self._uv("venv", "--python", sys.executable, str(self.folder))
        self.python = self.folder / "bin" / "python"
        self.site = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(self.folder)}))
        (self.site / "borrowed.pth").write_text(str(Path(np.__file__).parents[1]), "utf-8")

    def install(self, cases: Iterable[made.Case]) -> None:
        """Install the wheels of some cases at once."""
        wheels = [str(case.wheel(self.wheels)) for case in cases if case.installed]
        self._uv("pip", "install", "--no-deps", "--offline", "--link-mode=copy", "--python", str(self.python), *wheels)

    def verify(self, cases: Iterable[made.Case], **options: object) -> tuple[Report, dict[str, Check]]:
        """Import the distributions of some cases; give the report, and the results by name."""
        names = [case.name for case in cases]
        chosen = {"device": "cpu", "calls": False, **options}  # stand-ins do not do what the real ones are asked to do
        report = run_checks(self.python, sink=lambda _event: None, level=(), packages=names, **chosen)
        return report, dict(zip(names, report.checks, strict=True))

    def _uv(self, *words: str) -> None:
        cache = {"UV_CACHE_DIR": str(self.wheels.parent / "cache")}
        subprocess.run([find_uv(), *words], check=True, capture_output=True, env={**os.environ, **cache})


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """Give an environment full of distributions that do not work."""
    ground = Ground(tmp_path_factory.mktemp("broken"))
    cases = made.mismatches()
    ground.install([made.torch(), *cases])
    for case in cases:
        if case.damage:
            case.damage(ground.site)
    return ground


def told(cases: Iterable[made.Case], checks: dict[str, Check]) -> dict[str, str]:
    """Return what differs from what was expected, by case."""
    return {
        case.name: f"{checks[case.name].status.value}: {checks[case.name].detail}"
        for case in cases
        if checks[case.name].status is not case.status or case.words not in str(checks[case.name].detail)
    }


def test_no_mismatch_passes(broken: Ground) -> None:
    """Each is told, in its own words, and none keeps the others from being looked at."""
    hanging = {case.name for case in made.hangs()}
    cases = [case for case in made.mismatches() if case.name not in hanging]
    report, checks = broken.verify(cases)
    print(Counter(check.status.value for check in report.checks), f"{report.seconds:.1f} s")
    assert told(cases, checks) == {}
    assert not report.usable


def test_what_hangs_is_stopped(broken: Ground) -> None:
    """Each has its own time, and what it started goes with it."""
    cases = list(made.hangs())
    report, checks = broken.verify(cases, limit_per_check=3.0)
    assert told(cases, checks) == {}
    assert not report.usable


def test_nothing_healthy_fails(tmp_path: Path) -> None:
    """Neither what prints, warns, starts threads and children, nor what has nothing to import."""
    ground, cases = Ground(tmp_path), made.healthy()
    headless = [case for case in cases if case.name == "opencv-python-headless"]
    ground.install(case for case in cases if case not in headless)
    ground.install(headless)
    for case in cases:
        if case.damage:
            case.damage(ground.site)
    report, checks = ground.verify(cases)
    assert told(cases, checks) == {}
    assert report.passed


def test_a_call_shows_what_an_import_does_not(tmp_path: Path) -> None:
    """Where a line is known it is run; one that needs a GPU is left out on the CPU, and said so."""
    providers = "def get_available_providers():\n    return ['CPUExecutionProvider']\n"
    works, lacks, gpu = (
        made.Case("ctranslate2", made.PASSED, made.package("ctranslate2", "get_supported_compute_types = str.upper")),
        made.Case("faster-whisper", made.FAILED, made.package("faster_whisper", ""), "fails at `from faster_whisper"),
        made.Case("onnxruntime-gpu", made.PASSED, made.package("onnxruntime", providers), "it needs a GPU"),
    )
    ground = Ground(tmp_path)
    ground.install((works, lacks, gpu))
    checks = ground.verify((works, lacks, gpu), calls=True)[1]
    assert told((works, lacks, gpu), checks) == {}
    there = ground.verify((gpu,), calls=True, device="cuda")[1][gpu.name]
    assert there.status is made.FAILED
    assert "onnxruntime-gpu can be imported, but fails at" in str(there.detail)


def test_a_recipes_call_is_run_beside_the_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU one that needs a GPU is left out, and said so."""
    trials = (
        ("whisperx", Trial(call="import whisperx; print(whisperx.__file__)", on_cpu=True)),
        ("invokeai", Trial(call="import invokeai.app.run_app, torch; print(torch.__version__)", on_cpu=True)),
        ("vllm", Trial(call="import vllm", on_cpu=False)),
    )
    recipes = tuple(Bundle(key=key, title=key, lead="", trial=trial) for key, trial in trials)
    monkeypatch.setattr(catalog, "load_recipe_reader", lambda: SimpleNamespace(recipes=lambda: recipes))
    ground, case = Ground(tmp_path), made.Case("whisperx", made.PASSED, made.package("whisperx", ""))
    ground.install((case,))
    for recipe, status, words in [
        ("whisperx", made.PASSED, ""),
        ("invokeai", made.FAILED, "run_app, torch; print(torch.__version__)` fails: ModuleNotFoundError"),
        ("vllm", made.SKIPPED, "needs a GPU"),
        ("course", None, ""),
    ]:
        report = run_checks(ground.python, "cpu", lambda _event: None, level=(), recipe=recipe)
        assert [check.status for check in report.checks] == ([status] if status else [])
        assert words in "".join(str(check.detail) for check in report.checks)


@pytest.mark.parametrize("fault", ["gone", "hang:import"])
def test_where_torch_fails_the_packages_wait_for_it(fake_python: Path, fault: str) -> None:
    """They are skipped with the reason, and the report is not usable."""
    options = {"variables": {"FAKE_TORCH_FAULT": fault}, "limit_per_check": 3.0, "packages": ["numpy", "pip"]}
    report = run_checks(fake_python, "cpu", lambda _event: None, level=("import",), **options)
    assert [check.status for check in report.checks[1:]] == [made.SKIPPED] * 2
    assert str(report.checks[1].detail) == "It needs the check import to pass first."
    assert not report.usable


def test_cancelling_ends_the_imports_at_once(broken: Ground) -> None:
    """Neither those at hand nor those that wait go on."""
    cancel, started = CancelToken(), time.monotonic()
    threading.Timer(1.0, cancel.set).start()
    with pytest.raises(Cancelled):
        broken.verify(made.hangs(), cancel=cancel)
    assert time.monotonic() - started < 20


def test_ctrl_c_ends_the_imports_at_once(broken: Ground) -> None:
    """The children are in sessions of their own, where the terminal's signal does not come."""
    started = time.monotonic()
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        broken.verify(made.hangs())
    assert time.monotonic() - started < 20
