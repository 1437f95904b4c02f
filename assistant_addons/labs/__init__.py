"""Break-and-fix labs: a folder with a fault in it, a program that fails, hints, and a check that runs the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant_addons.labs.page import Labs


def environment_with_torch() -> str:
    """Return the Python of the last setup, or of a CPU environment that is made in the assistant's cache folder.

    What takes long is printed. Raises `WorkFailed` if the environment cannot be made.
    """
    from assistant_addons.labs import workspace  # noqa: PLC0415 - the installation is loaded only on demand

    return workspace.environment_with_torch(print)


def open_labs(*, language: str | None = None) -> Labs:
    """Return the labs as a widget; call it as the last line of a cell, which shows it.

    `language` is "en" or "zh_CN", by default the environment's, and that of the whole kernel from then on.
    """
    from assistant.api.texts import use_language  # noqa: PLC0415 - widgets are loaded only on demand
    from assistant_addons.labs.page import Labs  # noqa: PLC0415

    use_language(language)
    return Labs()
