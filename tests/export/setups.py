"""One finished setup, made by hand, that the export tests share."""

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.export import Setup, export
from assistant.host.base import ReplayHost
from assistant.machines import load
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Detection, Evidence, Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan
from assistant.model.report import Check, Environment, Report, Status
from assistant.plan import make_plans

LOCK = '# by uv: uv pip compile /tmp/x\nlock-version = "1.0"\ncreated-by = "uv"\n\npackages = []\n'

GPU = Gpu(
    vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4090", pci_id="10de:2684", vram_gb=24, compute_capability="8.9"
)
DETECTION = Detection(
    machine=Machine(
        os="linux",
        os_version="Ubuntu 24.04",
        arch="x86_64",
        memory_gb=31.5,
        python="3.12.4",
        gpus=(GPU,),
        nvidia_driver="580.95.05",
        env={"CUDA_VISIBLE_DEVICES": "0"},
        evidence=(Evidence(fact="gpus", source="nvidia-smi", text="GPU 0"),),
    ),
    findings=(Finding(key="driver.old", severity=Severity.INFO, text="The driver is a year old."),),
)
PLAN = Plan(
    backend=Backend.CUDA,
    variant="cu126",
    torch="2.6.0",
    python="3.12",
    index_url="https://download.pytorch.org/whl/cu126",
    requirements=("torch==2.6.0", "numpy"),
    env={"CUDA_MODULE_LOADING": "LAZY"},
    download_mb=2500,
    reasons=("The driver offers CUDA 13.0.",),
    warnings=("Close other programs first.",),
)
ENVIRONMENT = Environment(
    path="/home/jane/torch env",
    python="/home/jane/torch env/bin/python",
    kernel="torch-cu126",
    packages={"torch": "2.6.0+cu126", "triton": "3.2.0", "numpy": "2.1.0", "pip": "25.0", "torchmetrics": "1.6.0"},
)
REPORT = Report(
    device="cuda",
    checks=(
        Check(key="import", status=Status.PASSED, seconds=1.5, first_seconds=1.5),
        Check(
            key="matmul",
            status=Status.PASSED,
            seconds=2e-5,
            first_seconds=0.25,
            error=3.1e-7,
            tolerance=1e-4,
            detail="",
        ),
        Check(key="onnxruntime", status=Status.SKIPPED, detail="onnxruntime is not installed in this environment"),
    ),
    facts={"python": "3.12.4", "torch": "2.6.0+cu126"},
    seconds=2.25,
)
SETUP = Setup(machine=DETECTION.machine, findings=DETECTION.findings, plan=PLAN, environment=ENVIRONMENT, report=REPORT)

# One recorded machine per backend and system.
BOARDS = (
    "linux-ubuntu2404-rtx4090",
    "windows11-rtx3060",
    "wsl-ubuntu2404-rtx4090",
    "linux-arch-rx9070xt",
    "windows11-rx7800xt",
    "wsl-ubuntu2404-rx7900xtx",
    "linux-ubuntu2510-arc-b580",
    "windows11-arc-b580",
    "windows10-rx580",
    "macos15-m3max",
    "linux-debian12-cpu-container",
    "windows11-arm-snapdragon",
)


def exported(name, folder, **options):
    """Export what a recorded machine would get, installed and verified on paper; give its plan."""
    detection = detect(ReplayHost(load(name)))
    plan = make_plans(detection.machine, load_catalog()).choice
    local = {"cuda": plan.variant, "rocm": "rocm7.2", "xpu": "xpu", "cpu": "cpu"}.get(plan.backend.value)
    torch = f"{plan.torch}+{local}" if local and plan.index_url else plan.torch
    packages = {"torch": torch, "numpy": "2.1.0", "pip": "25.0", "onnxruntime": "1.23.0"}
    packages |= {"torch-directml": "0.2.5.dev240914"} if plan.backend is Backend.DIRECTML else {}
    windows = detection.machine.os == "windows"
    python = "C:\\Users\\jane\\env\\Scripts\\python.exe" if windows else "/home/jane/env/bin/python"
    environment = Environment(path=python.rsplit("\\" if windows else "/", 2)[0], python=python, packages=packages)
    report = Report(
        device=plan.backend.value, checks=REPORT.checks, facts={"python": f"{plan.python}.1", "torch": torch}
    )
    setup = Setup(
        machine=detection.machine,
        findings=detection.findings,
        plan=plan,
        environment=environment,
        report=report,
        lock=LOCK,
    )
    export(setup, folder, **options)
    return plan
