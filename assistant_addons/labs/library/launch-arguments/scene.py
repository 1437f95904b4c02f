"""Launch arguments from a guide for graphics cards, on a computer without one."""

from collections.abc import Mapping

from assistant_addons.labs.workspace import Workspace


def files(_space: Workspace) -> Mapping[str, str | bytes]:
    """Return the arguments as the guide has them, with the one that a first attempt has added."""
    return {"launch.json": '{"arguments": ["--cpu", "--preview-method", "auto", "--force-fp16"]}\n'}


def variables(_space: Workspace) -> Mapping[str, str]:
    """Play a computer without a card of NVIDIA's."""
    return {"CUDA_VISIBLE_DEVICES": ""}
