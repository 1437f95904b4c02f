"""Which variant of a wheel uv takes on each recorded machine, held against variantlib and against uv itself."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from loopback import LoopbackIndex, make_variant, make_wheel
from variantlib.api import get_variants_by_priority

from assistant.catalog.variants import x86_level
from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.machines import load, shipped
from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.record import replace, to_json
from assistant.plan.variants import choose_variant, facts_of, read_variants, static, with_facts

MACHINES = {name: detect(ReplayHost(load(name))).machine for name in shipped()}
NVIDIA = {"requires": ["nvidia-variant-provider>=0.0.1,<1.0.0"]}
NVIDIA["plugin-api"] = "nvidia_variant_provider.plugin:NvidiaVariantPlugin"
PROVIDERS = {
    "nvidia": NVIDIA,
    "amd": {"requires": ["amd-variant-provider"], "plugin-api": "amd_variant_provider.plugin:AMDVariantPlugin"},
    "intel": {"requires": ["intel-variant-provider"], "plugin-api": "intel_variant_provider.plugin:IntelVariantPlugin"},
    "x86_64": {"requires": ["x86-64-variant-provider"]},
    "aarch64": {
        "requires": ["provider-variant-aarch64"],
        "plugin-api": "provider_variant_aarch64.plugin:AArch64Plugin",
    },
}


def offer(*namespaces, **variants):
    """Write a file of variants in which these namespaces matter, in this order."""
    return {
        "$schema": "https://variants-schema.wheelnext.dev/v0.2.0.json",
        "default-priorities": {"namespace": list(namespaces)},
        "providers": {name: PROVIDERS[name] for name in namespaces},
        "variants": variants,
    }


def cuda(least, *targets, below=None):
    """Return the properties of a build for CUDA from `least` on."""
    values = {"cuda_version_lower_bound": [least], "cuda_version_upper_bound": [below], "sm_arch": list(targets)}
    return {"nvidia": {name: value for name, value in values.items() if any(value)}}


def amd(*targets, rocm=None):
    """Return the properties of a build for AMD's cards."""
    return {"amd": {"gfx_arch": list(targets), **({"rocm_version": [rocm]} if rocm else {})}}


NEW = [f"{target}_real" for target in (75, 80, 86, 90, 100, 120)]
OLD = [f"{target}_real" for target in (50, 60, 61, 70, 75, 80, 86, 90)]
RDNA = ["gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201", "gfx1151"]
OFFERS = {
    # As torch is built: CUDA by version, ROCm, XPU, and the CPU for all others.
    "everything": offer(
        "nvidia", "amd", "intel",
        cu126=cuda("12.6", *OLD), cu128=cuda("12.8", *NEW), cu130=cuda("13.0", *NEW), cu132=cuda("13.2", *NEW),
        rocm72=amd(*RDNA, "gfx942"), xpu={"intel": {"device_ip": ["12.55.8", "20.1.0"]}}, null={},
    ),
    # One wheel for each target, and bounds above.
    "targets": offer(
        "nvidia", "amd", "intel",
        sm50=cuda("11", "50_virtual"), sm70=cuda("11", "70_real"), sm80=cuda("12", "80_real", "90_real"),
        sm86=cuda("12", "86_real", below="13"), sm89=cuda("12.4", "89_real"), sm120=cuda("12.8", "120_virtual"),
        any=cuda("11.4"), old=cuda("11.4", below="12.6"),
        gfx1100=amd("gfx1100", rocm="7.2"), gfx110x=amd("gfx1100", "gfx1101", "gfx1102"), gfx103x=amd("gfx1030"),
        gfx90a=amd("gfx90a", "gfx942", rocm="7.0"), dg2={"intel": {"device_ip": ["12.55.8"]}},
        lnl={"intel": {"device_ip": ["20.4.4"]}}, bmg={"intel": {"device_ip": ["20.1.0"]}},
        igpu={"intel": {"device_ip": ["12.2.0", "12.3.0"]}},
    ),
    # Cards and processors beside one another, and no variant made for all.
    "processors": offer(
        "aarch64", "nvidia", "amd", "x86_64",
        v4={"x86_64": {"level": ["v4"]}}, v3={"x86_64": {"level": ["v3"]}}, v2={"x86_64": {"level": ["v2"]}},
        v1cuda={"x86_64": {"level": ["v1"]}, **cuda("12.0")},
        v3cuda={"x86_64": {"level": ["v3", "v2"]}, **cuda("12.0")}, v1amd={"x86_64": {"level": ["v1"]}, **amd(*RDNA)},
        arm84={"aarch64": {"version": ["8.4a"]}}, arm85={"aarch64": {"version": ["8.5a"]}},
        arm8={"aarch64": {"version": ["8a"]}},
    ),
    # Two labels of equal worth; whoever names more goes first.
    "ties": offer(
        "amd", "nvidia",
        b=amd("gfx1100"), a=amd("gfx1100", "gfx1030"), more=amd("gfx1100", rocm="7.2.0"),
        z=cuda("12.0"), y=cuda("12.0", "86_real"), x=cuda("12.0", "86_real", "80_real"), null={},
    ),
}  # fmt: skip
FILES = {name: read_variants(json.dumps(one), name) for name, one in OFFERS.items()}


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_reported_has_the_form_of_properties(name):
    """Namespaces, features and values are spelled as PEP 825 has it, and no value comes twice."""
    facts = facts_of(MACHINES[name])
    for namespace, features in facts.properties.items():
        for feature, values in features.items():
            assert re.fullmatch(r"[a-z0-9_]+", namespace + feature)
            assert values
            assert len(set(values)) == len(values)
            assert all(re.fullmatch(r"[a-z0-9_.]+", value) for value in values)


def test_what_providers_would_report():
    """A card of each maker: the bounds around the driver's CUDA, targets, device IPs, versions of ARM."""
    report = {name: facts_of(machine).properties for name, machine in MACHINES.items()}
    hopper = report["linux-ubuntu2204-gh200"]["nvidia"]
    assert hopper["cuda_version_lower_bound"][:3] == ("12.8", "12.7", "12.6")
    assert hopper["cuda_version_lower_bound"][-2:] == ("11.0", "11")
    assert hopper["cuda_version_upper_bound"][-1] == "12.9"
    assert hopper["sm_arch"] == ("90_real", "90_virtual")
    assert report["linux-ubuntu2404-raphael-rx7900xt"]["amd"] == {"gfx_arch": ("gfx1100", "gfx1036")}
    assert report["linux-ubuntu2204-mi300x-bmc"]["amd"]["rocm_version"] == ("7.0.2", "7.0")
    assert report["linux-ubuntu2404-lunarlake"]["intel"] == {"device_ip": ("20.4.4", "20.1.0")}
    assert report["macos14-m1"] == {"aarch64": {"version": ("8.4a", "8.3a", "8.2a", "8.1a", "8a")}}


def test_what_is_unknown_is_not_reported():
    """Without a driver nobody knows the CUDA, so no CUDA variant fits; a processor that was not looked at has v1."""
    facts = facts_of(MACHINES["linux-ubuntu2204-rtx3090-nodriver"])
    assert facts.properties == {"x86_64": {"level": ("v1",)}}
    assert facts.unknown == ("nvidia", "x86_64")
    assert facts_of(Machine(os="linux", arch="x86_64"), 3).properties == {"x86_64": {"level": ("v3", "v2", "v1")}}
    chip = Gpu(vendor=Vendor.APPLE, name="Apple M9")
    assert facts_of(Machine(os="macos", arch="arm64", gpus=(chip,))).unknown == ("aarch64",)


@pytest.mark.parametrize("name", MACHINES)
def test_variantlib_orders_the_same(name, monkeypatch):
    """With the facts as static properties, variantlib takes the same variants in the same order."""
    monkeypatch.setattr(importlib.metadata, "distributions", list)  # it looks at all packages here, each time
    facts = facts_of(MACHINES[name], 3).properties
    for file in FILES.values():
        known = {one: static(facts.get(one) or {"nothing": ("known",)}) for one in file.providers}
        answered = replace(file, providers=known)
        ordered = get_variants_by_priority(variants_json=json.loads(to_json(answered)))
        assert [one.label for one in ordered if one.label in file.variants] == [
            label for label in choose_variant(answered, facts).fitting if label
        ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"default-priorities": {"namespace": ["amd"]}}, "name different namespaces"),
        ({"providers": {"nvidia": {}, "amd": {}, "intel": {}}}, "does not say how nvidia is answered"),
        ({"providers": {"nvidia": {"static-properties": {"a": ["1"], "b": ["2"]}}}}, "different namespaces"),
        ({"variants": {"one": {"tpu": {"x": ["y"]}}}}, "does not say how tpu is answered"),
        ({"unheard": 1}, "unknown field"),
    ],
)
def test_a_file_that_uv_refuses_is_refused(change, reason):
    """A file that no installer would read is named, with the reason."""
    with pytest.raises(BadInput, match=reason):
        read_variants(json.dumps({**OFFERS["everything"], **change}), "the file")


def test_only_wheels_that_are_there_are_taken():
    """Of the labels that fit, those without a wheel for this Python are passed over; without any, nothing is left."""
    facts = facts_of(MACHINES["linux-ubuntu2404-rtx4090"]).properties
    assert choose_variant(FILES["everything"], facts).label == "cu130"
    assert choose_variant(FILES["everything"], facts, here={"cu128", "null", ""}).label == "cu128"
    assert choose_variant(FILES["everything"], facts, here={"cu132"}).label is None


# What uv asks nvidia-smi: the driver's version, the whole report for the CUDA that it speaks, and the capabilities.
SMI = """#!/bin/sh
case "$*" in
  *driver_version*) echo {driver} ;;
  *compute_cap*) printf '{capabilities}' ;;
  *) printf '==============NVSMI LOG==============\\n\\nDriver Version                            : {driver}\\n'
     printf 'CUDA Version                              : {cuda}\\n' ;;
esac
"""


def on_path(folder, machine):
    """Put an nvidia-smi that says what a machine's says into a folder, or none."""
    folder.mkdir()
    features = facts_of(machine).properties.get("nvidia")
    if features:
        cards = [gpu.compute_capability for gpu in machine.gpus if gpu.compute_capability]
        said = {"driver": machine.nvidia_driver or "580.65.06", "cuda": features["cuda_version_lower_bound"][0]}
        tool = folder / "nvidia-smi"
        tool.write_text(SMI.format(**said, capabilities="".join(f"{card}\\n" for card in cards)))
        tool.chmod(0o755)
    return folder


def publish(folder, name, file):
    """Write a file of variants and a wheel for each label, and a plain one, as an index has them."""
    folder.mkdir(parents=True)
    text = to_json(file)
    (folder / f"{name}-1.0-variants.json").write_text(text)
    for label in file.variants:
        make_variant(make_wheel(folder, name, "1.0", "py3-none-any"), label, json.loads(text))
    make_wheel(folder, name, "1.0", "py3-none-any")


def taken(tool, folder, environment):
    """Let an installer install one package of each offer, and read which wheels it took."""
    command = [*tool, "--target", str(folder), *FILES]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    labels = {name: folder / name / "label.txt" for name in FILES}
    return {name: label.read_text() if label.exists() else "" for name, label in labels.items()}


def own_level():
    """Return the level of this test's processor, which uv looks at by itself."""
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return x86_level(frozenset(flags[1].split())) if flags else None


NO_STAGE = sys.platform != "linux" or platform.machine() != "x86_64" or Path("/sys/module/nvidia").exists()


@pytest.mark.process
@pytest.mark.skipif(NO_STAGE, reason="uv would see this computer's own card, or needs another nvidia-smi")
@pytest.mark.parametrize("given", [False, True], ids=["published", "with facts"])
@pytest.mark.parametrize("name", MACHINES)
def test_uv_takes_the_same(name, given, tmp_path):
    """uv, with its preview, installs the variants that we name, from a real index; also where facts are handed over.

    It sees the recorded machine's nvidia-smi and this test's processor.
    """
    facts = facts_of(replace(MACHINES[name], arch="x86_64"), own_level()).properties
    if apple := facts_of(MACHINES[name]).properties.get("aarch64"):
        facts["aarch64"] = apple
    for package, file in FILES.items():
        publish(tmp_path / "index" / package, package, with_facts(file, facts) if given else file)
    index = LoopbackIndex(tmp_path / "index")
    path = f"{on_path(tmp_path / 'bin', MACHINES[name])}{os.pathsep}/usr/bin{os.pathsep}/bin"
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--no-cache", "--python", sys.executable]
    uv += ["--no-config", "--index-url", index.url, "--preview-features", "wheel-variants"]
    try:
        installed = taken(uv, tmp_path / "target", {"PATH": path, "HOME": str(tmp_path)})
    finally:
        index.close()
    assert installed == {package: choose_variant(file, facts, given=given).label for package, file in FILES.items()}


@pytest.mark.process
def test_pip_takes_the_plain_wheel(tmp_path):
    """Variants are nothing to pip: it passes over their file names."""
    for package, file in FILES.items():
        publish(tmp_path / "index" / package, package, file)
    index = LoopbackIndex(tmp_path / "index")
    pip = [sys.executable, "-m", "pip", "--isolated", "install", "--index-url", index.url, "--no-cache-dir"]
    try:
        assert set(taken(pip, tmp_path / "target", {**os.environ}).values()) == {""}
    finally:
        index.close()
