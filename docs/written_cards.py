"""The pages of cards: what to install for a GPU on each system, as the planner answers it from the catalogue alone.

A card has a page of its own, with its variants (Ti, Laptop GPU, 16GB), where some system has a build for its maker's
GPUs. All others, which share one answer, share a page by their generation: a thousand pages that say the same would be
slow to build, and search engines drop such copies. The pages go straight into the theme's layout (a quarter of the time
that documents take); their list is a document, by which the site's own search finds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from sphinx.application import Sphinx
from written_markdown import block, head, plain, prose

from assistant.catalog import load_catalog
from assistant.catalog.identity import CardRow, CardTables
from assistant.catalog.tables import read_tables
from assistant.i18n import Message, render, say
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import replace
from assistant.model.shell import settings, shell_of
from assistant.plan import make_plans
from assistant.session.remedy_plans import CHECKS, pip_commands
from assistant.session.seen import seen
from assistant.session.support import SYSTEMS, matrix
from assistant.views import plan_summary, rejected_name, rejection_reason

TITLES = {"windows": "Windows", "linux": "Linux", "wsl": "WSL", "macos": "macOS"}
PCI = {Vendor.NVIDIA: "10de", Vendor.AMD: "1002", Vendor.INTEL: "8086"}
MAKERS = {Vendor.NVIDIA: "NVIDIA", Vendor.AMD: "AMD", Vendor.INTEL: "Intel", Vendor.APPLE: "Apple"}
THEMED = {  # as the theme's style sheet knows them
    "<table>": '<table class="docutils align-default">',
    "<ul>": '<ul class="simple">',
    '<pre><code class="language-text">': '<div class="highlight"><pre>',
    "</code></pre>": "</pre></div>",
}
NAMED = 4  # chosen: names of cards in a heading; all stand on the page
_UNSURE = re.compile(r"[/()\[\],]")  # several cards, or a chip's name
_STEM = re.compile(r"(?:\D*\s)?[A-Za-z-]{0,4}\d+|.+")  # "GeForce RTX 4060" of "GeForce RTX 4060 Ti 16GB"


class Card(NamedTuple):
    """A page: its name in addresses, the cards' names, shortest first, what decides, machines and plans by system."""

    slug: str
    maker: str
    names: tuple[str, ...]
    target: str
    machines: dict[str, Machine]
    plans: dict[str, Planning]


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the pages of the cards to a site of HTML."""
    app.connect("html-collect-pages", lambda _app: map(_collected, cards()))
    return {"parallel_read_safe": True}


@cache
def cards() -> tuple[Card, ...]:
    """Return all pages of cards, in the order of their list."""
    return (*(card for vendor in PCI for card in _cards(vendor)), _apple())


def name_of(card: Card) -> str:
    """Return the name of a card's page within the site."""
    return f"reference/written/cards/{card.slug}"


def _collected(card: Card) -> tuple[str, dict[str, Any], str]:
    """Return a card's page as Sphinx takes it: its name, what its template shows, and the template."""
    title, description, *lines = _page(card)
    body = MarkdownIt().enable("table").render("\n".join([f"# {title}\n", *lines]))
    for plain_one, themed in THEMED.items():
        body = body.replace(plain_one, themed)
    about = f'<meta name="description" content="{escape(description)}" />'
    return name_of(card), {"title": escape(title), "body": body, "metatags": about}, "page.html"


def _cards(vendor: Vendor) -> Iterator[Card]:
    """Yield the pages of one maker's cards."""
    tables = read_tables(f"gpus_{vendor.value}", CardTables)
    chips = {_target(row): row.generation or "" for row in (tables.chips.rows if tables.chips else ())}
    pages: dict[tuple[str, str], dict[str, CardRow]] = {}
    uses: dict[tuple[str, str | None], bool] = {}
    for row in tables.cards.rows:
        kind = _target(row), row.xpu
        if kind not in uses:
            uses[kind] = any(_uses(planning.choice) for planning in _plans(vendor, row, row.names[0]).values())
        own = uses[kind]
        for name in () if row.generic else row.names:
            stem = _STEM.match(name)[0].strip() if own and not _UNSURE.search(name) else ""
            if stem or not own:
                pages.setdefault((stem, _target(row)), {}).setdefault(name, row)
    for (stem, target), named in sorted(pages.items()):
        names = tuple(sorted(named, key=lambda name: (name != stem, not name.startswith(f"{stem} "), len(name), name)))
        known = chips.get(target, "")
        title = stem or f"{MAKERS[vendor]} {known or target}"
        several = not stem or sum(other == stem for other, _target in pages) > 1
        slug = f"{title} {target}" if several and target not in title else title
        slug = re.sub(r"[^a-z0-9.]+", "-", slug.lower()).strip("-")
        machines = _machines(vendor, named[names[0]], names[0])
        yield Card(slug, MAKERS[vendor], names if stem else (title, *names), target, machines, _planned(machines))


def _apple() -> Card:
    """Return the page of Apple's chips, which all get the same build."""
    cell = next(cell for cell in matrix() if cell.family.vendor == Vendor.APPLE.value and cell.plan)
    machines = {cell.system: replace(SYSTEMS[cell.system], gpus=cell.family.gpus)}
    names = (f"Apple {cell.family.family}",)
    return Card("apple", MAKERS[Vendor.APPLE], names, cell.family.family, machines, _planned(machines))


def _target(row: CardRow) -> str:
    """Return what decides which builds hold code for a card."""
    return row.gfx or row.cc or row.generation or ""


def _uses(plan: Plan | None) -> bool:
    """Return whether a plan takes a build for its maker's GPUs; DirectML is the same for all of them."""
    return plan is not None and plan.backend not in {Backend.CPU, Backend.DIRECTML}


def _plans(vendor: Vendor, row: CardRow, name: str) -> dict[str, Planning]:
    """Plan for a computer with one card, on each system."""
    return _planned(_machines(vendor, row, name))


def _planned(machines: dict[str, Machine]) -> dict[str, Planning]:
    return {key: make_plans(machine, load_catalog()) for key, machine in machines.items()}


def _machines(vendor: Vendor, row: CardRow, name: str) -> dict[str, Machine]:
    """Return a computer with one card and an unknown driver, on each system; NVIDIA's own computers have ARM."""
    pci_id = f"{PCI[vendor]}:{row.ids[0].partition(':')[0]}" if row.ids and vendor is Vendor.INTEL else None
    integrated = row.integrated
    card = Gpu(vendor=vendor, name=name, compute_capability=row.cc, gfx=row.gfx, pci_id=pci_id, integrated=integrated)
    board = vendor is Vendor.NVIDIA and integrated
    systems = {"linux": replace(SYSTEMS["linux"], arch="aarch64")} if board else _PCS
    return {key: replace(machine, gpus=(card,)) for key, machine in systems.items()}


_PCS: dict[str, Machine] = {key: SYSTEMS[key] for key in ("windows", "linux", "wsl")}


def card_list() -> Iterator[str]:
    """Yield the page that lists all cards with their answers."""
    yield "# " + say("What to install, by graphics card") + "\n"
    text = say(
        "Each page says which PyTorch a card gets on which system, and why. `assistant plan` answers for the computer "
        "at hand, with its driver and its Python."
    )
    yield f"{text}\n"
    for maker in MAKERS.values():
        theirs = [card for card in cards() if card.maker == maker]
        systems = [key for key in TITLES if any(key in card.plans for card in theirs)]
        yield f"## {maker}\n\n" + head(say("Card"), *(TITLES[key] for key in systems))
        for card in theirs:
            cells = (_in_short(card.plans[key].choice) if key in card.plans else "" for key in systems)
            yield f"| [{plain(_named(card))}](card:{card.slug}) | {' | '.join(cells)} |"
        yield ""


def _in_short(plan: Plan | None) -> str:
    return f"{plan.backend.title}, {plan.torch}" if plan else "–"


def _named(card: Card) -> str:
    """Name the cards of a page in a heading, without repeating their line."""
    first, *others = card.names
    shared = re.match(r"[A-Za-z]+ (?=[A-Za-z])", first)
    line = shared[0] if shared else ""
    return ", ".join([first, *(name.removeprefix(line) for name in others)][:NAMED])


def _page(card: Card) -> Iterator[str]:
    lead, others = _named(card), len(card.names) - NAMED
    systems = ", ".join(TITLES[key] for key in card.plans)
    title = say("{cards} on {systems}: what to install for PyTorch", cards=lead, systems=systems)
    answers = ", ".join(f"{TITLES[key]}: {_in_short(one.choice)}" for key, one in card.plans.items())
    yield from (plain(title), f"{title} ({answers})")
    yield head(say("System"), say("PyTorch"), say("Computes on"))
    for key, planning in card.plans.items():
        plan = planning.choice
        device = say("the GPU") if plan and plan.backend is not Backend.CPU else say("the processor")
        yield f"| {TITLES[key]} | {_in_short(plan)} | {device} |"
    text = say(
        "For a computer with this card, Python {python} and a driver that is not known, by the tables of {date}; no "
        "index was asked. `assistant setup` looks at the computer itself and takes the build that fits its driver."
    )
    yield f"\n{text.format(python=SYSTEMS['linux'].python, date=load_catalog().torch.releases.as_of)}\n"
    for key, planning in card.plans.items():
        yield from _section(card.names[0], key, card.machines[key], planning)
    if len(card.names) > 1:
        heading = say("All cards of this page ({count})", count=len(card.names)) if others > 0 else say("Cards")
        yield f"## {heading}\n\n{', '.join(map(plain, card.names))}.\n"
    yield say("What decides: {target}. [All cards](../cards.html).", target=f"`{card.target}`")


def _section(name: str, system: str, machine: Machine, planning: Planning) -> Iterator[str]:
    """Yield what to install on a system, why, and what to mind."""
    yield "## " + plain(say("{card} on {system}", card=name, system=TITLES[system])) + "\n"
    plan = planning.choice
    if plan is None:
        yield from (f"- {_why(rejection)}" for rejection in planning.rejected)
        return
    yield f"**{_said(plan_summary(plan))}**\n"
    yield from (f"- {_said(text)}" for text in plan.reasons)
    if found := seen(machine, plan):
        yield f"- {_said(found.text)}"
    yield from ("- " + say("Mind:") + f" {_said(text)}" for text in plan.warnings)
    if plan.backend is Backend.CPU:
        told = {render(text) for text in plan.warnings}
        whys = (sentence for one in planning.rejected if render(sentence := rejection_reason(one)) not in told)
        yield from (f"- {_said(sentence)}" for sentence in whys)
    yield "\n" + say("With the assistant, into an environment of its own, verified before it counts:") + "\n"
    yield block(["assistant setup"])
    yield say("With pip alone, in an environment of Python {python}:", python=plan.python) + "\n"
    sets = [line for _shell, lines in settings(plan.env, shell_of(system)) for line in lines] if plan.env else []
    yield block([*sets, *pip_commands(plan), CHECKS[plan.backend]])
    link = f"../../../how-to/{plan.backend.value}.html"
    yield say("More: [{title}]({link}).", title=plan.backend.title, link=link) + "\n"


def _why(rejection: object) -> str:
    return f"{rejected_name(rejection)}: {_said(rejection_reason(rejection))}"


def _said(text: str | Message) -> str:
    return prose(render(text))
