"""Plans fitted to what the package sources hold."""

from __future__ import annotations

from assistant.model.plan import Backend, Plan, Planning, Wheel
from assistant.plan.settle import Look, brings_cuda, settle

INDEX = "https://index.test/cpu"
CPU = Plan(
    backend=Backend.CPU,
    variant="cpu",
    torch="2.15.0",
    python="3.12",
    index_url=INDEX,
    requirements=("torch==2.15.0", "numpy"),
)
CUDA = Plan(backend=Backend.CUDA, variant="cu130", torch="2.15.0", python="3.12", index_url="https://index.test/cu130")
NOTHING = Look()
DOWN = Look(reason="connection refused")


def wheel(version: str, where: str = "configured", size: int | None = None) -> Wheel:
    """Give a torch wheel of a version."""
    name = f"torch-{version}-cp312-cp312-manylinux_2_28_x86_64.whl"
    return Wheel(filename=name, url=f"https://x.test/{name}", where=where, size=size)


def settled(plan: Plan, official: Look, configured: Look = NOTHING) -> tuple[Plan, ...]:
    """Settle one plan."""
    planning = Planning(choice=plan, plans=(plan,))
    return settle(planning, {plan.index_url or "": official}, configured).plans


def test_a_wheel_that_is_there_confirms_the_plan() -> None:
    """The plan keeps its index and learns the wheel's size."""
    (plan,) = settled(CPU, Look(wheels=(wheel("2.15.0+cpu", "official", 190_000_000),)))
    assert plan.wheel is not None
    assert (plan.index_url, plan.download_mb, plan.warnings) == (INDEX, 190, ())


def test_an_index_with_an_older_torch_gives_that() -> None:
    """Only an older torch there: the plan says so and takes it from the same index."""
    (plan,) = settled(CPU, Look(wheels=(wheel("2.13.0+cpu", "official"), wheel("2.12.0+cpu", "official"))))
    assert plan.torch == "2.13.0"
    assert plan.index_url == INDEX
    assert plan.requirements == ("torch==2.13.0+cpu", "numpy")
    assert "2.15.0" in plan.reasons[-1]


def test_when_the_index_is_down_pips_own_sources_serve() -> None:
    """The newest CPU wheel of the configured sources is taken, and torch's index no more."""
    (plan,) = settled(CPU, DOWN, Look(wheels=(wheel("2.12.0+cpu"), wheel("2.13.0+cpu"), wheel("2.14.0.dev1+cpu"))))
    assert plan.requirements[0] == "torch==2.13.0+cpu"
    assert plan.index_url is None
    assert "2.13.0" in plan.reasons[-1]


def test_a_wheel_without_a_local_tag_is_not_taken_for_a_cpu_build() -> None:
    """On Linux such a wheel carries CUDA: it is offered last, with a warning, and never chosen."""
    plans = settled(CPU, DOWN, Look(wheels=(wheel("2.15.0"),)))
    assert plans[0].wheel is None
    assert "connection refused" in plans[0].warnings[-1]
    assert [brings_cuda(plan) for plan in plans] == [False, True]
    assert "several GB" in plans[1].warnings[0]


def test_another_variant_never_stands_in() -> None:
    """A CUDA plan is not settled with a CPU wheel, nor with another CUDA."""
    (plan,) = settled(CUDA, DOWN, Look(wheels=(wheel("2.15.0+cpu"), wheel("2.15.0+cu126"))))
    assert plan.wheel is None
    assert plan.index_url == CUDA.index_url
    assert plan.warnings


def test_a_plan_from_the_default_index_needs_no_look() -> None:
    """MacOS and Windows take pip's default index, which uv asks when it resolves."""
    plan = Plan(backend=Backend.MPS, variant="pypi", torch="2.15.0", python="3.12")
    assert settled(plan, Look()) == (plan,)
