"""What people read of a machine, a plan and a remedy is said once, before it is drawn."""

from assistant.catalog import load_catalog
from assistant.i18n import render, use_language
from assistant.model.finding import Launch, Remedy
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan
from assistant.model.report import Check, Report, Status, check_title
from assistant.model.shell import Shell
from assistant.plan import make_plans
from assistant.views import (
    Line,
    check_rows,
    fold_packages,
    gpu_line,
    plan_rows,
    plan_summary,
    remedy_blocks,
    remedy_lines,
)


def test_a_gpu_without_a_name_is_told_by_maker_and_pci_id():
    """It is named once, and what decides over it stands behind."""
    assert gpu_line(Gpu(vendor=Vendor.AMD, pci_id="1002:73df", gfx="gfx1031")) == "amd 1002:73df (gfx1031)"
    assert gpu_line(Gpu(vendor=Vendor.INTEL, name="Arc A770", pci_id="8086:56a0")) == "Arc A770 (8086:56a0)"
    assert gpu_line(Gpu()) == "unknown"


def test_a_plan_is_told_in_the_language_in_force_when_it_is_drawn():
    """The rows are made once; written in Chinese, none of their sentences is English."""
    machine = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12.4")
    plan = make_plans(machine, load_catalog()).choice
    assert plan
    rows, summary = plan_rows(plan, 80.0), plan_summary(plan)
    assert "GB needed, 80 GB free" in {render(label): render(value) for label, value in rows}["Disk"]
    use_language("zh_CN")
    try:
        assert render(rows[0][0]) == "后端"
        assert "PyTorch" in render(summary)
    finally:
        use_language("en")


def test_a_backend_is_spelled_as_its_maker_spells_it():
    """In one place for everybody."""
    assert [backend.title for backend in Backend] == ["CUDA", "ROCm", "XPU", "MPS", "DirectML", "CPU"]


def test_a_remedy_is_told_line_by_line():
    """What to set comes before what to type, and how to tell that it worked comes last."""
    launch = Launch(app="app", file="start.bat", drop=("--old",), add=("--new", "x"))
    remedy = Remedy(text="…", commands=("pip check",), env={"A": "1"}, check=("true",), launch=(launch,))
    assert list(remedy_lines(remedy, Shell.SH)) == [
        Line("set", "export A=1"),
        Line("command", "pip check"),
        Line("place", "app, start.bat"),
        Line("change", "- --old"),
        Line("change", "+ --new x"),
        Line("check", "true"),
    ]
    assert list(remedy_lines(Remedy(text="…", env={"A": "1"}), Shell.WINDOWS)) == [
        Line("place", "cmd"),
        Line("set", 'set "A=1"'),
        Line("place", "PowerShell"),
        Line("set", "$env:A = '1'"),
    ]


def test_what_is_typed_together_is_a_block():
    """Whatever cannot be typed stands before it: the place, and what a plan or a check is for."""
    plan = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.12")
    remedy = Remedy(text="…", commands=("pip check",), env={"A": "1"}, check=("true",), plan=plan)
    assert [(kind, render(lead), lines) for kind, lead, lines in remedy_blocks(remedy, Shell.SH)] == [
        ("command", "", ("export A=1", "pip check")),
        ("plan", "Or in a new environment:", ("assistant setup --backend cpu --python 3.12",)),
        ("check", "It worked if this runs without an error:", ("true",)),
    ]
    assert [*remedy_blocks(Remedy(text="…", env={"A": "1"}), Shell.WINDOWS)] == [
        ("command", "cmd:", ('set "A=1"',)),
        ("command", "PowerShell:", ("$env:A = '1'",)),
    ]


def test_of_many_packages_those_that_fail_come_first_and_the_others_share_a_row():
    """A few keep their own rows; what has a remark keeps one, too."""
    few = [Check(key=f"package.p{number}", status=Status.PASSED, seconds=0.5) for number in range(3)]
    matmul = Check(key="matmul", status=Status.PASSED)
    assert fold_packages(Report(device="cpu", checks=(matmul, *few))).checks == (matmul, *few)
    many = [Check(key=f"package.m{number}", status=Status.PASSED, seconds=0.5) for number in range(50)]
    none = Check(key="package.none", status=Status.SKIPPED, detail="nothing")
    bad = Check(key="package.bad", status=Status.FAILED, detail="why")
    seen = fold_packages(Report(device="cpu", checks=(matmul, *few, none, *many, bad)))
    rows = check_rows(seen)
    called = Check(key="recipe.whisperx", status=Status.PASSED)
    assert called in fold_packages(Report(device="cpu", checks=(*many, called))).checks
    assert [render(row.title) for row in rows] == [
        render(check_title("matmul")),
        "bad: import",
        "none: import",
        "53 packages: import",
    ]
    assert (render(rows[-1].result), rows[-1].later) == ("passed", "26.5 s")
    assert render(rows[-1].detail).startswith("p0, p1, p2, m0, ")
