"""Measures what each test file costs in seconds of processor time, with all processes that it starts.

Every run ends with the ten dearest files and the sum. What a fixture of the whole session starts, such as a server or a
browser, is a line of its own: it is not the doing of the file that happens to ask for it first. The figures of a whole
run are left in pytest's cache, where `python3 start.py lint` holds them to their limits; a test run itself fails by no
clock.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator

import psutil
import pytest

CACHE_KEY = "cpu_seconds/whole_run"
SHOWN = 10  # files
PROPERTY = "cpu_seconds"


def cpu_seconds(*, with_children: bool) -> float:
    """Return the processor seconds of this process so far, with those of its descendants, both ended and alive.

    Looking for the living takes a millisecond or more, so a test that starts no process is measured without any: if
    only the ended were counted, the one after which a server ends would be charged for the server's whole life.
    """
    if not with_children:
        return sum(os.times()[:2])
    return sum(os.times()[:4]) + sum(map(_seconds_of, psutil.Process().children(recursive=True)))


def _seconds_of(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        return float(sum(process.cpu_times()[:4]))
    return 0.0


class CpuSeconds:
    """The plugin: workers measure, and the process that reports adds up by file."""

    def __init__(self, config: pytest.Config, starts_processes: Callable[[pytest.Item], bool], *, whole: bool) -> None:
        self._config = config
        self._starts_processes = starts_processes
        self._whole = whole
        self._by_file: Counter[str] = Counter()
        self._spent: Counter[str] = Counter()
        self._before = 0.0
        self._with_children = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[object]:
        """Measure a test from the first of its fixtures to the last that ends with it."""
        self._with_children = self._starts_processes(item)
        self._before = cpu_seconds(with_children=self._with_children)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[object]:
        """Take what a fixture for all tests costs from the test; what it is made of is there by now."""
        if fixturedef.scope != "session":
            return (yield)
        before = cpu_seconds(with_children=self._with_children)
        value = yield
        spent = max(0.0, cpu_seconds(with_children=self._with_children) - before)
        self._before += spent
        self._spent[f"the fixture {fixturedef.argname}"] += spent
        return value

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
        """Put the figures on the last report of a test, which travels from a worker to the reporting process."""
        report = yield
        if call.when == "teardown":
            spent = cpu_seconds(with_children=self._with_children) - self._before
            self._spent[report.nodeid.partition("::")[0]] += max(0.0, spent)
            report.user_properties.append((PROPERTY, dict(self._spent)))
            self._spent.clear()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the figures to those of its file and of the fixtures."""
        if report.when == "teardown":
            self._by_file.update(dict(report.user_properties).get(PROPERTY, {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the dearest files and the sum."""
        if not self._by_file:
            return
        terminalreporter.section("processor time, with all processes started")
        for file, seconds in self._by_file.most_common(SHOWN):
            terminalreporter.write_line(f"{seconds:7.1f} s  {file}")
        terminalreporter.write_line(f"{sum(self._by_file.values()):7.1f} s  in all {len(self._by_file)} lines")
        if self._whole and self._config.cache:
            self._config.cache.set(CACHE_KEY, dict(self._by_file))
