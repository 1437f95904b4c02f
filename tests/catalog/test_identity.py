"""GPUs are identified by id or exact name, never by part of a name."""

from __future__ import annotations

from tables import each

from assistant.catalog.identity import identify, identify_gpu, identify_name, vendor_of
from assistant.model.machine import Gpu, Vendor


@each(
    ("pci_id", "capability", "gfx"),
    [
        ("10de:2684", "8.9", None),
        ("10DE:1C03", "6.1", None),
        ("1002:744c", None, "gfx1100"),
        ("1002:1586", None, "gfx1151"),
    ],
)
def test_a_pci_id_tells_what_code_a_card_runs(pci_id, capability, gfx):
    """A known id gives compute capability or gfx target, whatever its case."""
    card = identify(pci_id)
    assert (card.compute_capability, card.gfx) == (capability, gfx)


def test_a_revision_tells_cards_apart_that_share_an_id():
    """Without a revision every name of the id is told; with one, that card's alone."""
    assert identify("1002:73bf", "c1").name == "Radeon RX 6800 XT"
    assert "/" in identify("1002:73bf").name


@each(
    ("vendor", "name", "answer"),
    [
        (Vendor.NVIDIA, "NVIDIA GeForce RTX 3060", "8.6"),
        (Vendor.NVIDIA, "GA106 [GeForce RTX 3060 Lite Hash Rate]", "8.6"),
        (Vendor.NVIDIA, "Tesla V100-PCIE-16GB", "7.0"),
        (Vendor.AMD, "AMD Radeon(TM) 780M", "gfx1103"),
        (Vendor.AMD, "AMD Radeon RX 7700S", "gfx1102"),
        (Vendor.AMD, "AMD Radeon RX 7700 XT", "gfx1101"),
        (Vendor.AMD, "Vega 10 XL/XT [Radeon RX Vega 56/64]", "gfx900"),
        (Vendor.AMD, "AMD Radeon 880M Graphics", "gfx1150"),
        (Vendor.AMD, "AMD Ryzen AI 9 HX 370 w/ Radeon 890M", "gfx1150"),
        (Vendor.AMD, "AMD Radeon RX 9060 XT 16GB", "gfx1200"),
        (Vendor.AMD, "AMD Radeon RX 6750 GRE 10GB", "gfx1032"),
    ],
)
def test_exact_names_are_known_as_drivers_and_lspci_spell_them(vendor, name, answer):
    """Trade marks, vendor words and lspci's code names do not hide a card."""
    card = identify_name(vendor, name)
    assert answer in {card.compute_capability, card.gfx}


@each("name", ["AMD Radeon(TM) Graphics", "AMD Radeon RX 7700 Ultra", "Radeon", "compATIble controller"])
def test_part_of_a_name_is_never_enough(name):
    """Generic names and unlisted products stay unknown."""
    assert identify_name(Vendor.AMD, name) is None


def test_old_radeons_are_not_mistaken_for_new_ones():
    """An HD 7950 is not a 7900, and a TeraScale card has no DirectX 12."""
    assert identify_name(Vendor.AMD, "AMD Radeon HD 7950").generation == "GCN 1"
    assert identify_name(Vendor.AMD, "AMD Radeon HD 6450").directx12 is False


def test_one_name_for_two_chips_keeps_the_capability_open():
    """A GTX 860M is Kepler or Maxwell: only the id tells."""
    card = identify_name(Vendor.NVIDIA, "GeForce GTX 860M")
    assert card.compute_capability is None
    assert card.candidates == ("3.0", "5.0")


def test_vendor_and_unknown_ids():
    """The vendor half of an id is enough for the vendor; an unknown device is None."""
    assert vendor_of("8086:56a0") is Vendor.INTEL
    assert vendor_of("9999:1234") is Vendor.OTHER
    assert identify("1002:ffff") is None
    assert identify(None) is None
    assert identify_gpu(Gpu(vendor=Vendor.INTEL, name="Intel(R) Arc(TM) A770 Graphics")).xpu == "supported"


@each(
    ("name", "known"),
    [
        ("NVIDIA Corporation GA104 [GeForce RTX 3070] (rev a1)", "8.6"),
        ("GeForce RTX 3090/PCIe/SSE2", "8.6"),
        ("Quadro P5200", "6.1"),  # pci.ids: "Quadro P5200 Mobile"
        ("Advanced Micro Devices, Inc. [AMD/ATI] Navi 31 [Radeon RX 7900 XT/7900 XTX] (rev c8)", "gfx1100"),
        ("AMD Radeon RX 7900 XTX (RADV NAVI31)", "gfx1100"),
        ("AMD Instinct MI250X/MI250", "gfx90a"),
        ("RTX 4090", "8.9"),
        ("GTX1080Ti", "6.1"),
        ("rtx3060 laptop gpu", "8.6"),
        ("RX 7900XTX", "gfx1100"),
        ("rx6700 xt", "gfx1031"),
        ("HD 7950", "GCN 1"),
        ("MI300X", "gfx942"),
        ("AMD Instinct MI300X OAM", "gfx942"),
        ("A770", "Xe-HPG (Alchemist, DG2)"),
        ("Mesa Intel(R) Arc(tm) A770 Graphics (DG2)", "Xe-HPG (Alchemist, DG2)"),
    ],
)
def test_names_are_known_as_tools_write_and_people_type_them(name, known):
    """Maker, revision and driver around a name, and a product line or blank left out of it, hide no card."""
    identity = identify_gpu(Gpu(name=name))
    assert identity is not None
    assert known in {identity.compute_capability, identity.gfx, identity.generation}


def test_a_name_in_no_table_stays_unknown():
    """A name that only resembles known ones is no card of the tables."""
    assert identify_gpu(Gpu(name="AMD Radeon RX 7999 XTX")) is None
    assert identify_gpu(Gpu(name="Radeon Graphics")) is None
