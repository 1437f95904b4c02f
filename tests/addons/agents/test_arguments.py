"""What an agent may ask for, judged before anything is started."""

from __future__ import annotations

import pytest

from assistant.mcp.arguments import request_of
from assistant.model.errors import BadInput

WISH = {"backend": None, "python": "", "nightly": False, "recipe": ""}


def test_an_agent_does_not_say_where_a_package_comes_from() -> None:
    """It names packages; their source is for the user's settings."""
    assert request_of(pins=["einops==0.8.1"], **WISH).pins == ("einops==0.8.1",)
    with pytest.raises(BadInput, match="may not say where its package comes from"):
        request_of(pins=["numpy", "einops @ https://example.org/einops-0.8.1-py3-none-any.whl"], **WISH)
