"""The user's refreshed tables: an edition of their own, used file by file while it is whole and no older than ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assistant.catalog import load_catalog, user
from assistant.catalog.editions import MANIFEST, editions, look_again, refreshed_folder
from assistant.catalog.refresh import Seen, kept, refreshed
from assistant.catalog.rows import CudaTables, RocmTables, TorchTables
from assistant.catalog.tables import read_tables
from assistant.catalog.user import write_tables
from assistant.host.files import write_whole
from assistant.host.lock import Lock
from assistant.model.errors import WorkFailed
from assistant.model.record import replace

SHIPPED = read_tables("torch", TorchTables)
SEEN = Seen("cpu", "torch-9.1.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl")
NEW = refreshed(kept(load_catalog()), [SEEN], {}, "2030-01-01").tables.torch
ROCM, CUDA = read_tables("rocm", RocmTables), read_tables("cuda", CudaTables)
NEW_ROCM = replace(ROCM, code=replace(ROCM.code, as_of="2030-01-02", rows=ROCM.code.rows[:1]))

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give this test a data folder of its own."""
    for name in ("XDG_DATA_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    look_again()
    yield tmp_path
    look_again()


def torch_file() -> Path:
    """Name the one torch file that lies in the user's folder."""
    (path,) = refreshed_folder().glob("torch*.json")
    return path


def test_without_a_refresh_the_shipped_tables_are_in_force():
    """Nothing there is nothing to remark."""
    assert load_catalog().torch == SHIPPED
    assert not load_catalog().remark


def test_refreshed_tables_go_first():
    """What was written is what is read, by all who read it; the other files are the shipped ones."""
    assert write_tables({"torch": NEW}) == refreshed_folder() / MANIFEST
    assert read_tables("torch", TorchTables) == load_catalog().torch == NEW
    assert load_catalog().cuda == CUDA
    assert not load_catalog().remark


def test_several_tables_are_one_edition():
    """A later refresh of one file keeps what an earlier one brought of the others."""
    write_tables({"torch": NEW})
    write_tables({"rocm": NEW_ROCM})
    assert (load_catalog().torch, load_catalog().rocm) == (NEW, NEW_ROCM)
    manifest = json.loads((refreshed_folder() / MANIFEST).read_text())
    assert (manifest["schema"], manifest["as_of"], sorted(manifest["files"])) == (1, "2030-01-02", ["rocm", "torch"])


def test_one_file_of_a_broken_edition_spoils_them_all():
    """An edition is whole or not there: no torch of one state is planned with a ROCm of another."""
    write_tables({"torch": NEW, "rocm": NEW_ROCM})
    next(refreshed_folder().glob("rocm-*.json")).unlink()
    look_again()
    assert (load_catalog().torch, load_catalog().rocm) == (SHIPPED, ROCM)
    assert "rocm-" in str(load_catalog().remark)


def test_a_fault_found_late_spoils_them_all():
    """A table that has the right checksum and the wrong fields is found when it is read."""
    spoilt = {"code": {"source": "x", "as_of": "2030-01-01", "rows": [{"variant": 3}]}}
    write_tables({"torch": NEW, "rocm": spoilt})
    assert (load_catalog().torch, load_catalog().rocm) == (SHIPPED, ROCM)
    assert "variant" in str(load_catalog().remark)


def test_files_no_longer_named_are_deleted_one_refresh_later():
    """A process that began before a refresh finds its files; the next refresh takes them away."""
    for day in ("2030-01-01", "2030-01-02", "2030-01-03"):
        write_tables({"torch": replace(NEW, releases=replace(NEW.releases, as_of=day))})
    assert len(list(refreshed_folder().glob("torch-*.json"))) == 2
    assert load_catalog().torch.releases.as_of == "2030-01-03"


def test_a_newer_assistant_makes_old_refreshed_tables_void():
    """Tables older than the shipped ones are passed over without a word, even where they lack a release."""
    aged = {
        name: replace(getattr(NEW, name), as_of="2020-01-01") for name in ("releases", "basics", "downloads", "later")
    }
    aged["releases"] = replace(aged["releases"], rows=aged["releases"].rows[:3])
    write_tables({"torch": replace(NEW, **aged), "rocm": NEW_ROCM})
    assert (load_catalog().torch, load_catalog().rocm) == (SHIPPED, NEW_ROCM)
    assert not load_catalog().remark


def test_a_release_lost_is_a_fault():
    """Newer tables without a release that the assistant knows are passed over, and the release is named."""
    write_tables({"torch": replace(NEW, releases=replace(NEW.releases, rows=NEW.releases.rows[1:]))})
    assert load_catalog().torch == SHIPPED
    assert "torch 1.13.0 is missing" in str(load_catalog().remark)


@pytest.mark.parametrize(
    ("spoil", "culprit"),
    [
        (lambda _text: "", "checksum"),
        (lambda text: text[:500], "checksum"),
        (lambda text: text.replace("9.1.0", "9.9.9"), "checksum"),
    ],
    ids=["empty", "cut off", "edited"],
)
def test_a_spoilt_file_is_passed_over_with_a_sentence(spoil: Callable[[str], str], culprit: str):
    """The sentence names the folder, what is wrong, and the way out; plans rest on the shipped tables."""
    write_tables({"torch": NEW})
    torch_file().write_text(spoil(torch_file().read_text()))
    look_again()
    assert load_catalog().torch == SHIPPED
    for word in (str(refreshed_folder()), "catalog refresh", culprit):
        assert word in str(load_catalog().remark)


@pytest.mark.parametrize(
    ("spoil", "culprit"),
    [
        (lambda _text: "", "truncated"),
        (lambda text: text[:100], "truncated"),
        (lambda _text: "[]", "manifest.json"),
        (lambda _text: '{"schema": 1}', "as_of"),
        (lambda text: text.replace("torch-", "../../torch-"), "torch"),
        (lambda text: text.replace("torch-", "/etc/torch-"), "torch"),
        (lambda text: text.replace('"torch"', '"prices"'), "names no table"),
        (lambda text: text.replace("2030-01-01", "2030-13-41"), "as_of"),
        (lambda text: text.replace('"schema": 1', '"schema": 0'), "older assistant"),
        (lambda text: text.replace('"schema": 1', '"schema": "1"'), "manifest.json"),
        (lambda text: text.replace('"schema": 1', '"schema": 2, "new": []'), "update the assistant"),
    ],
    ids=["empty", "cut", "list", "bare", "up", "rooted", "unknown", "no day", "older", "text", "newer"],
)
def test_a_spoilt_manifest_is_passed_over_with_a_sentence(spoil: Callable[[str], str], culprit: str):
    """Whatever stands in it, plans rest on the shipped tables, and no file outside the folder is opened."""
    write_tables({"torch": NEW})
    manifest = refreshed_folder() / MANIFEST
    manifest.write_text(spoil(manifest.read_text()))
    look_again()
    assert load_catalog().torch == SHIPPED
    assert str(refreshed_folder()) in str(load_catalog().remark)
    assert culprit in str(load_catalog().remark)


def test_bytes_that_are_no_text_are_passed_over():
    """And so is a folder in the file's place."""
    manifest = write_tables({"torch": NEW})
    manifest.write_bytes(b"\xff\xfe\x00")
    look_again()
    assert editions().remark
    manifest.unlink()
    manifest.mkdir()
    look_again()
    assert editions().remark


def test_a_place_that_cannot_be_written_is_named(home):
    """One sentence, and no half of an edition."""
    (home / "pytorch-setup-assistant").write_text("a file in the way")
    with pytest.raises(WorkFailed, match="cannot be"):
        write_tables({"torch": NEW})
    assert load_catalog().torch == SHIPPED


def test_a_refresh_that_breaks_off_leaves_the_edition_before(monkeypatch):
    """Whichever file could not be written any more, the old manifest names the old files, which are all there."""
    write_tables({"torch": NEW, "rocm": NEW_ROCM})
    later = replace(NEW, releases=replace(NEW.releases, as_of="2031-01-01"))
    for last in range(3):
        written: list[Path] = []

        def breaking(path: Path, data: str | bytes, last: int = last, written: list[Path] = written) -> None:
            if len(written) == last:
                raise OSError(28, "No space left on device", str(path))
            written.append(path)
            write_whole(path, data)

        with monkeypatch.context() as patch:
            patch.setattr(user, "write_whole", breaking)
            with pytest.raises(WorkFailed, match="No space left"):
                write_tables({"torch": later})
        look_again()
        assert (load_catalog().torch, load_catalog().rocm) == (NEW, NEW_ROCM)
        assert not load_catalog().remark
    write_tables({"torch": later})
    assert (load_catalog().torch, load_catalog().rocm) == (later, NEW_ROCM)


def test_two_refreshes_do_not_mix():
    """The second one is told to wait; none deletes the files of the other."""
    lock = Lock(refreshed_folder() / "lock")
    assert lock.take() is None
    with pytest.raises(WorkFailed, match="Another refresh"):
        write_tables({"torch": NEW})
    lock.release()
    assert write_tables({"torch": NEW}).is_file()
    assert not (refreshed_folder() / "lock").exists()
