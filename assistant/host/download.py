"""Downloads files: resumed where they broke off, retried with growing pauses, put in place only when complete."""

from __future__ import annotations

import errno
import hashlib
import random
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assistant.host.files import discard, fsync_path, local_path, put_in_place
from assistant.host.pip_settings import NO_SETTINGS, PipSettings
from assistant.host.process import CancelToken, run_at_once, run_within
from assistant.i18n import Text, _
from assistant.model.errors import WorkFailed
from assistant.model.record import Record

if TYPE_CHECKING:
    from assistant.host.web import Web

PARALLEL = 6  # chosen: as many connections as browsers open to one server over HTTP/1.1
CHUNK = 1 << 18
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}  # statuses of a server that may do better in a moment
RANGE_NOT_SATISFIABLE = 416  # what we have is longer than the file: start again from its beginning
PARTIAL_CONTENT = 206


class Fetch(Record, frozen=True):
    """One file to download: its URL, where it goes, and what it must be; `sha256` "" and `size` None if unknown."""

    url: str
    path: str
    sha256: str = ""
    size: int | None = None


class Patience(Record, frozen=True):
    """How long to wait for a silent server (seconds), how often to try, how long to pause at first (seconds).

    The timeout is uv's default (UV_HTTP_TIMEOUT), the number of tries is pip's (--retries).
    """

    timeout: float = 30.0
    tries: int = 5
    pause: float = 0.5


class Headway(NamedTuple):
    """How far a download is: the bytes of each file that are there, by path, and how many of all were there before."""

    have: dict[str, int]
    resumed: int


def download(
    files: Sequence[Fetch],
    cancel: CancelToken,
    *,
    settings: PipSettings = NO_SETTINGS,
    index_urls: Iterable[str] = (),
    patience: Patience | None = None,
) -> Generator[Headway, None, None]:
    """Download all files to their paths, several at once, the largest first and those of unknown size last.

    Yields several times a second how far it is, and at the end. When a file fails, what was downloaded stays for the
    next time, as PATH.part. A file that is there is replaced. The user names and passwords in `index_urls` are sent to
    the same servers. Raises `WorkFailed`, without credentials, for the first file that fails, and `Cancelled` within a
    second of the request.
    """
    from assistant.host.web import Web  # noqa: PLC0415 - 40 ms that only a download need pay

    patience = patience or Patience()
    web = Web(settings, timeout=patience.timeout, index_urls=index_urls)
    work = _Download(web, patience)
    largest_first = sorted(files, key=lambda file: -(file.size or 0))
    with closing(run_at_once(work.fetch, largest_first, threads=PARALLEL, stop=work.stop)) as moments:
        for _done in moments:
            cancel.check()
            yield Headway(dict(work.have), sum(work.resumed.values()))


class _TryFailed(Exception):
    """A try failed and another one may succeed; `altered` if a complete file came with another hash.

    The first time that counts as chance, the second time as another file, and ends the tries.
    """

    def __init__(self, reason: Text, *, altered: bool = False) -> None:
        super().__init__(str(reason))
        self.altered = altered


class _Download:
    """Downloads files, from any number of threads, until `stop` is set."""

    def __init__(self, web: Web, patience: Patience) -> None:
        self._web, self._patience = web, patience
        self.have, self.resumed = dict[str, int](), dict[str, int]()
        self.stop = threading.Event()

    def fetch(self, file: Fetch) -> None:
        """Download one file in up to `Patience.tries` tries; raise `WorkFailed` if all fail or the work is stopped.

        It also ends at an answer that will not change, such as HTTP 404, at a second wrong hash, and at a disk that
        cannot be written, which deletes the part.
        """
        part = Path(f"{file.path}.part")
        altered = 0
        for tried in range(1, self._patience.tries + 1):
            try:
                part.parent.mkdir(parents=True, exist_ok=True)
                return self._try_once(file, part)
            except _TryFailed as error:
                reason = str(error)
                altered += error.altered
            except OSError as error:
                with suppress(OSError):
                    discard(part)  # a full disk needs the room
                full = error.errno == errno.ENOSPC
                raise WorkFailed(
                    _("{path} cannot be written: {reason}.", path=part.parent, reason=error.strerror or error),
                    hint=_("Free some space and start again.")
                    if full
                    else _("Check that you have permission to write there."),
                ) from error
            pause = self._patience.pause * 2**tried * random.uniform(0.5, 1)  # noqa: S311 - spreads the load, no secret
            if altered > 1 or tried == self._patience.tries or self.stop.wait(min(pause, 20)):
                break
        raise _not_fetched_error(file, reason)

    def _try_once(self, file: Fetch, part: Path) -> None:
        """Download one file, continuing an earlier part, check its hash, if known, and rename it to its path.

        Raises `_TryFailed` if another try may help, `WorkFailed` if not, and `OSError` of the disk.
        """
        from assistant.host.web import Unreachable  # noqa: PLC0415 - imported by now

        try:
            with part.open("a+b") as out:
                out.seek(0)
                digest = hashlib.file_digest(out, "sha256")
                have = self.have[file.path] = out.tell()
                self.resumed[file.path] = min(have, self.resumed.get(file.path, have))
                headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
                if not have or have != file.size:
                    with self._web.open(file.url, headers) as answer:
                        if have and answer.status != PARTIAL_CONTENT:  # the server starts from the beginning
                            out.seek(0)  # or `tell` goes on from where it was
                            out.truncate()
                            digest = hashlib.sha256()
                            self.resumed[file.path] = 0
                        for piece in answer.pieces(CHUNK):
                            if self.stop.is_set():
                                raise _TryFailed(_("it was stopped"))
                            digest.update(piece)
                            out.write(piece)
                            self.have[file.path] = out.tell()
        except Unreachable as error:
            if error.status and error.status not in {*TRANSIENT, RANGE_NOT_SATISFIABLE}:
                raise _not_fetched_error(file, error.reason) from error
            if error.status == RANGE_NOT_SATISFIABLE:  # what is here is longer than the file
                discard(part)
            raise _TryFailed(error.reason) from error
        if file.sha256 and digest.hexdigest() != file.sha256:
            discard(part)
            reason = _("the file that arrived is not the one that the index describes (its hash differs)")
            raise _TryFailed(reason, altered=True)
        fsync_path(part)
        put_in_place(part, Path(file.path))


def _not_fetched_error(file: Fetch, reason: Text) -> WorkFailed:
    """Return the error that a file cannot be downloaded for a reason; its hint: what arrived is kept, start again."""
    return WorkFailed(
        _("{file} cannot be fetched: {reason}.", file=Path(file.path).name, reason=reason),
        hint=_("What was downloaded so far is kept. Check the network or the index, and start again."),
    )


def fetch_sizes(
    urls: Iterable[str], seconds: float, *, settings: PipSettings = NO_SETTINGS, index_urls: Iterable[str] = ()
) -> dict[str, int]:
    """Return the sizes in bytes of files on servers and disk, by URL; those not known after `seconds` are left out."""
    from assistant.host.web import Unreachable, Web  # noqa: PLC0415 - see `download`

    web = Web(settings, timeout=seconds, index_urls=index_urls)

    def ask_size(url: str) -> int | None:
        """Return the size of a file in bytes, from the disk or the server's header; None if unknown."""
        try:
            if path := local_path(url):
                return path.stat().st_size
            with web.open(url, {"Accept-Encoding": "identity"}, method="HEAD") as answer:
                return answer.length
        except (OSError, Unreachable):
            return None

    answers = run_within(ask_size, list(dict.fromkeys(urls)), seconds)
    return {url: size for url, size in answers.items() if size is not None}
