"""Reads the GPUs that general tools list: lspci, vulkaninfo, clinfo, `amd-smi static`, `nvidia-smi -L` and queries."""

from __future__ import annotations

import re
from typing import NamedTuple

from assistant.catalog.names import vendor_of, vendor_of_name
from assistant.model.machine import Gpu, Vendor
from assistant.parsers.fields import Device, field, gib
from assistant.parsers.nvidia import NvidiaReport

# 03:00.0 Display controller [0380]: Advanced Micro Devices, Inc. [AMD/ATI] Device [1002:1114] (rev c3)
#     Subsystem: ASUSTeK Computer Inc. Device [1043:3c88]
#     Kernel driver in use: amdgpu
# without -nn:
# 01:00.0 VGA compatible controller: NVIDIA Corporation TU116 [GeForce GTX 1660 SUPER] (rev a1)
_LSPCI = re.compile(
    r"^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] "
    r"(VGA|3D|Display|Processing)[\w -]{0,30}(?: \[[0-9a-f]{4}\])?: ([^\n]{1,250})((?:\n[ \t]+[^\n]{0,300}){0,12})",
    re.MULTILINE,
)


def lspci(text: str) -> tuple[Gpu, ...] | None:
    """Read `lspci`, with ids (-nn), drivers (-k) or neither; audio devices and NPUs beside the GPUs are none."""
    found = []
    for kind, name, more in _LSPCI.findall(text):
        ids = re.findall(r"\[([0-9a-f]{4}:[0-9a-f]{4})\]", name)
        vendor = vendor_of(ids[-1]) if ids else vendor_of_name(name)
        if kind == "Processing" and vendor not in {Vendor.AMD, Vendor.NVIDIA}:
            continue
        driver = re.search(r"Kernel driver in use: (\w{1,20})", more)
        plain = None if ids else re.sub(r" \(rev \w\w\).*$", "", name)
        gpu = Gpu(vendor=vendor, name=plain, pci_id=ids[-1] if ids else None, driver=driver[1] if driver else None)
        found.append(gpu)
    return tuple(found) or None


class Layout(NamedTuple):
    """How a tool lists devices: a word only it prints, where one begins, and what it calls each fact."""

    mark: str
    begins: re.Pattern[str]
    names: tuple[str, ...]
    vendor: str
    device: str = ""
    kind: str = ""


LAYOUTS = {
    # Quoted, shortened, from https://github.com/nix-community/nixGL/issues/153:
    # GPU0:
    #     vendorID           = 0x1002
    #     deviceID           = 0x73ff
    #     deviceType         = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
    #     deviceName         = AMD Radeon RX 6600 XT
    "vulkaninfo": Layout(
        "deviceName",
        re.compile(r"^(?=GPU\d{1,2}:|VkPhysicalDeviceProperties:)", re.MULTILINE),
        ("deviceName",),
        "vendorID",
        "deviceID",
        "deviceType",
    ),
    #   Device Name                                     Intel(R) Arc(TM) A770 Graphics
    #   Device Vendor ID                                0x8086
    #   Device Type                                     GPU
    "clinfo": Layout(
        "Device Vendor ID",
        re.compile(r"^(?=[ \t]{0,8}Device Name )", re.MULTILINE),
        (r"Device Board Name \(AMD\)", "Device Name"),
        "Device Vendor ID",
        kind="Device Type",
    ),
    # Quoted, shortened, from https://github.com/ROCm/rocm-systems/pull/2987:
    # GPU: 0
    #     ASIC:
    #         MARKET_NAME: AMD Instinct MI350X
    #         VENDOR_ID: 0x1002
    #         DEVICE_ID: 0x75a0
    #         TARGET_GRAPHICS_VERSION: gfx950
    "amd-smi static": Layout(
        "MARKET_NAME",
        re.compile(r"^(?=GPU: \d)", re.MULTILINE),
        ("MARKET_NAME",),
        "VENDOR_ID",
        "DEVICE_ID",
    ),
}


def device_blocks(text: str, layout: Layout) -> tuple[Gpu, ...] | None:
    """Read the GPUs that a tool lists block by block, each once; processors that pose as GPUs are left out."""
    if layout.mark not in text:
        return None
    found = (_block(block, layout) for block in layout.begins.split(text)[1:])
    return tuple(dict.fromkeys(gpu for gpu in found if gpu)) or None


def _block(block: str, layout: Layout) -> Gpu | None:
    kind = field(block, layout.kind) if layout.kind else "GPU"
    name = next(filter(None, (field(block, name) for name in layout.names)), "")
    vendor = _hex(field(block, layout.vendor))
    maker = vendor_of(vendor)
    if "GPU" not in kind or not (name or vendor):
        return None
    device = _hex(field(block, layout.device)) if layout.device else ""
    gfx = re.search(r"\bgfx[0-9a-f]{3,4}\b", block)
    return Gpu(
        vendor=maker if maker not in {Vendor.UNKNOWN, Vendor.OTHER} else vendor_of_name(name),
        name=name if not name.startswith("gfx") else None,
        pci_id=f"{vendor}:{device}" if vendor and device else None,
        gfx=gfx[0] if gfx else None,
    )


def _hex(text: str) -> str:
    """Read `1002` off `0x1002` or the 4098 that some releases print."""
    found = re.match(r"(0x)?([0-9a-f]{1,8})\b", text.lower())
    if not found or not (found[1] or found[2].isdigit()):
        return ""
    return f"{int(found[2], 16 if found[1] else 10):04x}"


# GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-2f1e0f0c-aaaa-bbbb-cccc-1234567890ab)
_LIST = re.compile(r"^GPU \d{1,3}: ([^\n(]{3,80}?) \(UUID: GPU-", re.MULTILINE)
# 0, NVIDIA A100-SXM4-40GB, 40960 MiB, 550.54.14
# Tesla T4, 535.104.05, 15360 MiB
_QUERY = re.compile(
    r"^(?:\d{1,2}, )?((?:NVIDIA|GeForce|Tesla|Quadro|TITAN) ?[\w .()-]{0,60})((?:, [^,\n]{1,60}){1,12})$", re.MULTILINE
)


def smi_lines(text: str) -> tuple[NvidiaReport, ...] | None:
    """Read `nvidia-smi -L` and the lines that `--query-gpu=… --format=csv` gives, a report for each GPU."""
    listed = [_report(name) for name in _LIST.findall(text)]
    asked = [_report(name, rest) for name, rest in _QUERY.findall(text)]
    return (*listed, *(report for report in asked if report.driver or report.devices[0].gpu.vram_gb)) or None


def _report(name: str, rest: str = "") -> NvidiaReport:
    memory = re.search(r", (\d{1,8}) MiB", rest)
    driver = re.search(r", (\d{3}\.\d{2,3}(?:\.\d{1,3})?)(?=,|$)", rest)
    gpu = Gpu(vendor=Vendor.NVIDIA, name=name, vram_gb=gib(memory[1]) if memory else None)
    return NvidiaReport(driver=driver[1] if driver else None, devices=(Device(gpu=gpu),))
