"""How fast a card is in half precision: what a data sheet says of its name, else its generation's weakest card."""

from tables import each

from assistant.catalog.identity import Rate, find_rate
from assistant.model.machine import Vendor


@each(
    ("name", "code", "memory", "rate"),
    [
        ("NVIDIA GeForce RTX 4090", "8.9", 24.0, Rate(165.2, exact=True)),
        ("NVIDIA A100-SXM4-80GB", "8.0", 79.2, Rate(312.0, exact=True)),  # two spellings that are one name
        ("NVIDIA GeForce RTX 3080", "8.6", 9.8, Rate(59.5, exact=True)),
        ("NVIDIA GeForce RTX 3080", "8.6", 11.9, Rate(61.2, exact=True)),
        ("NVIDIA of tomorrow", "8.9", 24.0, Rate(17.8, exact=False)),
        ("NVIDIA of tomorrow", "99.0", 24.0, None),
    ],
)
def test_a_name_goes_before_a_generation(name: str, code: str, memory: float, rate: Rate | None) -> None:
    """Cards of one name are told apart by their memory; of an unknown generation nothing is said."""
    assert find_rate(Vendor.NVIDIA, name, code, memory) == rate
