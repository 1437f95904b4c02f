"""What an ONNX Runtime offers to run a model on: its own providers and plug-ins, by short names; runs in a child."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import re
from collections.abc import Sequence
from typing import Any

SUFFIX = "ExecutionProvider"
CPU = "CPUExecutionProvider"
# How the modules of providers that plug in are called; each has get_library_path() and get_ep_name(), as
# https://onnxruntime.ai/docs/execution-providers/plugin-ep-libraries/usage.html says.
PLUGINS = re.compile(r"onnxruntime_(?:ep_\w+|qnn)")


def short(name: str) -> str:
    """Return how people call a provider: "cuda" for CUDAExecutionProvider."""
    return name.casefold().removesuffix(SUFFIX.casefold())


class NotOffered(Exception):
    """A provider that is not there, or has no such device."""

    def __init__(self, offered: Sequence[str]) -> None:
        super().__init__(", ".join(offered))
        self.offered = list(offered)


class Offered:
    """The providers that `onnxruntime` has, with the devices of those that plug in."""

    def __init__(self, onnxruntime: Any) -> None:  # noqa: ANN401 - the library has no types
        self.own: list[str] = list(onnxruntime.get_available_providers())
        self._runtime = onnxruntime
        self.devices: list[Any] = []
        with contextlib.suppress(Exception):  # releases before 1.23 have no plug-ins
            self.devices = _plugged_in(onnxruntime)

    def names(self) -> list[str]:
        """Return the short names of all, as they may be asked for."""
        every = (*self.own, *(device.ep_name for device in self.devices))
        return list(dict.fromkeys(map(short, every)))

    def open(self, model: str | bytes, options: Any, wanted: str, device: str, disabled: Sequence[str]) -> Any:  # noqa: ANN401
        """Open a model on a provider, by its short or full name; raises `NotOffered` where it is not there.

        `device` is "CPU", "GPU" or "NPU" for a provider that serves several, "" for any.
        """
        name = next((one for one in self.own if short(one) == short(wanted)), None)
        if name is not None:
            given = {"device_type": device} if device else {}
            providers = [(name, given)] if name == CPU else [(name, given), (CPU, {})]
            return self._runtime.InferenceSession(model, options, providers=providers, disabled_optimizers=[*disabled])
        found = [one for one in self.devices if short(one.ep_name) == short(wanted)]
        found = [one for one in found if one.device.type.name == device] if device else found
        if not found:
            raise NotOffered(self.names())
        options.add_provider_for_devices(found[:1], {})
        return self._runtime.InferenceSession(model, options, disabled_optimizers=[*disabled])


def _plugged_in(onnxruntime: Any) -> list[Any]:  # noqa: ANN401 - likewise
    """Register the plug-ins that are installed; return all devices of providers."""
    for found in pkgutil.iter_modules():
        if PLUGINS.fullmatch(found.name):
            with contextlib.suppress(Exception):  # one that does not load leaves the others alone
                plugin = importlib.import_module(found.name)
                onnxruntime.register_execution_provider_library(found.name, plugin.get_library_path())
    return list(onnxruntime.get_ep_devices())
