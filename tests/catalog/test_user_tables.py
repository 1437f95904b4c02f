"""The user's refreshed tables: one file, used where it is whole and as new as the package's tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tables import each

from assistant.catalog import load_catalog
from assistant.catalog.refresh import Seen, refresh_tables
from assistant.catalog.tables import AmdRelease, TorchRelease, load_table, refreshed_path, user_tables, write_tables
from assistant.host import files
from assistant.model.errors import WorkFailed
from assistant.model.record import replace

TORCH, AMD = "torch.releases", "rocm.amd_releases"
SHIPPED, ROCM = load_table(TORCH, TorchRelease), load_table(AMD, AmdRelease)
SEEN = Seen("pytorch", "torch-9.1.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl")
NEW = refresh_tables(load_catalog(), [SEEN], lambda _name, _version: "", "2030-01-01").tables[TORCH]
NEW_ROCM = replace(ROCM, as_of="2030-01-02", rows=ROCM.rows[:1])

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give this test a data folder of its own."""
    for name in ("XDG_DATA_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    user_tables.cache_clear()
    yield tmp_path
    user_tables.cache_clear()


def in_force():
    """Give the tables that plans rest on."""
    catalog = load_catalog()
    return catalog.table(TORCH, TorchRelease), catalog.table(AMD, AmdRelease)


def test_without_a_refresh_the_shipped_tables_are_in_force():
    """Nothing there is nothing to remark."""
    assert in_force() == (SHIPPED, ROCM)
    assert not load_catalog().remark


def test_refreshed_tables_go_first():
    """What was written is what is read; the other tables are the shipped ones."""
    assert write_tables({TORCH: NEW}) == refreshed_path()
    assert in_force() == (NEW, ROCM)
    assert not load_catalog().remark


def test_a_later_refresh_keeps_what_an_earlier_one_brought():
    """Each table that was refreshed lies in the one file, and no other."""
    write_tables({TORCH: NEW})
    write_tables({AMD: NEW_ROCM})
    assert in_force() == (NEW, NEW_ROCM)
    assert sorted(json.loads(refreshed_path().read_text())) == [AMD, TORCH]


def test_a_fault_in_one_table_spoils_them_all():
    """The file is used whole or not at all: no torch of one state is planned with a ROCm of another."""
    spoilt = {"source": "x", "as_of": "2030-01-01", "rows": [{TORCH: 3}]}
    write_tables({TORCH: NEW, AMD: spoilt})
    assert in_force() == (SHIPPED, ROCM)
    assert "torch" in str(load_catalog().remark)


def test_a_newer_assistant_makes_old_refreshed_tables_void():
    """Tables older than the shipped ones are passed over without a word, even where they lack a release."""
    write_tables({TORCH: replace(NEW, as_of="2020-01-01", rows=NEW.rows[:3]), AMD: NEW_ROCM})
    assert in_force() == (SHIPPED, NEW_ROCM)
    assert not load_catalog().remark


def test_tables_refreshed_on_the_day_of_the_shipped_ones_count():
    """They began with the shipped tables, and hold more."""
    write_tables({TORCH: replace(NEW, as_of=SHIPPED.as_of)})
    assert load_catalog().newest_torch == "9.1.0"


@each(
    ("spoil", "culprit"),
    [
        (lambda _text: "", "truncated"),
        (lambda text: text[:500], "truncated"),
        (lambda _text: "[]", "object"),
        (lambda _text: "[" * 100_000, "catalog.json"),
        (lambda text: text.replace('"torch.releases"', '"prices"'), "prices"),
        (lambda text: text.replace('"version"', '"release"', 1), "release"),
    ],
    ids=["empty", "cut off", "list", "deep", "unknown", "another version"],
)
def test_a_spoilt_file_is_passed_over_with_a_sentence(spoil: Callable[[str], str], culprit: str):
    """The sentence names the file, what is wrong, and the way out; plans rest on the shipped tables."""
    write_tables({TORCH: NEW})
    refreshed_path().write_text(spoil(refreshed_path().read_text()))
    user_tables.cache_clear()
    assert in_force() == (SHIPPED, ROCM)
    for word in (str(refreshed_path()), "catalog refresh", culprit):
        assert word in str(load_catalog().remark)


def test_bytes_that_are_no_text_are_passed_over():
    """And so is a folder in the file's place."""
    path = write_tables({TORCH: NEW})
    path.write_bytes(b"\xff\xfe\x00")
    user_tables.cache_clear()
    assert user_tables().remark
    path.unlink()
    path.mkdir()
    user_tables.cache_clear()
    assert user_tables().remark


def test_a_place_that_cannot_be_written_is_named(home):
    """One sentence, and no tables."""
    (home / "pytorch-setup-assistant").write_text("a file in the way")
    with pytest.raises(WorkFailed, match="cannot be"):
        write_tables({TORCH: NEW})
    (home / "pytorch-setup-assistant").unlink()
    assert in_force() == (SHIPPED, ROCM)


def test_a_refresh_that_breaks_off_leaves_the_tables_before(monkeypatch):
    """The file is replaced as a whole, or stays as it was."""
    write_tables({TORCH: NEW, AMD: NEW_ROCM})
    later = replace(NEW, as_of="2031-01-01")

    def breaking(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "_fsync", breaking)
        with pytest.raises(WorkFailed, match="No space left"):
            write_tables({TORCH: later})
    assert in_force() == (NEW, NEW_ROCM)
    assert not load_catalog().remark
    assert [path.name for path in refreshed_path().parent.iterdir()] == [refreshed_path().name]
    write_tables({TORCH: later})
    assert in_force() == (later, NEW_ROCM)
