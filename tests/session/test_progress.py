"""How far a download is: its share, where that is known, and its figures."""

from __future__ import annotations

import pytest
from tables import each

from assistant.i18n import render
from assistant.model.report import Progress, Step


@each(
    ("done", "total", "rate", "share", "figures"),
    [
        (12.3e6, 46e6, 5.1e6, 12.3 / 46, "12.3 / 46.0 MB, 5.1 MB/s, 7 s left"),
        (12.3e6, None, None, None, "12.3 MB"),
        (47e6, 46e6, None, 1.0, "47.0 / 46.0 MB"),
    ],
)
def test_a_download_says_how_much_and_how_fast(
    done: float, total: float | None, rate: float | None, share: float | None, figures: str
) -> None:
    """As far as it is known; nobody is told a time."""
    progress = Progress(step=Step.INSTALL, text="", done=done, total=total, rate=rate, unit="bytes")
    assert progress.share == (None if share is None else pytest.approx(share))
    assert render(progress.figures) == figures
