"""Time what safety adds to changing an environment of 1 GB: run this file.

An environment whose torch has 20,000 files (1 GB) gets another torch of 20,000 files. Timed is all that a transaction
does beside unpacking: listing what has to move, writing the journal, moving the old files aside and the new ones in;
and the way back, which a failure takes. Nothing is copied, so only the number of files counts, not their size.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from assistant.install.swap import change_for
from assistant.install.transaction import transaction

FILES, BYTES, LIMIT = 20_000, 1_000_000_000, 1.0


class Refused(Exception):
    """Ends a transaction as a failed verification does."""


def fill(folder: Path) -> list[str]:
    """Write a package of 20,000 files in 200 folders; answer their names."""
    content, paths = bytes(BYTES // FILES), []
    for number in range(FILES):
        path = folder / "lib" / "python3.12" / "site-packages" / "torch" / f"part{number % 200}" / f"m{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        paths.append(path.relative_to(folder).as_posix())
    return paths


def end(*, fails: bool) -> None:
    """Fail on request."""
    if fails:
        raise Refused


def timed(prefix: Path, old: list[str], *, fails: bool) -> tuple[float, float]:
    """Change the environment; answer the seconds of the change, and of the way back (or of clearing up)."""
    ends = 0.0
    try:
        with transaction(prefix, stands=True) as work:
            fill(work.layout.staged)
            begun = time.perf_counter()
            work.change(change_for(prefix, work.layout.staged, old))
            ends = time.perf_counter()
            end(fails=fails)
    except Refused:
        pass
    return ends - begun, time.perf_counter() - ends


def main() -> None:
    """Print the medians; fail when the change takes a second."""
    changes, backs = [], []
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        prefix = Path(name)
        old = fill(prefix)
        for _round in range(3):
            change, back = timed(prefix, old, fails=True)
            changes.append(change)
            backs.append(back)
            print(f"{FILES} files, {BYTES / 1e9:.0f} GB: set aside and replaced in {change:.2f} s, ", end="")
            print(f"taken back and cleared in {back:.2f} s")
    change = statistics.median(changes)
    print(f"median: {change:.2f} s (limit {LIMIT:.0f} s), way back {statistics.median(backs):.2f} s")
    sys.exit(change > LIMIT)


if __name__ == "__main__":
    main()
