"""What plans become when the package sources are asked: a real index over HTTP, real folders, pip's own settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from catalogs import catalog_as_of
from loopback import LoopbackIndex

from assistant.host.recording import ReplayHost
from assistant.install import Sources
from assistant.model.machine import Answer, Exchange, Gpu, Machine, Recording, Vendor
from assistant.model.plan import Backend, Plan, Planning, Request
from assistant.plan import make_plans
from assistant.plan.availability import PlanInputs
from assistant.session.planning import Looks, fitted, sized

NOWHERE = "http://127.0.0.1:9/simple"
LINUX = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12")
CARD = Gpu(vendor=Vendor.NVIDIA, name="GeForce RTX 3090", compute_capability="8.6", pci_id="10de:2204")
TAG = "cp312-cp312-manylinux_2_28_x86_64"


def host_with(*pip_settings: str, **variables: str) -> ReplayHost:
    """Give a machine whose pip tells these settings, and otherwise knows of no index (never the real PyPI)."""
    lines = pip_settings or ("global.no-index='true'",)
    config = Exchange(ask=("run", "python3", "-m", "pip", "config", "list"), answer=Answer(text="\n".join(lines)))
    said = (Exchange(ask=("variable", name), answer=Answer(text=value)) for name, value in variables.items())
    return ReplayHost(Recording(said=(config, *said)))


def planned(sources: Sources, machine: Machine = LINUX, *, python: str | None = None) -> Planning:
    """Plan for a machine and ask the sources."""
    case = PlanInputs(machine, catalog_as_of("2.15.0"), Request(python=python))
    return sized(fitted(make_plans(*case), case, Looks(case.machine, sources)), case, sources)


@pytest.fixture
def given(loopback_index: LoopbackIndex) -> Callable[..., Sources]:
    """Give a function that makes sources whose only index is the loopback index, named by --index-url."""
    return lambda **options: Sources(host_with(), index_url=loopback_index.url, **options)


@pytest.mark.parametrize("speaks_json", [False, True], ids=["PEP 503", "PEP 691"])
def test_a_wheel_that_is_there_is_confirmed(loopback_index, given, speaks_json):
    """The plan takes the index, names the wheel, and knows its true size."""
    loopback_index.speaks_json = speaks_json
    wheel = loopback_index.add("torch", "2.15.0+cpu", TAG)
    plan = planned(given()).choice
    assert plan.wheel.filename == wheel.name
    assert plan.wheel.size == wheel.stat().st_size
    assert (plan.index_url, plan.requirements[0]) == (loopback_index.url, "torch==2.15.0+cpu")
    assert plan.download_mb == 80  # what comes beside a wheel of no size
    assert plan.warnings == ()


def test_a_wheel_that_is_missing_is_told_and_nothing_stands_in(loopback_index, given):
    """A card's build that the index lacks is rejected with a reason, which the CPU plan repeats."""
    loopback_index.add("torch", "2.15.0+cpu", TAG)
    loopback_index.add("torch", "2.15.0+cu132", "cp313-cp313-manylinux_2_28_x86_64")  # for another Python
    machine = Machine(
        os="linux",
        arch="x86_64",
        glibc="2.39",
        python="3.12",
        gpus=(CARD,),
        nvidia_driver="595.60",
        cuda_driver_api="13.2",
    )
    planning = planned(given(), machine)
    assert planning.rejected[0].backend is Backend.CUDA
    assert loopback_index.url in str(planning.rejected[0].why)
    assert planning.choice.backend is Backend.CPU
    assert planning.rejected[0].why in planning.choice.warnings


def test_an_index_without_torch_offers_no_confirmed_plan(loopback_index, given):
    """Looked through and nothing there is told so, not taken for confirmed."""
    plan = planned(given()).choice
    assert plan.wheel is None
    assert tuple(map(str, plan.warnings)) == (
        f"{loopback_index.url} holds no cpu build of torch that fits Python 3.12 on this machine.",
    )


def test_an_index_that_is_down_is_not_checked():
    """The plan stays, and says which index could not be asked, and why."""
    plan = planned(Sources(host_with(), index_url=NOWHERE)).choice
    assert plan.wheel is None
    assert tuple(map(str, plan.warnings)) == (f"Not checked: {NOWHERE} cannot be reached (Connection refused).",)


@pytest.mark.parametrize(("trouble", "reason"), [(500, "HTTP 500"), (403, "HTTP 403"), ("page", "not a package index")])
def test_an_index_that_answers_nonsense_is_not_checked(loopback_index, given, trouble, reason):
    """An error page or a welcome page is no empty index."""
    loopback_index.trouble["torch"] = trouble
    assert reason in str(planned(given()).choice.warnings[0])


def test_a_slow_index_costs_its_time_limit_once(loopback_index, given, monkeypatch):
    """An index that does not answer in time is told as not checked, within the limit."""
    loopback_index.trouble["torch"] = "stall"
    monkeypatch.setattr("assistant.install.sources.LOOK_SECONDS", 0.5)
    began = time.monotonic()
    plan = planned(given()).choice
    assert time.monotonic() - began < 3
    assert "did not answer within 0.5 s" in str(plan.warnings[0])


@pytest.mark.parametrize("speaks_json", [False, True], ids=["PEP 503", "PEP 691"])
def test_a_mirror_that_leaks_upstream_is_told(loopback_index, given, speaks_json):
    """Pages with absolute addresses lead past the mirror: the warning names the server that they lead to."""
    loopback_index.add("torch", "2.15.0+cpu", TAG)
    loopback_index.speaks_json = speaks_json
    loopback_index.upstream = loopback_index.url.replace("127.0.0.1", "localhost")
    plan = planned(given()).choice
    assert plan.wheel is not None
    assert "//localhost:" in str(plan.warnings[0])
    assert loopback_index.url in str(plan.warnings[0])
    loopback_index.upstream = loopback_index.url  # absolute, and still the mirror's own
    assert planned(given()).choice.warnings == ()


def test_only_an_older_torch_there_is_taken_and_said(loopback_index, given):
    """The plan is that version's own, companions and reasons included; what cannot be read is passed over."""
    for version in ("2.2.2+cpu", "2.1.0+cpu", "9.9.9.dev1+cpu"):
        loopback_index.add("torch", version, TAG)
    plan = planned(given()).choice
    assert (plan.torch, plan.requirements[:2]) == ("2.2.2", ("torch==2.2.2+cpu", "numpy<2"))
    assert "does not hold torch 2.15.0" in str(plan.reasons[-1])
    assert not any("2.15.0" in str(reason) for reason in plan.reasons[:-1])


def test_pips_own_indexes_are_asked(loopback_index):
    """Where torch's index does not answer, an index of pip's configuration serves, by its exact build."""
    loopback_index.add("torch", "2.14.1+cpu", TAG)
    loopback_index.add("torch", "2.15.0", TAG)  # the build with CUDA
    sources = Sources(host_with(f"global.index-url='{loopback_index.url}'"), index_url=NOWHERE)
    plan = planned(sources).choice
    assert (plan.requirements[0], plan.index_url) == ("torch==2.14.1+cpu", None)
    assert NOWHERE in str(plan.reasons[-1])


def test_offline_a_folder_serves(loopback_index, tmp_path):
    """With --offline nothing but folders is asked, and what is there is confirmed by its path."""
    wheel = loopback_index.add("torch", "2.15.0+cpu", TAG)
    asked = Sources(host_with(f"global.index-url='{loopback_index.url}'"), find_links=[str(wheel.parent)], offline=True)
    loopback_index.trouble["torch"] = "stall"
    began = time.monotonic()
    plan = planned(asked).choice
    assert time.monotonic() - began < 3
    assert str(plan.reasons[1]) == f"Confirmed: {wheel.name} is at {wheel.parent}."
    empty = Sources(host_with(f"global.index-url='{loopback_index.url}'"), find_links=[str(tmp_path)], offline=True)
    assert "offline" in str(planned(empty).choice.warnings[0])


def test_a_folder_that_is_not_there_is_named():
    """A wrong --find-links is said, not taken for an empty one."""
    plan = planned(Sources(host_with(), find_links=["/no/such/folder"], offline=True)).choice
    assert plan.wheel is None
    assert plan.warnings


def test_each_python_is_looked_up_for_itself(loopback_index, given):
    """A plan for another Python is confirmed by that Python's wheel only."""
    loopback_index.add("torch", "2.15.0+cpu", TAG)
    assert planned(given(), python="3.13").choice.wheel is None
    assert planned(given(), python="3.12").choice.wheel is not None


def test_all_wheels_of_a_project_can_be_listed(loopback_index, given):
    """Whatever they run on."""
    for tag in (TAG, "cp311-cp311-win_amd64", "cp313-cp313t-macosx_14_0_arm64"):
        loopback_index.add("torch", "2.15.0", tag)
    found = Sources(host_with(f"global.index-url='{loopback_index.url}'")).listing("torch")
    assert len(found.wheels) == 3
    assert Path(found.wheels[0].filename).suffix == ".whl"
    assert given().listing("torch").asked == ()


COMPANY = "https://company.example/simple"
SECRET = COMPANY.replace("//", "//me:secret@")


def project_plan(*indexes: str) -> Plan:
    """Give a plan whose project names these indexes."""
    return Plan(backend=Backend.CPU, variant="cpu", torch="2.15.0", python="3.12", indexes=indexes)


def test_a_projects_index_that_the_settings_name_is_asked_once_with_its_password():
    """It is the user's own; a second one without the password would only refuse to answer."""
    sources = Sources(host_with(f"global.extra-index-url='{SECRET}'"))
    plan = project_plan(f"{COMPANY}/", "https://download.pytorch.org/whl/cu126", "https://other.example/simple")
    assert sources.consulted(plan) == (SECRET, "https://other.example/simple", "")
    variables = sources.environment_for(plan)
    assert variables["UV_INDEX"] == f"{SECRET} https://other.example/simple"
    assert set(sources.trusted) == {COMPANY}


def test_indexes_of_uvs_settings_are_the_users_own_as_well():
    """Who configured uv and not pip has named them."""
    sources = Sources(host_with("", UV_INDEX=f"company={SECRET}"))
    assert set(sources.trusted) == {COMPANY}


def test_a_projects_index_does_not_change_how_the_user_lets_uv_choose():
    """The first index that has a name is the only one asked for it; the user alone may set something else."""
    assert "UV_INDEX_STRATEGY" not in Sources(host_with("")).environment_for(project_plan(COMPANY))
