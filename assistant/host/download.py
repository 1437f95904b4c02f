"""Fetches files whose hashes are known: resumed where they broke off, retried with growing pauses, never half kept."""

from __future__ import annotations

import collections
import errno
import hashlib
import importlib
import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from assistant.host.files import put_in_place, settle
from assistant.host.index import DIRECT, Network, web_client
from assistant.host.process import CancelToken
from assistant.i18n import _
from assistant.model.errors import AssistantError, WorkFailed
from assistant.model.record import Record

PARALLEL = 6
CHUNK = 1 << 18
AGAIN = {408, 425, 429, 500, 502, 503, 504}  # answers of a server that may do better in a moment
GONE_PAST = 416  # what we have is longer than the file: begin anew
PARTIAL = 206


_HTTPX = re.compile(r"httpx")


class Fetch(Record, frozen=True):
    """One file: where it is, where it goes, what it must be; "" for a hash that its index does not tell."""

    url: str
    path: str
    sha256: str = ""
    size: int | None = None


def file_name(url: str) -> str:
    """Give the name of the file that an address leads to, "" for one that leads to none that could be kept."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    return "" if name.startswith(".") or "\\" in name or not name.isprintable() else name


class Patience(Record, frozen=True):
    """How long to wait for a server that says nothing (seconds), how often to try, how long to pause at first."""

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
    """Fetch all files, several at once, the largest first; `on_bytes` hears of each piece, from any thread.

    What was fetched stays for the next time when another file fails. `index_urls` lend their user names and passwords
    to the files of the same servers. Raises `WorkFailed` in one sentence without credentials, `Cancelled` within a
    second of the request.
    """
    patience = patience or Patience()
    with web_client(network, patience.timeout, index_urls) as client:
        job = _Job(client, on_bytes, patience, files)
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


class _Broken(Exception):
    """One try failed in a way that another may not; the text is the reason."""


class _Altered(_Broken):
    """A whole file came that is not the one promised: once by chance, twice because that is what lies there."""


class _Job:
    """The files still to fetch, and the workers' common ground; a worker that hangs is left behind."""

    def __init__(self, client: Any, on_bytes: OnBytes, patience: Patience, files: Sequence[Fetch]) -> None:  # noqa: ANN401 - httpx or httpx2
        self._client, self._on_bytes, self._patience = client, on_bytes, patience
        self._todo = collections.deque(sorted(files, key=lambda file: -(file.size or 0)))
        self.stop = threading.Event()
        self.errors: list[Exception] = []

    def work(self) -> None:
        """Fetch one file after another until none is left or one has failed."""
        try:
            while not self.stop.is_set():
                self.fetch(self._todo.popleft())
        except IndexError:
            return
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            self.errors.append(error)
            self.stop.set()

    def fetch(self, file: Fetch) -> None:
        """Fetch one file, again and again while there is hope."""
        part = Path(f"{file.path}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        altered = 0
        for tried in range(1, self._patience.tries + 1):
            try:
                return self._once(file, part)
            except _Broken as error:
                reason = str(error)
                altered += isinstance(error, _Altered)
            except OSError as error:
                with suppress(OSError):
                    part.unlink()  # a full disk needs the room
                raise _unwritable(part, error) from error
            pause = self._patience.pause * 2**tried * random.uniform(0.5, 1)  # noqa: S311 - spreads the load, no secret
            if altered > 1 or tried == self._patience.tries or self.stop.wait(min(pause, 20)):
                break
        raise _failed(file, reason)

    def _once(self, file: Fetch, part: Path) -> None:
        digest, have = _begun(part)
        self._on_bytes(file, have)
        complete = have > 0 and have == file.size
        try:
            with part.open("ab") as out:
                for piece in () if complete else self._pieces(file, have):
                    if isinstance(piece, int):  # the server begins at the beginning
                        out.truncate(0)
                        digest = hashlib.sha256()
                    else:
                        digest.update(piece)
                        out.write(piece)
                    self._on_bytes(file, out.tell())
        except self._client_errors() as error:
            raise _Broken(str(error) or type(error).__name__) from error
        if file.sha256 and digest.hexdigest() != file.sha256:
            part.unlink()
            raise _Altered(_("what arrived is not what the index promised (its hash differs)"))
        settle(part)
        put_in_place(part, Path(file.path))

    def _pieces(self, file: Fetch, have: int) -> Iterator[bytes | int]:
        """Give the file from byte `have` on; a 0 first means that it comes from its beginning."""
        ask = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with self._client.stream("GET", file.url, headers=ask) as answer:
            if have and (answer.status_code == GONE_PAST or (answer.is_success and answer.status_code != PARTIAL)):
                yield 0
            if answer.status_code in {*AGAIN, GONE_PAST}:
                raise _Broken(f"HTTP {answer.status_code}")
            if not answer.is_success:
                raise _failed(file, f"HTTP {answer.status_code}")
            for piece in answer.iter_bytes(CHUNK):
                if self.stop.is_set():
                    raise _Broken(_("it was stopped"))
                yield piece

    def _client_errors(self) -> type[Exception]:
        """Name the errors of the library that `unearth` brings: httpx, or httpx2 in newer ones."""
        bases = (base.__module__.partition(".")[0] for base in type(self._client).__mro__)
        errors: type[Exception] = importlib.import_module(next(filter(_HTTPX.match, bases))).HTTPError
        return errors


def _begun(part: Path) -> tuple[Any, int]:
    """Hash what an earlier try left; answer the hash and its length."""
    digest = hashlib.sha256()
    if not part.exists():
        return digest, 0
    with part.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
        return digest, file.tell()


def _failed(file: Fetch, reason: str) -> AssistantError:
    return WorkFailed(
        _("{file} cannot be fetched: {reason}.", file=Path(file.path).name, reason=reason),
        hint=_("What arrived so far is kept. Check the network or the index, and start again."),
    )


def _unwritable(path: Path, error: OSError) -> AssistantError:
    hint = (
        _("Free some space and start again.") if error.errno == errno.ENOSPC else _("Check that you may write there.")
    )
    return WorkFailed(
        _("{path} cannot be written: {reason}.", path=path.parent, reason=error.strerror or error), hint=hint
    )
