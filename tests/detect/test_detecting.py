"""Detection asks many sources at once, never raises, never hangs, and keeps what each one said."""

from __future__ import annotations

import json
import time

import pytest
from tables import each

from assistant.detect import check_fact, detect, facts_to_set, override_facts
from assistant.host.base import Host, ReplayHost
from assistant.machines import load, shipped
from assistant.model.errors import BadInput
from assistant.model.machine import Answer, Detection, Exchange, Gpu, Machine, Recording
from assistant.model.record import from_json, to_json
from assistant.parsers.amd import read_amd_smi


class Odd(Host):
    """A shipped machine on which one kind of question goes wrong."""

    def __init__(self, name, kind, fault):
        self.whole = ReplayHost(load(name))
        self.kind, self.fault = kind, fault

    def ask(self, kind, *arguments):
        """Answer as the shipped machine does, or go wrong."""
        return self.fault() if kind == self.kind else self.whole.ask(kind, *arguments)


def broken():
    """Fail as no answer should."""
    message = "out of order"
    raise RuntimeError(message)


KINDS = ("platform", "packages", "kernels", "disk", "pci", "nvml", "read", "names", "link", "run", "registry", "dxgi")


@pytest.mark.parametrize(
    "name", ["linux-ubuntu2404-rtx4090", "windows11-rtx3060", "wsl-ubuntu2404-rx7900xtx", "macos14-m1"]
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["{}", "[]", "null", '{"devices": [1], "keys": [], "adapters": [1, {}]}', "\x00<b>", "[" * 9999]
)
def test_a_nonsense_answer_never_raises(name, kind, text):
    """Whatever one source answers, a machine comes out that JSON can hold."""
    assert to_json(detect(Odd(name, kind, lambda: Answer(text=text))).machine)


def test_a_probe_that_fails_is_a_finding_and_costs_no_other_fact():
    """A source that raises is told of; what the others say is kept."""
    found = detect(Odd("linux-ubuntu2404-rtx4090", "nvml", broken))
    assert "probe-failed" in {finding.key for finding in found.findings}
    assert found.machine.gpus[0].compute_capability == "8.9"
    assert found.machine.os == "linux"


def test_warnings_before_a_tools_json_hide_no_gpu():
    """Tools print warnings first, some of which begin with a bracket as the JSON does."""
    host = ReplayHost(load("linux-docker-rx7900xtx-amd-smi"))
    text = host.ask("run", "amd-smi", "static", "--asic", "--bus", "--vram", "--json").text
    assert read_amd_smi(text)
    assert read_amd_smi(f"[WARNING] not in the group render\n{text}") == read_amd_smi(text)


def test_a_probe_that_hangs_is_left_behind():
    """A source without an answer costs its own limit, not the others' facts."""

    def slow():
        time.sleep(3)
        return Answer(status="missing")

    started = time.perf_counter()
    found = detect(Odd("linux-ubuntu2404-rx7900xtx", "packages", slow), limit=0.5)
    assert time.perf_counter() - started < 2
    assert "probe-timeout" in {finding.key for finding in found.findings}
    assert found.machine.gpus[0].gfx == "gfx1100"


@pytest.mark.parametrize("status", ["denied", "timeout", "failed"])
def test_could_not_look_differs_from_none_there(status):
    """A bus that cannot be read is a finding and no evidence; an empty bus is evidence and no finding."""
    unread = detect(Odd("linux-debian12-arm64-nothing", "pci", lambda: Answer(status=status)))
    empty = detect(Odd("linux-debian12-arm64-nothing", "pci", Answer))
    assert [finding.key for finding in unread.findings] == ["could-not-look"]
    assert [finding.key for finding in empty.findings] == []
    assert [item.text for item in empty.machine.evidence if item.fact == "gpus"] == ["no display or accelerator device"]
    assert not [item for item in unread.machine.evidence if item.fact == "gpus"]


def test_a_tool_that_fails_is_a_finding():
    """A rocminfo that is there but does not run leaves its facts unknown, which is said."""
    found = detect(Odd("wsl-ubuntu2404-rx7900xtx", "run", lambda: Answer(status="failed", text="hsa_init failed")))
    unread = [finding for finding in found.findings if finding.key == "could-not-look"]
    assert ["rocminfo" in str(finding.text) for finding in unread] == [True]
    assert found.machine.gpus == ()


@each("driver, state", [("nouveau", "nouveau"), ("nova_core", "nouveau"), ("vfio-pci", "vfio"), ("", "missing")])
def test_why_an_nvidia_gpu_has_no_driver_is_told_by_what_drives_it(driver, state):
    """One that is kept for a virtual machine lacks no driver, and one that another driver has needs another step."""
    name = "linux-fedora42-rtx3070-nouveau"
    bus = ReplayHost(load(name)).ask("pci").text.replace("DRIVER=nouveau\n", f"DRIVER={driver}\n" if driver else "")
    assert detect(Odd(name, "pci", lambda: Answer(text=bus))).machine.nvidia_driver_state == state


def test_each_fact_says_where_it_comes_from():
    """The evidence names the source of the driver, the memory and the catalogue's part."""
    machine = detect(ReplayHost(load("linux-ubuntu2404-rx7900xtx"))).machine
    sources = {item.fact: item.source for item in machine.evidence}
    assert sources["gpus[0].pci_id"] == "/sys/bus/pci/devices/0000:03:00.0"
    assert sources["gpus[0].gfx"].startswith("/sys/class/kfd")
    assert sources["gpus[0].name"] == "catalogue"
    assert sources["rocm_version"] == "/opt/rocm/.info/version"


@pytest.mark.parametrize(
    ("executable", "packages", "told"),
    [
        ("/home/user/checkout/.assistant/python3.12-a-b/bin/python", {"numpy": "2.4.6"}, {}),
        ("C:\\checkout\\.assistant\\python3.12-a-b\\Scripts\\python.exe", {"onnx": "1.23.2"}, {}),
        ("/home/user/checkout/.assistant/python3.12-a-b/bin/python", {"torch": "2.13.0"}, {"torch": "2.13.0"}),
        ("/home/user/venv/bin/python", {"numpy": "2.4.6"}, {"numpy": "2.4.6"}),
    ],
)
def test_what_the_assistant_brought_for_itself_is_not_the_users(executable, packages, told):
    """The packages of the assistant's own environment are no fact of the machine, until the user puts torch there."""
    whole = ReplayHost(load("linux-debian12-rx5700xt"))
    platform = whole.facts("platform") | {"executable": executable}

    class Private(Host):
        """The machine, looked at from that Python."""

        def ask(self, kind, *arguments):
            """Answer as the machine, but for the Python and its packages."""
            said = {"platform": platform, "packages": packages}
            return Answer(text=json.dumps(said[kind])) if kind in said else whole.ask(kind, *arguments)

    assert detect(Private()).machine.packages == told


def test_kernels_that_the_assistant_made_are_no_news():
    """Only kernels of the user's own lead to "other Pythons"."""
    names = ("torch-cpu-2.13.0", "torch-nightly-cu130-2.16.0-2", "torch-mine", "old-project")
    kernels = {name: {"program": f"/envs/{name}/bin/python", "language": "python", "works": True} for name in names}
    found = detect(Odd("linux-debian12-rx5700xt", "kernels", lambda: Answer(text=json.dumps(kernels)))).findings
    (told,) = (str(finding.text) for finding in found if finding.key == "kernel-elsewhere")
    assert "torch-mine" in told
    assert "old-project" in told
    assert "2.13.0" not in told
    assert "nightly" not in told


def test_order_does_not_depend_on_which_probe_came_first():
    """Probes that finish in any order give the same text as a replay, which runs them one by one."""
    whole = ReplayHost(load("linux-mint22-laptop-780m-rtx4070"))

    class Jittery(Host):
        """Answers late by an amount that depends on the question."""

        def ask(self, kind, *arguments):
            """Wait a little, then answer."""
            time.sleep(hash((kind, *arguments)) % 5 / 1000)
            return whole.ask(kind, *arguments)

    assert to_json(detect(Jittery())) == to_json(detect(whole))


def test_a_fact_set_by_the_user_wins_and_is_marked():
    """Overrides replace facts, lists of GPUs included, and the evidence says "you"."""
    overrides = {
        "nvidia_driver": "580.95.05",
        "python": "3.11",
        "python_bits": "64",
        "wsl": "true",
        "gpus[0].vram_gb": "48",
        "gpus.1.vendor": "amd",
        "gpus[1].gfx": "gfx1100",
        "env.CUDA_VISIBLE_DEVICES": "0",
        "packages.torch": "2.6.0",
        "container": "",
    }
    machine = detect(ReplayHost(load("linux-docker-ubuntu2204-l4")), overrides=overrides).machine
    assert (machine.nvidia_driver, machine.python, machine.wsl, machine.container) == ("580.95.05", "3.11", True, None)
    assert [(gpu.vendor.value, gpu.vram_gb, gpu.gfx) for gpu in machine.gpus] == [
        ("nvidia", 48.0, None),
        ("amd", None, "gfx1100"),
    ]
    assert (machine.env["CUDA_VISIBLE_DEVICES"], machine.packages["torch"]) == ("0", "2.6.0")
    assert {item.fact for item in machine.evidence if item.source == "you"} == {
        name.replace("gpus.1.", "gpus[1].") for name in overrides
    }
    assert "NVML" not in {item.source for item in machine.evidence if item.fact == "nvidia_driver"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("colour", "red"),
        ("wsl", "maybe"),
        ("gpus[9].gfx", "x"),
        ("gpus[0].colour", "x"),
        ("memory_gb", "lots"),
        ("os", "beos"),
        ("nvidia_driver", "banana"),
        ("memory_gb", "-5"),
        ("memory_gb", "nan"),
        ("memory_gb", "\uff13\uff12"),  # digits of full width, as a Chinese keyboard writes them
        ("disk_free_gb", "0"),
        ("python", "three"),
        ("gpus[0].pci_id", "RTX"),
        ("gpus[0].vendor", "banana"),
        ("asdf", ""),
        ("", ""),
        ("", "x"),
    ],
)
def test_a_fact_that_does_not_exist_or_fit_is_refused(name, value):
    """A wrong name or value of an override is bad input with a next step, in words, before it is looked at."""
    with pytest.raises(BadInput) as raised:
        detect(ReplayHost(load(shipped()[0])), overrides={name: value})
    assert raised.value.hint
    assert "`" not in str(raised.value.message)
    if "[9]" not in name:
        with pytest.raises(BadInput):
            check_fact(name, value)


@pytest.mark.parametrize("name", ["linux-docker-ubuntu2204-l4", "linux-debian12-cpu-container"])
def test_every_fact_that_is_offered_can_be_set_and_taken_back(name):
    """Its example fits it, each of its few values does, and every field of the records is one or is none on purpose."""
    machine = detect(ReplayHost(load(name))).machine
    offered = tuple(facts_to_set(machine))
    for fact in offered:
        for value in (fact.example, *fact.values, ""):
            check_fact(fact.name, value)
            found = override_facts(Detection(machine=machine), {fact.name: value}).machine
            assert value in {item.text for item in found.evidence if item.source == "you"}
    groups = {"schema", "gpus", "packages", "env", "evidence"}
    for field in set(Machine.__struct_fields__) - groups:
        check_fact(field, "")
    for field in Gpu.__struct_fields__:
        check_fact(f"gpus[0].{field}", "")
    assert len({fact.name for fact in offered}) == len(offered)


def test_an_empty_recording_is_a_machine_of_which_nothing_is_known():
    """Nothing recorded means nothing known: no facts, and no failed probes."""
    found = detect(ReplayHost(Recording()))
    assert to_json(found.machine) == "{}"
    assert found.findings == ()


def test_hostile_names_reach_no_terminal():
    """Control and direction characters in a GPU's name are gone from the machine."""
    text = '{"driver":"1.2","devices":[{"name":"\\u001b[31mRTX\\u202e","bus":"0000:01:00.0","pci_id":"10de:2684"}]}'
    said = (
        Exchange(ask=("platform",), answer=load("linux-ubuntu2404-rtx4090").said[0].answer),
        *(item for item in load("linux-ubuntu2404-rtx4090").said if item.ask != ("nvml",)),
        Exchange(ask=("nvml",), answer=Answer(text=text)),
    )
    name = detect(ReplayHost(Recording(said=said))).machine.gpus[0].name or ""
    assert "RTX" in name
    assert not set(name) & {"\x1b", "\u202e"}


@pytest.mark.parametrize("field", ["name", "pci_id", "driver"])
def test_a_name_of_megabytes_is_refused_in_one_sentence(field: str) -> None:
    """What no machine has is not looked up in every table; the sentence says where it stands."""
    text = to_json({"gpus": [{field: "A" * 10**6}]})
    with pytest.raises(BadInput, match=rf"length.*gpus\[0\]\.{field}"):
        from_json(text, Machine, "machine.json")
