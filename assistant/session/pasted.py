"""A log that the user gave: a short one is kept with the setup, a long one in a private file named by its content."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from assistant.host.files import discard, private_folder, read_plain, write_whole
from assistant.host.folders import user_state
from assistant.i18n import _
from assistant.model.errors import BadInput, WorkFailed
from assistant.parsers.decode import text_pieces
from assistant.session.state import Pasted

WHOLE = 100_000  # characters kept with the setup; chosen: a page shows that many at once without a pause
SHOWN = WHOLE // 5  # characters kept of both ends of a longer one, as `wizard/static/logbox.js` shows them
KEPT = 3  # files of long logs that are kept: other windows may still show one
LIMIT = 2**30  # bytes; chosen: twice what the page sends


def taken(data: bytes, name: str = "", folder: Path | None = None) -> Pasted:
    """Return a log as a setup keeps it; raise `BadInput` for a binary file, `WorkFailed` where it cannot be kept."""
    text = "".join(text_pieces(data))
    if len(text) <= WHOLE:
        return Pasted(text=text, name=name)
    content = text.encode("utf-8", "replace")
    folder = folder or user_state() / "pasted"
    path = folder / f"{_digest(content)}.log"
    try:
        private_folder(folder.parent)
        private_folder(folder)
        write_whole(path, content, private=True)
    except OSError as error:
        raise WorkFailed(
            _("This log could not be kept in {folder}: {reason}.", folder=folder, reason=error.strerror or error),
            hint=_("Free some space on the disk, or give only the end of the log."),
        ) from error
    with suppress(OSError):
        for old in sorted(folder.glob("*.log"), key=lambda file: file.stat().st_mtime)[:-KEPT]:
            discard(old)
    lines = text.count("\n") + (not text.endswith("\n"))
    return Pasted(text=text[:SHOWN], tail=text[-SHOWN:], size=len(data), lines=lines, name=name, path=str(path))


def whole(pasted: Pasted) -> str | bytes:
    """Return all of a log; raise `BadInput` where its file is gone or was changed."""
    if not pasted.path:
        return pasted.text
    path = Path(pasted.path)
    with suppress(OSError):
        content = read_plain(path, LIMIT)
        if path.stem == _digest(content):
            return content
    raise BadInput(
        _("The whole log is gone; only its beginning and its end were kept."),
        hint=_("Give it again: paste it, or choose its file."),
    )


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]
