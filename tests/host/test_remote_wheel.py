"""Wheels on a real server, read by ranges: little of them, in time, and never what a hostile one wishes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from torch_wheels import add_torch, rewrite

from assistant.catalog.wheel_facts import wheel_facts
from assistant.host.index import DIRECT, web_client
from assistant.host.remote_wheel import BUDGET, RemoteWheel, Unreadable

pytestmark = pytest.mark.process
VERSION = "torch/version.py"


@pytest.fixture
def reading(loopback_index):
    """Give a function that opens a wheel of the index by its path on disk."""
    with web_client(DIRECT, 2.0, []) as client:

        def opened(wheel: Path, seconds: float = 10.0, **how: int) -> RemoteWheel:
            name = wheel.name.replace("+", "%2B")
            return RemoteWheel(client, f"{loopback_index.url}/{wheel.parent.name}/{name}", seconds=seconds, **how)

        yield opened


def test_a_large_table_of_contents_is_read_as_far_as_needed(loopback_index, reading):
    """The facts of a wheel as large in its table as a real one: a third of a megabyte, and few requests."""
    wheel = add_torch(loopback_index, "2.16.0", "cu134", sm=(75, 90, 120), ptx=120, more=5_000)
    table = reading(wheel)
    facts = wheel_facts(table)
    assert (facts.build, facts.sm, facts.ptx) == ("cu134", (75, 90, 120), 120)
    assert not table.listed
    assert table.bytes_read < 200_000 < wheel.stat().st_size
    assert len(loopback_index.requests) <= 6


def test_targets_of_rocm_are_read_from_the_end(loopback_index, reading):
    """The indexes of rocBLAS stand in the second half of a sorted table."""
    gfx = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
    table = reading(add_torch(loopback_index, "2.16.0", "rocm10.0", gfx=gfx, more=5_000))
    assert wheel_facts(table).gfx == gfx
    assert table.bytes_read < 300_000


def test_targets_are_complete_in_any_order_or_unknown(loopback_index, reading):
    """Files of a folder stand together, in whatever order; where not all of them can be read, none is believed."""
    gfx = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
    wheel = add_torch(loopback_index, "2.16.0", "rocm10.0", gfx=gfx, more=5_000)
    rewrite(wheel, lambda files: dict(reversed(files.items())))
    assert wheel_facts(reading(wheel)).gfx == gfx
    rewrite(wheel, lambda files: dict(sorted(files.items(), key=lambda one: "rocblas" not in one[0])))
    assert wheel_facts(reading(wheel, budget=300_000)).gfx == ()


def test_a_small_file_of_a_server_without_parts_is_taken_as_a_whole(loopback_index, reading):
    """What fits into the budget need not come in parts."""
    loopback_index.parts = "whole"
    assert wheel_facts(reading(add_torch(loopback_index, "2.16.0", "cpu"))).build == "cpu"


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ("whole", "does not serve parts"),
        ("shifted", "another part"),
        ("longer", "another part|more than"),
        ("packed", "packs"),
        ("slow", "slow"),
    ],
)
def test_a_server_that_does_not_serve_parts_as_asked_is_refused(loopback_index, reading, parts, word):
    """One sentence, and no more than the budget is read of it."""
    wheel = add_torch(loopback_index, "2.16.0", "cu134", sm=(90,), more=5_000)
    loopback_index.parts = parts
    with pytest.raises(Unreadable, match=word):
        wheel_facts(reading(wheel, seconds=1.5))


def test_a_server_that_is_down_is_a_sentence():
    """Whatever the network says of it, without a traceback."""
    with web_client(DIRECT, 2.0, []) as client, pytest.raises(Unreadable, match=r"\w"):
        RemoteWheel(client, "http://127.0.0.1:9/torch.whl", seconds=2)


def test_a_missing_file_is_a_sentence(loopback_index, reading):
    """The server's own status."""
    wheel = add_torch(loopback_index, "2.16.0", "cpu")
    loopback_index.trouble["torch"] = 403
    with pytest.raises(Unreadable, match="HTTP 403"):
        reading(wheel)


def spoil(wheel: Path, place: int, value: bytes) -> None:
    """Write over some bytes of a wheel, counted from its end where negative."""
    content = bytearray(wheel.read_bytes())
    place %= len(content)
    content[place : place + len(value)] = value
    wheel.write_bytes(content)


END = -22  # where the record of the end stands in a zip file without a comment


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (END, b"PX"),  # no zip file
        (END + 12, struct.pack("<L", 0xFFFFFF00)),  # a table of 4 GB
        (END + 16, struct.pack("<L", 0)),  # a table that begins with the file
        (END + 8, struct.pack("<2H", 60_000, 60_000)),  # more files than its bytes can hold
    ],
)
def test_an_absurd_table_of_contents_is_refused(loopback_index, reading, place, value):
    """Before anything of it is believed."""
    wheel = add_torch(loopback_index, "2.16.0", "cpu")
    spoil(wheel, place, value)
    with pytest.raises(Unreadable, match=r"no wheel|cannot be true"):
        wheel_facts(reading(wheel))


def entry(wheel: Path, name: str) -> int:
    """Return where the table of contents tells of a file."""
    return wheel.read_bytes().rindex(name.encode()) - 46


def test_a_bomb_is_not_unpacked(loopback_index, reading):
    """A file that grows beyond what its entry tells, and one that tells of a gigabyte."""
    wheel = add_torch(loopback_index, "2.16.0", "cpu")
    rewrite(wheel, lambda files: {**files, VERSION: b"#" * 5_000_000})
    with pytest.raises(Unreadable, match="too large"):
        wheel_facts(reading(wheel))
    spoil(wheel, entry(wheel, VERSION) + 24, struct.pack("<L", 100))
    with pytest.raises(Unreadable, match="damaged"):
        wheel_facts(reading(wheel))


@pytest.mark.parametrize(
    ("place", "value", "word"),
    [
        (10, struct.pack("<H", 14), "packed"),  # LZMA
        (8, struct.pack("<H", 1), "packed"),  # encrypted
        (16, struct.pack("<L", 1), "damaged"),  # another checksum
        (42, struct.pack("<L", 5), "damaged"),  # another place
        (20, struct.pack("<L", 900_000), "damaged|of it would"),  # longer than it is
    ],
)
def test_a_file_that_is_not_what_its_entry_tells_is_refused(loopback_index, reading, place, value, word):
    """Each of the fields that are used."""
    wheel = add_torch(loopback_index, "2.16.0", "cpu")
    spoil(wheel, entry(wheel, VERSION) + place, value)
    with pytest.raises(Unreadable, match=word):
        wheel_facts(reading(wheel))


def test_more_than_the_budget_is_never_read(loopback_index, reading):
    """A table of 3 MB in which nothing is found: the reader stops, and what it wanted stays unknown."""
    wheel = add_torch(loopback_index, "2.16.0", "cu134", more=20_000)
    table = reading(wheel)
    assert wheel_facts(table).sm == ()
    assert table.bytes_read <= BUDGET
    with pytest.raises(Unreadable, match="kB of it"):
        wheel_facts(reading(wheel, budget=10_000))


def test_a_wheel_on_disk_is_read_likewise(loopback_index):
    """An index may be a folder."""
    wheel = add_torch(loopback_index, "2.16.0", "cu134", sm=(90,))
    with web_client(DIRECT, 2.0, []) as client:
        assert wheel_facts(RemoteWheel(client, wheel.as_uri(), seconds=2)).sm == (90,)
