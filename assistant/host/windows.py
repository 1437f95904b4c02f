"""What only Windows can answer."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["read_registry"]

_ROOTS = {"HKLM": "HKEY_LOCAL_MACHINE", "HKCU": "HKEY_CURRENT_USER"}


def read_registry(key: str) -> dict[str, Any]:
    r"""Read the values of a key (`HKLM\SOFTWARE\…`) and of its direct subkeys; FileNotFoundError without one."""
    try:
        winreg: Any = importlib.import_module("winreg")
    except ModuleNotFoundError as error:
        raise FileNotFoundError(key) from error
    root, _, path = key.partition("\\")
    with winreg.OpenKey(getattr(winreg, _ROOTS[root]), path) as opened:
        return {"values": _values(winreg, opened), "keys": _subkeys(winreg, opened)}


def _values(winreg: Any, opened: Any) -> dict[str, Any]:  # noqa: ANN401 - winreg has no types outside Windows
    count = winreg.QueryInfoKey(opened)[1]
    pairs = (winreg.EnumValue(opened, index)[:2] for index in range(count))
    return {name: value for name, value in pairs if isinstance(value, str | int)}


def _subkeys(winreg: Any, opened: Any) -> dict[str, Any]:  # noqa: ANN401
    found = {}
    for index in range(winreg.QueryInfoKey(opened)[0]):
        name = winreg.EnumKey(opened, index)
        try:
            with winreg.OpenKey(opened, name) as subkey:
                found[name] = _values(winreg, subkey)
        except PermissionError:
            found[name] = {}
    return found
