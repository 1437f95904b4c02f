"""This machine as a host: commands, files, the registry, and its GPUs by NVIDIA's management library (NVML)."""

from __future__ import annotations

import os
import platform
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from assistant.host.base import Host
from assistant.host.files import open_regular
from assistant.host.process import child_environment
from assistant.model.machine import Answer
from assistant.privacy import PrivateNames

FILE_LIMIT = 1 << 20  # bytes, as `Host.read` promises
COMMAND_LIMIT_SECONDS = 8.0  # chosen
# Distributions that have to do with PyTorch or ONNX Runtime, by their names in lower case.
_FAMILY = (
    r"torch|torchvision|torchaudio|torchtext|torch-directml|(?:py)?torch-?\w*directml|tensorflow-directml.*|(?:pytorch-)?triton.*|"
    r"onnx|onnxruntime.*|ort-.*|numpy|intel-(?:extension-for-pytorch|sycl-rt|cmplr-lib-rt)|nvidia-.*|rocm.*|amd-torch-.*|"
    r"xformers|bitsandbytes|flash-attn|transformers|accelerate|diffusers|safetensors|jax|tensorflow"
)
# A line of a device's `uevent`: classes 03 (display) and 12 (processing accelerator), such as PCI_CLASS=30000.
_GRAPHICS = r"(?m)^PCI_CLASS=(3|12)[0-9A-F]{4}$"


class LiveHost(Host):
    """Answers questions about this machine; if that fails, the answer's status says why. Nothing is raised."""

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Return the answer by the function for this kind of question, and raise nothing.

        What it raises becomes a status: "missing" (no such file), "denied" (no permission), "timeout", else "failed",
        as an unknown kind does.
        """
        look = _LOOKS.get(kind)
        if look is None:
            return Answer(status="failed", text=f"no such question: {kind}")
        try:
            return look(*arguments)
        except FileNotFoundError:
            return Answer(status="missing")
        except PermissionError as error:
            return Answer(status="denied", text=str(error))
        except subprocess.TimeoutExpired:
            return Answer(status="timeout")
        except Exception as error:  # noqa: BLE001 - a probe that fails is an answer, never a stop
            return Answer(status="failed", text=f"{type(error).__name__}: {error}")


def _run(*argv: str) -> Answer:
    """Run a command in English without input; return its exit status and output, stderr last.

    The answer is "failed" for an exit status other than 0, and "missing" for what is not on PATH. Raises
    `TimeoutExpired` after 8 seconds, and `OSError` if it cannot be started.
    """
    executable = shutil.which(argv[0])
    if executable is None:
        return Answer(status="missing")
    done = subprocess.run(
        [executable, *argv[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=COMMAND_LIMIT_SECONDS,
        # `python -m pip` would run a `pip` that lies in the current folder (PYTHONSAFEPATH is new in Python 3.11)
        env=child_environment({"LC_ALL": "C", "LANGUAGE": "en", "PYTHONSAFEPATH": "1"}),
        start_new_session=sys.platform != "win32",  # Ctrl-C is for us: a program that it ended would seem broken
        check=False,
    )
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    return Answer(status="ok" if done.returncode == 0 else "failed", text=text, code=done.returncode)


def _read(path: str) -> Answer:
    """Return the beginning of a regular file, 1 MiB at most, as text."""
    with open_regular(Path(path), follow=True) as file:  # a pipe would keep us waiting for ever
        return Answer(text=file.read(FILE_LIMIT).decode("utf-8", "replace"))


def _folder(path: str) -> Answer:
    """Return, as JSON, the sorted names in a folder: its `folders`, and `others`, among which are all links."""
    names: dict[str, list[str]] = {"folders": [], "others": []}
    with os.scandir(path) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            names["folders" if entry.is_dir(follow_symlinks=False) else "others"].append(entry.name)
    return _json(names)


def _access(path: str) -> Answer:
    """Return "ok" if this user may read and write a path, "denied" if not, and "missing" without one."""
    if not Path(path).exists():
        return Answer(status="missing")
    return Answer() if os.access(path, os.R_OK | os.W_OK) else Answer(status="denied")


def _text_or_missing(text: str | None) -> Answer:
    """Return an answer with a text; "missing" for None."""
    return Answer(status="missing") if text is None else Answer(text=text)


def _call_windows(function: str, *arguments: str) -> Any:  # noqa: ANN401 - of as many types as functions
    """Call a function of `assistant.host.windows`; raise `FileNotFoundError` on other systems."""
    if os.name != "nt":
        raise FileNotFoundError(function)
    from assistant.host import windows  # noqa: PLC0415 - ctypes, which no other system's detection needs

    return getattr(windows, function)(*arguments)


@cache  # no process changes its interpreter
def _platform() -> Answer:
    """Return, as JSON, values of `platform` and `sys` that describe this interpreter and its system."""
    libc, libc_version = platform.libc_ver()
    return _json(
        {
            "system": platform.system(),
            "release": platform.release(),
            "version": platform.version(),
            "machine": platform.machine(),
            "libc": libc,
            "libc_version": libc_version,
            "mac_version": platform.mac_ver()[0],
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            "bits": struct.calcsize("P") * 8,
            "free_threaded": "free-threading build" in sys.version,
            "executable": sys.executable,
            "base_executable": getattr(sys, "_base_executable", sys.executable),
            "prefix": sys.prefix,
            "base_prefix": sys.base_prefix,
            "build": sys.version,
        }
    )


def _server() -> Answer:
    """Return, as JSON, `executable` and `command` of the nearest ancestor process that is Jupyter; else "missing"."""
    import psutil  # noqa: PLC0415 - 15 ms that `import assistant` need not pay

    for parent in psutil.Process().parents():
        words = parent.cmdline()
        if any("jupyter" in Path(word).name for word in words[:3]):
            return _json({"executable": words[0], "command": words})
    return Answer(status="missing")


def _memory() -> Answer:
    """Return, as JSON, the bytes of memory: `total` and `available`."""
    import psutil  # noqa: PLC0415 - 15 ms that `import assistant` need not pay

    return _json({"total": psutil.virtual_memory().total, "available": psutil.virtual_memory().available})


def _disk(path: str) -> Answer:
    """Return, as JSON, the bytes `free` and `total` on the file system of a path, or of its lowest existing parent.

    Raises `OSError` if none can be looked at, such as a drive that is not there.
    """
    folder = Path(path).expanduser()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    return _json({"free": usage.free, "total": usage.total})


def _packages() -> Answer:
    """Return, as JSON, the versions by name of this interpreter's distributions in the family of PyTorch (`_FAMILY`).

    The others are private. Names and versions are those in folder names, twenty times faster than opening each one's
    metadata; of one that occurs twice on `sys.path` the first counts, as for imports.
    """
    versions: dict[str, str] = {}
    for folder in (Path(entry) for entry in sys.path if entry):
        for entry in sorted(os.listdir(folder)) if folder.is_dir() else ():  # noqa: PTH208 - names are all we need
            stem, dot, kind = entry.rpartition(".")
            name, _, version = stem.partition("-")
            name = name.lower().replace("_", "-")
            if dot and kind in {"dist-info", "egg-info"} and re.fullmatch(_FAMILY, name):
                versions.setdefault(name, version.partition("-")[0])
    return _json(versions)


def _pci() -> Answer:
    """Return the kernel's description (`uevent`) of each PCI display or accelerator device, in bus order.

    A line `REVISION=0xNN` follows each, from the file beside it: cards that share an id differ in it.
    """
    devices = []
    for folder in sorted(Path("/sys/bus/pci/devices").iterdir()):
        uevent = (folder / "uevent").read_text("utf-8", "replace")
        if re.search(_GRAPHICS, uevent):
            devices.append(f"{uevent}REVISION={(folder / 'revision').read_text()}")
    return Answer(text="\n".join(devices))


def _kernels() -> Answer:
    """Return, as JSON, `program`, `language` and `works` of each Jupyter kernel on Jupyter's search path, by name.

    A kernel works if its program exists. A bare "python" is Jupyter's own interpreter. If a kernel's file cannot be
    read, it does not work, and the others are null. Of several kernels of a name the first on the path counts.
    """
    from jupyter_core.paths import jupyter_path  # noqa: PLC0415 - only when asked

    kernels: dict[str, object] = {}
    for path in (path for folder in jupyter_path("kernels") for path in sorted(Path(folder).glob("*/kernel.json"))):
        try:
            spec = msgspec.json.decode(path.read_bytes())
            program = spec["argv"][0]
            works = bool(re.fullmatch(r"python[\d.]*", program) or shutil.which(program))
            found = {"program": program, "language": spec.get("language"), "works": works}
        except (OSError, msgspec.DecodeError, LookupError, TypeError):
            found = {"program": None, "language": None, "works": False}
        kernels.setdefault(path.parent.name, found)
    return _json(kernels)


def _groups() -> Answer:
    """Return the names of this process's groups, one per line, sorted; "missing" if the system has none."""
    if sys.platform == "win32":
        return Answer(status="missing")
    import grp  # noqa: PLC0415 - not on Windows

    numbers = {os.getgid(), *os.getgroups()}
    return Answer(text="\n".join(sorted(group.gr_name for group in grp.getgrall() if group.gr_gid in numbers)))


def _nvml() -> Answer:
    """Return, as JSON, the versions `driver` and `cuda`, and all `devices`, by NVML.

    Returns "missing" without a driver, and "failed" for any other error of NVML; both with its text.
    """
    import pynvml as nvml  # noqa: PLC0415 - every command that only reads or plans would wait for it

    absent = (
        nvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        nvml.NVML_ERROR_DRIVER_NOT_LOADED,
        nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    )
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return Answer(status="missing" if error.value in absent else "failed", text=str(error))
    try:
        api = nvml.nvmlSystemGetCudaDriverVersion_v2()  # 13010 is 13.1
        devices = [_describe_device(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        driver = {"driver": nvml.nvmlSystemGetDriverVersion(), "cuda": f"{api // 1000}.{api % 1000 // 10}"}
        return _json({**driver, "devices": devices})
    except nvml.NVMLError as error:
        return Answer(status="failed", text=str(error))
    finally:
        nvml.nvmlShutdown()


def _describe_device(nvml: ModuleType, index: int) -> dict[str, object]:
    """Return `name`, `bus`, `pci_id`, `memory` (bytes) and `compute_capability` of a device; None for unknown ones."""
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    answers: dict[str, Any] = {}
    for kind in ("Name", "PciInfo", "MemoryInfo", "CudaComputeCapability"):
        with suppress(nvml.NVMLError):
            answers[kind] = getattr(nvml, f"nvmlDeviceGet{kind}")(handle)
    pci, memory, capability = (answers.get(kind) for kind in ("PciInfo", "MemoryInfo", "CudaComputeCapability"))
    return {
        "name": answers.get("Name") or None,
        "bus": pci.busId if pci else None,
        "pci_id": f"{pci.pciDeviceId & 0xFFFF:04x}:{pci.pciDeviceId >> 16:04x}" if pci else None,
        "memory": int(memory.total) if memory else None,
        "compute_capability": f"{capability[0]}.{capability[1]}" if capability else None,
    }


def _identity() -> Answer:
    """Return, as JSON, the names that a recording must not contain (`users`, `hosts`), and today's `date`."""
    variables = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
    users = {os.environ.get(name, "") for name in variables} | {Path.home().name}
    hosts = {platform.node(), os.environ.get("HOSTNAME", ""), os.environ.get("COMPUTERNAME", "")}
    today = datetime.now(tz=UTC).date().isoformat()
    return _json({"users": sorted(users - {""}), "hosts": sorted(hosts - {""}), "date": today})


def _json(value: object) -> Answer:
    """Return an answer with a value as JSON."""
    return Answer(text=msgspec.json.encode(value).decode())


_LOOKS: dict[str, Callable[..., Answer]] = {
    "run": _run,
    "read": _read,
    "names": lambda path: Answer(text="\n".join(sorted(entry.name for entry in Path(path).iterdir()))),
    "folder": _folder,
    "link": lambda path: Answer(text=str(Path(path).resolve(strict=True))),
    "access": _access,
    "which": lambda name: _text_or_missing(shutil.which(name)),
    "variable": lambda name: _text_or_missing(os.environ.get(name)),
    "registry": lambda key: _json(_call_windows("read_registry", key)),
    "dxgi": lambda: _json({"adapters": _call_windows("dxgi_adapters")}),
    "file_version": lambda path: Answer(text=_call_windows("file_version", os.path.expandvars(path))),
    "platform": _platform,
    "server": _server,
    "memory": _memory,
    "disk": _disk,
    "packages": _packages,
    "pci": _pci,
    "kernels": _kernels,
    "groups": _groups,
    "nvml": _nvml,
    "identity": _identity,
}


def private_names_here() -> PrivateNames:
    """Return the names of users and hosts of this machine, and the secrets in the environment, for `redact`."""
    answer = LiveHost().ask("identity")
    return PrivateNames.of(msgspec.json.decode(answer.text) if answer else {}, os.environ)
