"""Downloads files whose hashes are known: resumed where they broke off, retried with growing pauses, kept whole."""

from __future__ import annotations

import collections
import errno
import hashlib
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from assistant.host.files import discard, put_in_place, sync_to_disk
from assistant.host.network import DIRECT, Network, local_path
from assistant.host.parallel import each_within
from assistant.host.process import CancelToken
from assistant.i18n import Text, _
from assistant.model.errors import AssistantError, WorkFailed
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


def file_name(url: str) -> str:
    """Return the name of the file that a URL leads to; "" if it has none that is safe to use."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    return "" if name.startswith(".") or "\\" in name or not name.isprintable() else name


class Patience(Record, frozen=True):
    """How long to wait for a silent server (seconds), how often to try, how long to pause at first (seconds).

    The timeout is uv's default (UV_HTTP_TIMEOUT), the number of tries is pip's (--retries).
    """

    timeout: float = 30.0
    tries: int = 5
    pause: float = 0.5


OnBytes = Callable[[Fetch, int], None]


def download(
    files: Sequence[Fetch],
    on_bytes: OnBytes,
    cancel: CancelToken,
    *,
    network: Network = DIRECT,
    index_urls: Iterable[str] = (),
    patience: Patience | None = None,
) -> None:
    """Download all files, several at once, the largest first; `on_bytes` is called for each piece, from any thread.

    What was downloaded stays for the next time when another file fails. `index_urls` lend their user names and
    passwords to the files of the same servers. Raises `WorkFailed` in one sentence without credentials, `Cancelled`
    within a second of the request.
    """
    from assistant.host.web import Web  # noqa: PLC0415 - 40 ms that only a download need pay

    patience = patience or Patience()
    job = _Job(Web(network, timeout=patience.timeout, index_urls=index_urls), on_bytes, patience, files)
    threads = [threading.Thread(target=job.work, daemon=True) for _number in range(min(PARALLEL, len(files)))]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and not job.errors:
            threads[0].join(0.1)
            threads.sort(key=threading.Thread.is_alive, reverse=True)
            cancel.check()
    finally:
        job.stop.set()
    if job.errors:
        raise job.errors[0]


class _TryFailed(Exception):
    """One try failed in a way in which another may not; the text is the reason."""


class _WrongHash(_TryFailed):
    """A whole file came with another hash: by chance the first time, because it is another file the second time."""


class _Job:
    """The files that are left, shared by the workers; a worker that hangs is left behind."""

    def __init__(self, web: Web, on_bytes: OnBytes, patience: Patience, files: Sequence[Fetch]) -> None:
        self._web, self._on_bytes, self._patience = web, on_bytes, patience
        self._left = collections.deque(sorted(files, key=lambda file: -(file.size or 0)))
        self.stop = threading.Event()
        self.errors: list[Exception] = []

    def work(self) -> None:
        """Download one file after another until none is left or one has failed."""
        try:
            while not self.stop.is_set():
                self.fetch(self._left.popleft())
        except IndexError:
            return
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            self.errors.append(error)
            self.stop.set()

    def fetch(self, file: Fetch) -> None:
        """Download one file, in as many tries as the patience allows; raise `WorkFailed` after the last."""
        part = Path(f"{file.path}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        altered = 0
        for tried in range(1, self._patience.tries + 1):
            try:
                return self._try_once(file, part)
            except _TryFailed as error:
                reason = str(error)
                altered += isinstance(error, _WrongHash)
            except OSError as error:
                with suppress(OSError):
                    discard(part)  # a full disk needs the room
                raise _not_written_error(part, error) from error
            pause = self._patience.pause * 2**tried * random.uniform(0.5, 1)  # noqa: S311 - spreads the load, no secret
            if altered > 1 or tried == self._patience.tries or self.stop.wait(min(pause, 20)):
                break
        raise _not_fetched_error(file, reason)

    def _try_once(self, file: Fetch, part: Path) -> None:
        """Download one file in one try, going on where an earlier one broke off; raise `_TryFailed` for another try."""
        from assistant.host.web import Unreachable  # noqa: PLC0415 - imported by now

        digest, have = hashlib.sha256(), 0
        if part.exists():
            with part.open("rb") as earlier:
                digest, have = hashlib.file_digest(earlier, "sha256"), earlier.tell()
        self._on_bytes(file, have)
        complete = have > 0 and have == file.size
        try:
            with part.open("ab") as out:
                for piece in () if complete else self._pieces(file, have):
                    if isinstance(piece, int):  # the server starts from the beginning
                        out.truncate(0)
                        digest = hashlib.sha256()
                    else:
                        digest.update(piece)
                        out.write(piece)
                    self._on_bytes(file, out.tell())
        except Unreachable as error:
            if error.status and error.status not in {*TRANSIENT, RANGE_NOT_SATISFIABLE}:
                raise _not_fetched_error(file, error.reason) from error
            if error.status == RANGE_NOT_SATISFIABLE:  # what is here is longer than the file
                discard(part)
            raise _TryFailed(error.reason) from error
        if file.sha256 and digest.hexdigest() != file.sha256:
            discard(part)
            raise _WrongHash(_("the file that arrived is not the one that the index describes (its hash differs)"))
        sync_to_disk(part)
        put_in_place(part, Path(file.path))

    def _pieces(self, file: Fetch, have: int) -> Iterator[bytes | int]:
        """Yield the bytes of a file from byte `have` on; an int 0 before them means that they start at byte 0."""
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with self._web.open(file.url, headers) as answer:
            if have and answer.status != PARTIAL_CONTENT:
                yield 0
            for piece in answer.pieces(CHUNK):
                if self.stop.is_set():
                    raise _TryFailed(_("it was stopped"))
                yield piece


def sizes(
    urls: Iterable[str], seconds: float, *, network: Network = DIRECT, index_urls: Iterable[str] = ()
) -> dict[str, int]:
    """Return the sizes in bytes of files on servers and on disk; those that cannot be had in time are left out."""
    from assistant.host.web import Unreachable, Web  # noqa: PLC0415 - see `download`

    web = Web(network, timeout=seconds, index_urls=index_urls)

    def size_of(url: str) -> int | None:
        """Return the size of a file in bytes; None if it cannot be had."""
        try:
            if path := local_path(url):
                return path.stat().st_size
            with web.open(url, {"Accept-Encoding": "identity"}, method="HEAD") as answer:
                return answer.length
        except (OSError, Unreachable):
            return None

    answers = each_within(size_of, list(dict.fromkeys(urls)), seconds)
    return {url: size for url, size in answers.items() if size is not None}


def _not_fetched_error(file: Fetch, reason: Text) -> AssistantError:
    """Return the error for a file that cannot be downloaded, with the reason."""
    return WorkFailed(
        _("{file} cannot be fetched: {reason}.", file=Path(file.path).name, reason=reason),
        hint=_("What was downloaded so far is kept. Check the network or the index, and start again."),
    )


def _not_written_error(path: Path, error: OSError) -> AssistantError:
    """Return the error for a download that cannot be written to the disk."""
    full = error.errno == errno.ENOSPC
    hint = _("Free some space and start again.") if full else _("Check that you have permission to write there.")
    return WorkFailed(
        _("{path} cannot be written: {reason}.", path=path.parent, reason=error.strerror or error), hint=hint
    )
