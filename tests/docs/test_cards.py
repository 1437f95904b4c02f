"""Every card of the catalogue has a page, and gets what its page says."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from contributed import ROW

from assistant.catalog.identity import CardTables
from assistant.catalog.tables import Table, read_tables
from assistant.model.record import replace
from assistant.session import seen
from assistant.session.seen import SeenRow, SeenTables


@pytest.fixture
def written_cards(monkeypatch):
    """Load what writes the pages, which only Sphinx imports otherwise."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs")
    return importlib.import_module("written_cards")


def test_each_page_says_where_its_builds_were_seen_and_no_more(written_cards, monkeypatch):
    """Each system with a plan has one sentence: how many machines and the last month, or that there are none yet."""
    (card,) = (card for card in written_cards.cards() if card.slug == "geforce-rtx-4090")
    choice = card.plans["linux"].choice
    row = replace(ROW, variant=choice.variant, torch=choice.torch)
    table = SeenTables(seen=Table[SeenRow](source="it", as_of="2026-11-27", rows=(row,)))
    unknown = 0
    for card in written_cards.cards():
        plans = [(card.machines[key], one.choice) for key, one in card.plans.items() if one.choice]
        known = [plan for machine, plan in plans if seen.case_of(machine, plan)]
        told = [line for line in written_cards._page(card) if line.startswith("- Not yet seen working")]
        assert len(told) == len(known), card.slug
        unknown += len(plans) - len(known)
    assert unknown <= 4  # names that cards of several generations share
    monkeypatch.setattr(seen, "read_tables", lambda _name, _kind: table)
    seen._by_case.cache_clear()
    pages = {card.slug: list(written_cards._page(card)) for card in written_cards.cards()}
    told = {slug: [line for line in lines if line.startswith("- Seen working")] for slug, lines in pages.items()}
    seen._by_case.cache_clear()
    assert told["geforce-rtx-4090"] == ["- Seen working on 3 machines of this kind, last in 2026-10."]
    assert {slug for slug, lines in told.items() if lines} == {
        card.slug for card in written_cards.cards() if card.target == "8.9"
    }


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
