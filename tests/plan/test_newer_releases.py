"""Releases that the tables do not describe: what holds for their predecessors is assumed, and said to be."""

from __future__ import annotations

import msgspec
from catalogs import catalog_as_of, with_release
from tables import each

from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.model.record import replace
from assistant.plan import make_plans

KNOWN = catalog_as_of("2.15.0")


def catalog_with(version, *variants, unconfirmed=(), like=KNOWN.releases[0]):
    """Return the catalogue with one more release, which has these variants on Linux and Windows."""
    row = replace(
        like,
        version=version,
        variants={"linux_x86_64": variants, "windows_amd64": variants},
        unconfirmed={"linux_x86_64": tuple(unconfirmed)},
        torchvision=(),
        torchaudio=(),
    )
    return with_release(KNOWN, row)


def planned(catalog, capability, driver="580.95.05", request=None, **facts):
    """Plan for a Linux machine with one NVIDIA card."""
    card = Gpu(vendor=Vendor.NVIDIA, name=f"Card {capability}", compute_capability=capability)
    given = {"os": "linux", "arch": "x86_64", "python": "3.12", "nvidia_driver": driver, "gpus": (card,)}
    return make_plans(Machine(**{**given, **facts}), catalog, request or Request())


def said(planning):
    """Return every word of an answer."""
    return msgspec.json.encode(planning, enc_hook=str).decode()


@each(
    ("capability", "driver", "variant"),
    [("8.6", "580.95.05", "cu130"), ("8.6", "595.58.03", "cu132"), ("12.0", "580.95.05", "cu130")],
)
def test_a_new_release_inherits_the_code_of_its_predecessor(capability, driver, variant):
    """A release past the last row of its variant is planned, and its code is said to be assumed."""
    answer = planned(catalog_with("2.16.0", "cu130", "cu132", "cu134", "cpu"), capability, driver)
    assert (answer.choice.torch, answer.choice.variant) == ("2.16.0", variant)
    assert "is assumed to hold code" in str(answer.choice.reasons[0])


def test_a_new_rocm_build_inherits_the_code_of_its_predecessor():
    """So it is for a card of AMD."""
    card = Gpu(vendor=Vendor.AMD, name="Radeon RX 9070 XT", gfx="gfx1201")
    catalog = catalog_with("2.16.0", "rocm7.2", "cpu")
    choice = planned(catalog, "", None, Request(backend=Backend.ROCM), gpus=(card,)).choice
    assert (choice.torch, choice.variant) == ("2.16.0", "rocm7.2")
    assert "is assumed to hold code" in str(choice.reasons[0])


def test_a_new_cuda_inherits_the_code_of_the_one_before_it():
    """A variant without any row has the code of the next lower one, and the floor of its major."""
    catalog = catalog_with("2.16.0", "cu136", "cpu")
    assert planned(catalog, "8.6").choice.variant == "cu136"
    refused = planned(catalog, "8.6", "570.26").rejected
    assert any(one.key == "nvidia-driver-too-old" and "needs driver 580" in str(one.why) for one in refused)


def test_a_card_that_the_predecessor_left_out_is_not_promised():
    """What inherits no code for Pascal is only assumed to have none."""
    answer = planned(catalog_with("2.16.0", "cu130", "cpu"), "6.1")
    assert answer.choice.torch == "2.14.1"
    assert any("That is assumed" in str(one.why) for one in answer.rejected)


def test_a_new_cuda_major_runs_where_the_driver_speaks_it():
    """No row knows the driver of a new major: the CUDA version that the driver names decides, else it is unknown."""
    catalog = catalog_with("2.17.0", "cu140", "cpu")
    assert planned(catalog, "8.6", "640.10", cuda_driver_api="14.1").choice.variant == "cu140"
    older = planned(catalog, "8.6", "640.10", cuda_driver_api="13.4")
    assert older.choice.torch == "2.15.0"
    assert any("needs driver CUDA 14.0 or newer" in str(one.why) for one in older.rejected)
    unknown = planned(catalog, "8.6", "640.10")
    assert unknown.choice.torch == "2.15.0"
    assert [one.key for one in unknown.rejected if one.variant == "cu140"] == ["driver-floor-unknown"]


def test_a_patch_of_an_old_line_is_planned():
    """2.14.2 for CUDA 12.6 beside 2.15.0 is what a Pascal card gets, and no assumption: its line is known."""
    answer = planned(catalog_with("2.14.2", "cu126", "cpu", like=KNOWN.release("2.14.1")), "6.1")
    assert (answer.choice.torch, answer.choice.variant) == ("2.14.2", "cu126")
    assert "assumed" not in str(answer.choice.reasons[0])


@each(
    ("variants", "unconfirmed", "python", "text"),
    [
        (("cpu",), (), "3.12", "no CUDA build of it is known for this system"),
        (("cu130",), ("cu130",), "3.12", "no index has been seen to hold its CUDA build"),
        (("cu130",), (), "3.9", "has no CUDA build for Python 3.9"),
    ],
)
def test_nothing_newer_is_passed_over_silently(variants, unconfirmed, python, text):
    """Where the plan is not of the newest release, a reason says why."""
    answer = planned(catalog_with("2.16.0", *variants, unconfirmed=unconfirmed), "8.6", python=python)
    assert answer.choice.torch != "2.16.0"
    assert any("torch 2.16.0 is newer" in str(one) and text in str(one) for one in answer.choice.reasons)


def test_a_newer_glibc_is_named():
    """A build that the system is too old for is not passed over silently either."""
    answer = planned(catalog_with("2.16.0", "cu130", "cpu"), "8.6", glibc="2.17")
    assert any("needs a newer system" in str(one) for one in answer.choice.reasons)


def test_what_the_pins_exclude_is_not_told():
    """Who asks for an older torch is not told that there is a newer one."""
    answer = planned(catalog_with("2.16.0", "cu130"), "8.6", request=Request(pins=("torch<2.15",)))
    assert answer.choice.backend is Backend.CUDA
    assert "is newer" not in said(answer.choice)
