"""What holds for every recorded machine: its file, its replay, its plans, and what is said of it.

Each machine is detected, planned for and judged once, and all laws are checked on that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from machines.replays import faults
from packaging.requirements import Requirement
from recorded import Recorded, recorded

from assistant.catalog import load_catalog
from assistant.catalog.catalog import bundles
from assistant.detect import detect
from assistant.export import Config
from assistant.host.base import ReplayHost
from assistant.i18n import Message, render, use_language
from assistant.machines import load, shipped
from assistant.model.finding import Severity
from assistant.model.plan import Request
from assistant.model.record import render_messages, replace, to_json
from assistant.model.report import Environment, Report
from assistant.plan import make_plans, without_unused_facts
from assistant.session.apply import choose_approach
from assistant.session.environments import CAUSES_OF_DRIVER, examine
from assistant.views import machine_rows

CATALOG = load_catalog()


def the_file_is_whole(of: Recorded) -> None:
    """Say where it is from, hold nothing private, and replay to what its `expect` says."""
    assert list(faults(load(of.name), of.name)) == []


def a_replay_is_always_the_same(of: Recorded) -> None:
    """Replaying again gives the same text."""
    assert to_json(detect(ReplayHost(load(of.name))).machine) == to_json(of.machine)


def nothing_is_said_twice(of: Recorded) -> None:
    """No fault and no sentence comes twice."""
    keys = Counter(finding.key for finding in of.findings if finding.wrong)
    texts = Counter(render(finding.text) for finding in of.findings)
    assert [said for said, count in (keys + texts).items() if count > 1] == []


def what_is_advised_changes_the_plan(of: Recorded) -> None:
    """Where the doctor speaks of the driver's age, a newer driver leads to another build or release."""
    if "nvidia-driver-too-old" in {finding.key for finding in of.findings if finding.severity is not Severity.OK}:
        gpus = tuple(replace(gpu, driver=None) for gpu in of.machine.gpus)
        unknown = {"cuda_driver_api": None, "nvidia_smi_output": None}
        newest = make_plans(replace(of.machine, nvidia_driver="999.0", gpus=gpus, **unknown), CATALOG).choice
        assert (newest.variant, newest.torch) != (of.planning.choice.variant, of.planning.choice.torch)


def the_doctor_and_the_planner_agree(of: Recorded) -> None:
    """Name what keeps the best backend away in the plan, by the same key, in the doctor's findings, too."""
    choice, said = of.planning.choice, {finding.key for finding in of.findings}
    against = [row for row in of.planning.rejected if row.key.startswith("nvidia-") or row.key == "devices-hidden"]
    if CAUSES_OF_DRIVER & said:
        against = [row for row in against if not row.key.startswith("nvidia-")]
    if choice is None:
        against += of.planning.rejected[:1]
    order = [*type(choice.backend)] if choice else []
    for row in against:
        if choice is None or order.index(row.backend) <= order.index(choice.backend):
            assert row.key in said


def only_facts_that_make_its_kind_decide(of: Recorded) -> None:
    """Its plans are those of all machines of its kind."""
    other = {"memory_gb": 1.5, "disk_free_gb": 0.5, "packages": {"torch": "1.0"}, "evidence": ()}
    assert without_unused_facts(of.machine) == without_unused_facts(replace(of.machine, **other))
    assert of.planning == make_plans(without_unused_facts(of.machine), CATALOG)


def it_gets_every_bundle(of: Recorded) -> None:
    """Have a plan with the packages of each bundle, or the sentence that says which are lacking."""
    for bundle in bundles()[1:]:
        plan = make_plans(of.machine, CATALOG, Request(bundle=bundle.key)).choice
        if plan:
            names = {Requirement(line).name for line in plan.requirements}
            said = " ".join(map(str, (*plan.reasons, *plan.warnings)))
            assert bool({*bundle.requirements} - names) == ("comes without" in said), bundle.key


def its_configuration_is_applied_to_the_letter(of: Recorded) -> None:
    """On the same machine, what was exported is what is planned."""
    if plan := of.planning.choice:
        made = Environment(path="env", python="bin/python")
        exported = Config(plan=plan, environment=made, verification=Report(device="cpu"), machine=of.machine)
        way = choose_approach(exported, of.machine, CATALOG)
        assert (way.plan.variant, way.plan.torch, way.differs) == (plan.variant, plan.torch, ())


def its_rows_are_whole(of: Recorded) -> None:
    """Each has a label, still to be written, and a value; every GPU has a row."""
    rows = machine_rows(of.machine)
    assert all(isinstance(label, Message) and value for label, value in rows)
    assert sum(label == Message("GPU") for label, _value in rows) == max(len(of.machine.gpus), 1)
    assert not any(label == Message("GPU") for label, _value in machine_rows(of.machine, hide={"gpu"}))


def languages_differ_in_texts_alone(of: Recorded) -> None:
    """Keys and values are the same when all is done in Chinese; a sentence is never one."""
    english = _without_text(render_messages((of.detection, of.planning, of.findings)))
    use_language("zh_CN")
    try:
        found = detect(ReplayHost(load(of.name)))
        all_again = (found, make_plans(found.machine, CATALOG), examine(ReplayHost(load(of.name))))
        assert _without_text(render_messages(all_again)) == english
    finally:
        use_language("en")


def _without_text(plain: object) -> object:
    """Leave out what a language writes: it stands under these names, beside `key` and `params`."""
    if isinstance(plain, dict):
        written = {"text", "why", "would_help", "title", "cause"} if "params" in plain else set()
        return {name: _without_text(value) for name, value in plain.items() if name not in written}
    return list(map(_without_text, plain)) if isinstance(plain, list) else plain


LAWS = (
    the_file_is_whole,
    a_replay_is_always_the_same,
    nothing_is_said_twice,
    what_is_advised_changes_the_plan,
    the_doctor_and_the_planner_agree,
    only_facts_that_make_its_kind_decide,
    it_gets_every_bundle,
    its_configuration_is_applied_to_the_letter,
    its_rows_are_whole,
    languages_differ_in_texts_alone,
)


def broken(name: str) -> Iterator[str]:
    """Name the laws that a machine breaks, with what differs."""
    for law in LAWS:
        try:
            law(recorded(name))
        except AssertionError as failure:
            yield f"{name}: {law.__doc__}\n{failure}"


def test_every_law_holds_for_every_recorded_machine():
    """All laws, on each machine once; whatever breaks one is named."""
    found = [line for name in shipped() for line in broken(name)]
    if found:
        pytest.fail("\n\n".join(found), pytrace=False)
