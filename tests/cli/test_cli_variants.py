"""`plan --variants` and `detect --variants` at the terminal, held against real uv on a real index."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import forked
import pytest
from loopback import LoopbackIndex, make_variant, make_wheel
from variantlib.variants_json import VariantsJson

pytestmark = pytest.mark.process

AMD = {"requires": ["amd-variant-provider"], "plugin-api": "amd_variant_provider.plugin:AMDVariantPlugin"}
ABOUT = {
    "$schema": "https://variants-schema.wheelnext.dev/v0.2.0.json",
    "default-priorities": {"namespace": ["amd"]},
    "providers": {"amd": AMD},
    "variants": {"rdna3": {"amd": {"gfx_arch": ["gfx1100"]}}, "rdna4": {"amd": {"gfx_arch": ["gfx1201"]}}},
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LoopbackIndex]:
    """Serve `demo`: 1.0 with two variants and a plain wheel, 2.0 with a variant alone; and `other`, that has none."""
    folder = tmp_path / "index" / "demo"
    folder.mkdir(parents=True)
    for version, labels in (("1.0", ["rdna3", "rdna4"]), ("2.0", ["rdna4"])):
        about = {**ABOUT, "variants": {label: ABOUT["variants"][label] for label in labels}}
        (folder / f"demo-{version}-variants.json").write_text(json.dumps(about))
        for label in labels:
            make_variant(make_wheel(folder, "demo", version, "py3-none-any"), label, about)
    make_wheel(folder, "demo", "1.0", "py3-none-any")
    served = LoopbackIndex(tmp_path / "index")
    served.add("other", "3.1")
    yield served
    served.close()


def said(index: LoopbackIndex, wanted: str, machine: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Ask for a package on a recorded machine."""
    return forked.run("plan", "--variants", wanted, "--replay", machine, "--index-url", index.url, *more)


def installed(folder: Path, *options: str) -> str:
    """Let uv install `demo` with its preview and return which wheel it took: its version and label."""
    command = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--no-cache", "--python", sys.executable]
    command += ["--no-config", "--preview-features", "wheel-variants", "--target", str(folder), *options, "demo"]
    subprocess.run(command, check=True, capture_output=True)
    label = folder / "demo" / "label.txt"
    return f"{next(folder.glob('*.dist-info')).stem} {label.read_text() if label.exists() else 'plain'}"


def test_uv_takes_what_is_said(index: LoopbackIndex, tmp_path: Path) -> None:
    """Without a provider the plain wheel of an older version; with the facts in file and wheels, the card's variant."""
    answer = json.loads(said(index, "demo", "linux-ubuntu2404-rx7900xtx", "--json").stdout)
    assert (answer["version"], answer["uv"]["label"], answer["uv"]["unread"]) == ("1.0", "", ["amd"])
    assert installed(tmp_path / "as it is", "--index-url", index.url) == "demo-1.0 plain"
    assert answer["with_facts"]["label"] == "rdna3"
    folder = tmp_path / "index" / "demo"
    (folder / "demo-1.0-variants.json").write_text(json.dumps(answer["variants_json"]))
    with pytest.raises(subprocess.CalledProcessError) as failed:
        installed(tmp_path / "in the file alone", "--index-url", index.url)
    assert b"requires unsupported properties" in failed.value.stderr  # it reads the wheel's own file again
    for label in ABOUT["variants"]:
        make_variant(make_wheel(folder, "demo", "1.0", "py3-none-any"), label, answer["variants_json"])
    assert installed(tmp_path / "in both", "--index-url", index.url) == "demo-1.0 rdna3"


@pytest.mark.usefixtures("index")
def test_a_folder_of_wheels_is_looked_at_too(tmp_path: Path) -> None:
    """`--find-links` names it, here as on uv's command line."""
    folder = tmp_path / "index" / "demo"
    done = forked.run("plan", "--variants", "demo<2", "--find-links", folder, "--offline", "--json")
    assert json.loads(done.stdout)["uv"]["label"] == ""
    assert installed(tmp_path / "target", "--no-index", "--find-links", str(folder)) == "demo-1.0 plain"


def test_it_is_told_in_sentences(index: LoopbackIndex) -> None:
    """What uv takes, what it cannot read, what the facts would change, and that pip knows nothing of it."""
    lines = said(index, "demo==1.0", "linux-arch-rx9070xt").stdout
    assert "takes the plain wheel of demo 1.0." in lines
    assert "uv has no provider of amd: it passes over their variants." in lines
    assert "With this machine's facts as static properties it takes rdna4" in lines
    assert "does not read variants: it takes the plain wheel." in lines
    assert said(index, "other", "macos14-m1").stdout.startswith("other 3.1 has no variants: every installer takes")


def test_where_nothing_fits(index: LoopbackIndex) -> None:
    """Only variants, and none of them for this card: exit 3, as with a plan; also where no such package is."""
    done = said(index, "demo==2.0", "linux-ubuntu2404-rtx4090")
    assert (done.returncode, "finds no wheel of demo 2.0 that fits" in done.stdout) == (3, True)
    assert "there is no plain wheel" in done.stdout
    done = said(index, "nobody", "linux-ubuntu2404-rtx4090")
    assert (done.returncode, "No wheel of nobody fits this machine" in done.stderr) == (3, True)


def test_an_index_that_is_away_and_a_file_that_is_none(tmp_path: Path) -> None:
    """One sentence each, and the exit codes of failed work and of bad input."""
    done = forked.run("plan", "--variants", "demo", "--index-url", "http://127.0.0.1:9/simple")
    assert (done.returncode, "cannot be reached" in done.stderr) == (1, True)
    file = tmp_path / "demo-1.0-variants.json"
    file.write_text(json.dumps({**ABOUT, "providers": {}}))
    done = forked.run("plan", "--variants", file)
    assert (done.returncode, "name different namespaces" in done.stderr) == (2, True)


def test_the_facts_of_a_machine_are_a_file_that_is_read() -> None:
    """`detect --variants` prints static properties as variantlib reads them."""
    done = forked.run("detect", "--variants", "--replay", "linux-ubuntu2404-lunarlake")
    read = VariantsJson(json.loads(done.stdout))
    assert read.providers["intel"].static_properties == {"device_ip": ["20.4.4", "20.1.0"]}
    assert read.namespace_priorities == ["intel", "x86_64"]
