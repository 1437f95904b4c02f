"""What plans say for and against themselves, by the keys under which `--json` tells it."""

from __future__ import annotations

from assistant.i18n import Message, _

SENTENCES = {
    "system-assumed": _("The operating system is not given; {os} was assumed."),
    "python-assumed": _("The Python version is not given; {python} was assumed."),
    "processor-assumed": _("The processor is not given; {arch} was assumed."),
    "python-under-rosetta": _(
        "This Python is an Intel build that runs under Rosetta; a native arm64 Python gets newer torch and MPS."
    ),
    "cuda-build-has-code": _("{variant} of torch {version} holds code for {names} (compute capability {code})."),
    "cuda-build-has-code-assumed": _(
        "{variant} of torch {version} is assumed to hold code for {names} (compute capability {code}), as the build "
        "before it does."
    ),
    "cuda-build-has-ptx": _(
        "{variant} of torch {version} holds PTX, which the driver compiles for {names} (compute capability {code})."
    ),
    "nvidia-driver-suffices": _("Driver {driver} meets the required {floor}."),
    "pypi-has-build": _("PyPI's own wheel of torch {version} is this very build: every mirror of PyPI has it, too."),
    "card-unused": _("This build has no code for {name}, which stays unused."),
    "capability-assumed": _("{name} is in no table; its compute capability is assumed to be {code}, from its name."),
    "card-assumed-current": _("{name} is in no table; it is assumed to be a current card."),
    "nvidia-driver-unknown": _("The driver version is not known; this build needs {floor} or newer."),
    "nvidia-driver-branch-last": _("Driver branches after {branch} no longer list this card; keep {branch}."),
    "build-not-seen": _("This build has not been seen in any index; check before you rely on it."),
    "rocm-build-has-code": _("{variant} of torch {version} holds code for {names} ({targets})."),
    "rocm-build-has-code-assumed": _(
        "{variant} of torch {version} is assumed to hold code for {names} ({targets}), as the build before it does."
    ),
    "rocm-support-ended": _(
        "ROCm has no kernels for {name} ({gfx}) since {rocm}; torch {version} is the last release with them."
    ),
    "rocm-no-newer-build": _("No newer build is known to hold code for {name} ({gfx}) than that of torch {version}."),
    "rocm-sister-code": _("{variant} lacks {targets}; with {name}={value} these cards run the code of {twin}."),
    "rocm-in-wsl": _("In WSL, ROCm goes over /dev/dxg: install AMD's WSL runtime (librocdxg) and a current driver."),
    "hsa-override-misleads": _("{name}={value} is set here and would mislead this build; remove it."),
    "hide-integrated-gpu": _(
        "Hide the integrated GPU with HIP_VISIBLE_DEVICES where a program picks it instead of the discrete card."
    ),
    "amd-nightly-index-alone": _("AMD's nightly index alone holds newer builds for {name} ({gfx}); nobody tests them."),
    "amd-nightly-index-has-code": _(
        "You asked for a nightly build: AMD's nightly index holds torch with code for {names} ({targets})."
    ),
    "amd-index-has-code": _("AMD's own index for ROCm {rocm} holds torch {version} with code for {names} ({targets})."),
    "nightly-untested": _("A nightly build is made each night and barely tested; use it only for what no release has."),
    "amd-does-not-test-card": _("AMD publishes builds for {name} ({gfx}) but does not test on it."),
    "adrenalin-advised": _("AMD advises Adrenalin {driver} or newer for these wheels."),
    "xpu-drives-card": _("{name} is on the list of GPUs that the XPU build of torch {version} drives."),
    "xpu-card-not-listed": _("Intel does not list {name}; its architecture is listed."),
    "xpu-windows-not-documented": _("Intel documents {windows} for current XPU builds."),
    "intel-driver-newest": _("It needs Intel's newest graphics driver; nothing of oneAPI has to be installed."),
    "directml-drives-card": _("{name} supports DirectX 12, which torch-directml {version} uses."),
    "directml-frozen": _("torch-directml is the last resort: it is no longer developed and stays at torch {torch}."),
    "directml-in-wsl": _("In WSL, /usr/lib/wsl/lib must be on the loader's path; native Linux has no DirectML."),
    "mps-in-wheel": _("The macOS wheel of torch {version} contains MPS, which works from macOS {least} on."),
    "newer-macos": _("Newer macOS versions can use newer releases with MPS; the newest needs macOS {macos}."),
    "cpu-build-runs": _("The CPU build of torch {version} runs on any processor of this kind."),
    "newer-torch-not-for-system": _("torch {version} is newer, but no {backend} build of it is known for this system."),
    "newer-torch-not-for-python": _("torch {version} is newer, but has no {backend} build for Python {python}."),
    "newer-torch-needs-newer-system": _("torch {version} is newer, but its {backend} build needs a newer system."),
    "newer-torch-not-seen": _("torch {version} is newer, but no index has been seen to hold its {backend} build."),
    "container-without-gpu": _("The NVIDIA driver is available but no GPU is: start the container with --gpus all."),
    "nvidia-driver-without-gpu": _("The NVIDIA driver is installed, but no GPU was found."),
    "python-allowed": _("What you ask for needs Python {pythons}, so the plan takes Python {python} instead of {own}."),
    "python-installs": _("What you ask for cannot all be installed for Python {own}; for Python {python} it can."),
    "nightly-asked-for": _("You asked for a nightly build: it continues from torch {version}."),
    "nightly-without-companions": _("Without {packages}: their nightly builds fit only the torch of the same night."),
    "bundle-incomplete": _(
        "“{bundle}” comes without {packages}: no build is known for torch {torch} and Python {python} on this system."
    ),
    "ort-plugin-registers": _(
        "A program registers {package} with ONNX Runtime (register_execution_provider_library) before it uses it."
    ),
    "ort-catalog-needs-windows": _(
        "{package} finds providers only on {windows} or newer; until then DirectML and the CPU compute."
    ),
    "ort-ended": _("{package} ended with {version}."),
    "ort-ended-for-python": _("{package} ended with {version}; {successor} takes its place, for Python {pythons}."),
    "ort-ended-on-windows": _("{package} ended with {version}; {successor} takes its place, on {windows} or newer."),
    "ort-succeeded": _("{package} ended with {version}; {successor} takes its place."),
    "current-torch-for-card": _("Instead of torch-directml, {name} can use {backend} with torch {torch}."),
    "ort-for-card": _("For ONNX models, {package} is current and computes on {name}."),
    "ort-plugin-for-card": _("For ONNX models, the plug-in {package} computes on {name}, too."),
    "ort-plugin-for-npu": _("torch computes on the CPU here; {package} can use the Snapdragon's NPU for ONNX models."),
    "first-has-current-torch": _("{first} goes before {second}, for which only the old torch of DirectML is released."),
    "first-has-known-speed": _("{first} goes before {second}, whose speed is not in the tables."),
    "first-is-faster": _("{first} goes before {second}: {ours} TFLOPS in half precision against {theirs}."),
    "first-is-discrete": _("{first} goes before {second}, which shares memory and power with the processor."),
    "first-is-better-tested": _("{first} goes before {second}, whose build is less tested."),
    "first-has-more-memory": _("{first} goes before {second}: {ours} GB of memory against {theirs}."),
    "first-has-more-software": _("{first} goes before {second}: more software is written for {backend}."),
}


def sentence(key: str, /, **params: object) -> Message:
    """Return a sentence of a plan by its key, its placeholders filled."""
    text = SENTENCES[key]
    return Message(text.id, key=key).format(**params)
