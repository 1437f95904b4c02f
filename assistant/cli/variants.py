"""What `plan --variants` and `detect --variants` print: the choice of installers that read variants, and the facts."""

from __future__ import annotations

from pathlib import Path

import click
from packaging.requirements import Requirement

from assistant.cli.inputs import read_file
from assistant.cli.terminal import echo, echo_json
from assistant.install import Sources, check_requirement
from assistant.model.errors import NothingFits
from assistant.model.machine import Machine
from assistant.plan import Facts, read_variants
from assistant.session.variants import Variants, variants_in, variants_of


def variants_for(wanted: str, machine: Machine, facts: Facts, python: str, sources: Sources) -> Variants:
    """Say which variant is taken: of a requirement, from the user's sources, or of those in a file."""
    if wanted.endswith(".json") or wanted == "-":
        return variants_in(read_variants(read_file(wanted), wanted), Path(wanted).name, facts)
    return variants_of(Requirement(check_requirement(wanted)), machine, facts, python, sources)


def show_variants(found: Variants, *, as_json: bool) -> None:
    """Print the answer; exit as where nothing fits if uv takes no wheel."""
    if as_json:
        echo_json(found)
    else:
        for line in found.lines:
            echo(line)
    if found.uv.label is None:
        click.get_current_context().exit(NothingFits.exit_code)
