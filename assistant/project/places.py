"""Where a file of uv's, Poetry's or a lock has a package from, if that is not PyPI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from packaging.utils import canonicalize_name

from assistant.catalog.companions import carried_by_torch_index
from assistant.i18n import _
from assistant.project.gathering import Gathering
from assistant.project.lines import marked
from assistant.project.source import Source

# of a uv.lock: git = "https://host/x?rev=1f#1f0c…"
_REVISION = re.compile(r"\?(?:rev|tag|branch)=([^#&]+).*")


# { git = "https://…", rev = "1f" }, { url = "https://…/x.whl" }, { path = "../mine" }, { directory = "../mine" },
# { editable = "packages/mine" }, { workspace = true }, { index = "https://company.example/simple" }
def take_from(place: Mapping[str, Any], name: str, marker: str, source: Source, gathering: Gathering) -> bool:
    """Take a package (`name` with its extras) from the place that a file states; return False for an allowed index.

    What belongs to an index that is not known, or to the workspace, would be somebody else's on PyPI. For torch's own
    family the plan chooses the index.
    """
    bare, bracket, extras = name.partition("[")
    path = next((place[key] for key in ("path", "directory", "editable") if isinstance(place.get(key), str)), None)
    if "git" in place:
        at = next((f"@{place[key]}" for key in ("rev", "tag", "branch") if key in place), "")
        address = _REVISION.sub(r"@\1", str(place["git"]).removeprefix("git+"))
        gathering.skip_source(f"{name} @ git+{address}{at}")
    elif "url" in place:
        gathering.take(marked(f"{name} @ {place['url']}", marker), source)
    elif path is not None:
        gathering.take_path(marked(f"{path}{bracket}{extras}", marker), source)
    elif place.get("workspace"):
        gathering.skip(name, _("it is another part of the project"))
    elif "index" in place and not (
        gathering.allows(str(place["index"])) or carried_by_torch_index(canonicalize_name(bare))
    ):
        gathering.skip(name, _("it comes from an unknown index"))
    else:
        return False
    return True
