"""Every card of the catalogue has a page, and gets what its page says."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from assistant.catalog.identity import CardTables
from assistant.catalog.tables import read_tables


@pytest.fixture
def written_cards(monkeypatch):
    """Load what writes the pages, which only Sphinx imports otherwise."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs")
    return importlib.import_module("written_cards")


def test_each_card_is_told_on_its_page_what_it_gets(written_cards):
    """The page is chosen by name and by what decides, and each of its cards gets the same builds by itself."""
    pages = {(name, card.target): card for card in written_cards.cards() for name in card.names}
    slugs = [card.slug for card in written_cards.cards()]
    assert len({*slugs}) == len(slugs) > 300
    missing, wrong = [], []
    for vendor in written_cards.PCI:
        for row in read_tables(f"gpus_{vendor.value}", CardTables).cards.rows:
            for name in () if row.generic else row.names:
                card = pages.get((name, written_cards._target(row)))
                if card is None:
                    missing += [] if written_cards._UNSURE.search(name) else [name]
                    continue
                alone = written_cards._plans(vendor, row, name)
                both = [(card.plans[key].choice, one.choice) for key, one in alone.items()]
                same = all((a.variant, a.torch, a.index_url) == (b.variant, b.torch, b.index_url) for a, b in both)
                wrong += [] if same else [f"{card.slug}: {name}"]
    assert missing == []
    assert wrong == []
