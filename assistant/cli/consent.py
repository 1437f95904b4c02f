"""What a configuration from elsewhere asks to be trusted: an index or packages that nobody here knows."""

from __future__ import annotations

import sys

from assistant.catalog import load_catalog
from assistant.catalog.indexes import known_index
from assistant.catalog.recipes import recipes
from assistant.cli.terminal import ask
from assistant.i18n import Message, _
from assistant.install import Sources, check_index_url
from assistant.model.errors import BadInput
from assistant.model.plan import Plan
from assistant.model.shell import quoted
from assistant.session.apply import unknown_requirements


def agree_sources(plan: Plan, sources: Sources, packages: tuple[str, ...], *, asks: bool) -> None:
    """Take an unknown index or package only where it is named once more; `--yes` names nothing.

    Raises `BadInput`. This comes before the first request: even to ask an index tells it who is there.
    """
    catalog = load_catalog()
    indexes = tuple(dict.fromkeys(filter(None, (plan.index_url, *plan.indexes))))
    for url in indexes:
        check_index_url(url)
    own, pages = sources.trusted, {url for recipe in recipes() for url in recipe.links.values()}
    unknown = [url for url in (*indexes, *plan.links) if url not in pages and not known_index(url, catalog, own)]
    options = " ".join(f"--trust-index {quoted(url)}" for url in unknown)
    for url in unknown:
        _agree(
            _("The configuration takes packages from {url}, which is no known index. Trust it?", url=url),
            _("The configuration takes packages from {url}, which is no known index.", url=url),
            _("If you trust it, add {options}.", options=options),
            asks=asks,
        )
    if names := unknown_requirements(plan, catalog, packages):
        options = " ".join(f"--trust-requirement {quoted(name)}" for name in names)
        _agree(
            _(
                "The configuration asks for packages that no plan of the assistant needs: {names}. Are all of them "
                "what you expect, letter by letter?",
                names=", ".join(names),
            ),
            _(
                "The configuration asks for packages that no plan of the assistant needs: {names}.",
                names=", ".join(names),
            ),
            _("Read the names letter by letter. If you trust them, add {options}.", options=options),
            asks=asks,
        )


def _agree(question: Message, refusal: Message, hint: Message, *, asks: bool) -> None:
    if not (asks and sys.stdin.isatty() and ask(question, default=False)):
        raise BadInput(refusal, hint=hint)
