"""What only Windows can answer or do: registry, DXGI's adapters with their Direct3D 12 level, DLLs, jobs, consoles."""

from __future__ import annotations

import ctypes
import importlib
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

_WINDOWS: Any = ctypes  # WinDLL and WINFUNCTYPE exist on Windows only
_ROOTS = {"HKLM": "HKEY_LOCAL_MACHINE", "HKCU": "HKEY_CURRENT_USER"}


def read_registry(key: str) -> dict[str, Any]:
    r"""Return the `values` of a registry key (`HKLM\SOFTWARE\…`) by name, and those of its direct subkeys (`keys`).

    A subkey that this user may not open has none. Raises `FileNotFoundError` if the key does not exist, and on other
    systems; `PermissionError` if this user may not open it.
    """
    try:
        winreg: Any = importlib.import_module("winreg")
    except ModuleNotFoundError as error:
        raise FileNotFoundError(key) from error
    root, _, path = key.partition("\\")
    keys: dict[str, Any] = {}
    with winreg.OpenKey(getattr(winreg, _ROOTS[root]), path) as opened:
        for name in [winreg.EnumKey(opened, index) for index in range(winreg.QueryInfoKey(opened)[0])]:
            keys[name] = {}  # for one that this user may not open
            with suppress(PermissionError), winreg.OpenKey(opened, name) as subkey:
                keys[name] = _read_values(winreg, subkey)
        return {"values": _read_values(winreg, opened), "keys": keys}


def _read_values(winreg: Any, opened: Any) -> dict[str, Any]:  # noqa: ANN401 - winreg has no types outside Windows
    """Return an open registry key's texts and numbers, by name; 4 or 8 bytes count as a number, others are left out."""
    count = winreg.QueryInfoKey(opened)[1]
    values: dict[str, Any] = {}
    for index in range(count):
        name, value, _type = winreg.EnumValue(opened, index)
        if isinstance(value, bytes) and len(value) in {4, 8}:  # as which some drivers store their memory size
            value = int.from_bytes(value, "little")
        if isinstance(value, str | int):
            values[name] = value
    return values


def file_version(path: str) -> str:
    """Return the version in the resource of a DLL, such as "10.0.26100.1".

    Raises FileNotFoundError if it has none, and on other systems than Windows.
    """
    library = _load_dll("version")
    size = library.GetFileVersionInfoSizeW(path, None)
    if not size:
        raise FileNotFoundError(path)
    block, pointer, length = ctypes.create_string_buffer(size), ctypes.c_void_p(), ctypes.c_uint()
    library.GetFileVersionInfoW(path, 0, size, block)
    if not library.VerQueryValueW(block, "\\", ctypes.byref(pointer), ctypes.byref(length)) or not pointer.value:
        raise FileNotFoundError(path)
    high, low = (ctypes.c_uint32 * 4).from_address(pointer.value)[2:4]
    return f"{high >> 16}.{high & 0xFFFF}.{low >> 16}.{low & 0xFFFF}"


# https://learn.microsoft.com/windows/win32/api/winnt/ns-winnt-jobobject_basic_limit_information and
# https://learn.microsoft.com/windows/win32/procthread/process-security-and-access-rights
_KILL_ON_JOB_CLOSE, _SILENT_BREAKAWAY_OK = 0x2000, 0x1000
_EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
_RIGHTS = 0x0001 | 0x0100 | 0x0800  # PROCESS_TERMINATE, PROCESS_SET_QUOTA, PROCESS_SUSPEND_RESUME


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("working_sets", ctypes.c_size_t * 2),
        ("processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priorities", ctypes.c_uint32 * 2),
        ("io_counters", ctypes.c_uint64 * 6),
        ("memory", ctypes.c_size_t * 4),
    )


class Job:
    """A job object: a child and its descendants, which `end` ends, and Windows does when this process ends.

    With `exclude_descendants` what the child starts does not belong to it.
    """

    def __init__(self, child: int, *, exclude_descendants: bool = False) -> None:
        """Put a child, by its process number, that was started suspended into the job, and let it go on.

        Where the system refuses, as in some sandboxes, the child goes on without a job. NtResumeProcess is not
        documented; psutil's `Process.resume` rests on it, too.
        """
        self._kernel = _load_dll("kernel32")
        self._kernel.CreateJobObjectW.restype = self._kernel.OpenProcess.restype = ctypes.c_void_p
        self._handle = ctypes.c_void_p(self._kernel.CreateJobObjectW(None, None))
        limits = _Limits(flags=_KILL_ON_JOB_CLOSE | (_SILENT_BREAKAWAY_OK if exclude_descendants else 0))
        size = ctypes.sizeof(limits)
        self._kernel.SetInformationJobObject(self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), size)
        process = ctypes.c_void_p(self._kernel.OpenProcess(_RIGHTS, False, child))
        self._kernel.AssignProcessToJobObject(self._handle, process)
        _load_dll("ntdll").NtResumeProcess(process)
        self._kernel.CloseHandle(process)

    def end(self) -> None:
        """End all of its processes."""
        self._kernel.TerminateJobObject(self._handle, 1)

    def close(self) -> None:
        """Close the job, which ends the processes that are left in it."""
        self._kernel.CloseHandle(self._handle)


# CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT, CTRL_SHUTDOWN_EVENT: https://learn.microsoft.com/windows/console/handlerroutine
_CLOSING = {2, 5, 6}
_MOST_SECONDS = 30.0  # Windows itself waits for 5 s before it ends the process
_handlers: list[Any] = []  # kept, as Windows calls them


def on_console_closing(request: Callable[[], None]) -> None:
    """Register `request` to be called, on another thread, when the console is closed or the user signs out.

    Windows ends the process when the handler returns, so the handler waits for the main thread to end it before. To be
    called on Windows only.
    """

    def handle_console_event(event: int) -> bool:
        """Call `request` for an event that ends the process, and wait; return False: other handlers get the event."""
        if event in _CLOSING:
            request()
            time.sleep(_MOST_SECONDS)
        return False

    _handlers.append(_WINDOWS.WINFUNCTYPE(ctypes.c_int, ctypes.c_uint32)(handle_console_event))
    _load_dll("kernel32").SetConsoleCtrlHandler(_handlers[-1], 1)


# Places in the COM tables of IDXGIFactory1 and IDXGIAdapter1, ids and levels: dxgi.h, d3d12.h, d3dcommon.h.
_RELEASE, _ENUM_ADAPTERS1, _GET_DESC1 = 2, 12, 10
_FACTORY1 = "770aae78-f26f-4dba-a829-253c83d1b387"
_DEVICE12 = "189819f1-1db6-4b57-be54-1821339b85f7"
_LEVELS = {"12_2": 0xC200, "12_1": 0xC100, "12_0": 0xC000, "11_1": 0xB100, "11_0": 0xB000}
_MOST_ADAPTERS = 32


class _Description(ctypes.Structure):
    """DXGI_ADAPTER_DESC1."""

    _fields_ = (
        ("name", ctypes.c_wchar * 128),
        ("vendor", ctypes.c_uint32),
        ("device", ctypes.c_uint32),
        ("subsystem", ctypes.c_uint32),
        ("revision", ctypes.c_uint32),
        ("video_memory", ctypes.c_size_t),
        ("system_memory", ctypes.c_size_t),
        ("shared_memory", ctypes.c_size_t),
        ("luid", ctypes.c_uint32 * 2),
        ("flags", ctypes.c_uint32),
    )


def dxgi_adapters() -> list[dict[str, object]]:
    """Return up to 32 display adapters in DXGI's order, as `_describe_adapter` does; raise `OSError` if DXGI fails."""
    factory = ctypes.c_void_p()
    result = _load_dll("dxgi").CreateDXGIFactory1(_guid(_FACTORY1), ctypes.byref(factory))
    if result < 0:
        raise OSError(result, "CreateDXGIFactory1")
    adapters: list[dict[str, object]] = []
    adapter = ctypes.c_void_p()
    while len(adapters) < _MOST_ADAPTERS:
        if _call_method(factory, _ENUM_ADAPTERS1, ctypes.c_uint(len(adapters)), ctypes.pointer(adapter)) < 0:
            break
        adapters.append(_describe_adapter(adapter))
        _call_method(adapter, _RELEASE)
    _call_method(factory, _RELEASE)
    return adapters


def _describe_adapter(adapter: ctypes.c_void_p) -> dict[str, object]:
    """Return an adapter's `name`, `pci_id`, `revision`, `memory`, `shared_memory`, `remote`, `software` and `d3d12`.

    An id is such as "10de:2684", a revision "0xa1"; memory is in bytes; `d3d12` is what `_d3d12_level` returns.
    """
    description = _Description()
    _call_method(adapter, _GET_DESC1, ctypes.pointer(description))
    return {
        "name": description.name,
        "pci_id": f"{description.vendor:04x}:{description.device:04x}",
        "revision": f"0x{description.revision:02x}",
        "memory": description.video_memory,
        "shared_memory": description.shared_memory,
        "remote": bool(description.flags & 1),  # DXGI_ADAPTER_FLAG_REMOTE
        "software": bool(description.flags & 2),  # DXGI_ADAPTER_FLAG_SOFTWARE
        "d3d12": _d3d12_level(adapter),
    }


def _d3d12_level(adapter: ctypes.c_void_p) -> str | None:
    """Return the highest Direct3D 12 level for which a device can be made, such as "12_1"; None if there is none."""
    try:
        create = _load_dll("d3d12").D3D12CreateDevice
    except OSError:
        return None
    uuid = _guid(_DEVICE12)
    return next((name for name, level in _LEVELS.items() if create(adapter, level, uuid, None) >= 0), None)


def _load_dll(name: str) -> Any:  # noqa: ANN401 - ctypes has no types for what a library holds
    """Return a DLL by its name; raise FileNotFoundError on other systems, and OSError if it is missing."""
    if not hasattr(ctypes, "WinDLL"):
        raise FileNotFoundError(f"{name}.dll")
    return _WINDOWS.WinDLL(name)


def _guid(text: str) -> ctypes.Array[ctypes.c_char]:
    """Return the 16 bytes of a GUID as Windows stores it."""
    return ctypes.create_string_buffer(UUID(text).bytes_le, 16)


def _call_method(interface: ctypes.c_void_p, index: int, *arguments: Any) -> int:  # noqa: ANN401
    """Call a method of a COM interface by its index in the table; return its result, which is negative on failure."""
    table = ctypes.cast(interface, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)))[0]
    prototype = _WINDOWS.WINFUNCTYPE(ctypes.c_long, ctypes.c_void_p, *map(type, arguments))
    return int(prototype(table[index])(interface, *arguments))
