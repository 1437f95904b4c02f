"""What `plan --variants` and `detect --variants` print: the choice of installers that read variants, and the facts."""

from __future__ import annotations

from pathlib import Path

import click
from packaging.requirements import Requirement

from assistant.cli.inputs import read_text
from assistant.cli.terminal import echo, echo_json
from assistant.host.base import Host
from assistant.install import Sources, check_requirement
from assistant.model.errors import NothingFits
from assistant.model.machine import Machine
from assistant.plan import USUAL_PYTHON, read_variants
from assistant.session.variants import variant_facts, variants_in, variants_of


def answer_variants(
    wanted: str, machine: Machine, host: Host | None, python: str | None, sources: Sources, *, as_json: bool
) -> None:
    """Print which variant is taken: of a requirement, from the user's sources, or of those in a file.

    `host` is asked for what the machine's record does not hold. Exit as where nothing fits if uv takes no wheel.
    """
    facts = variant_facts(machine, host)
    if wanted.endswith(".json") or wanted == "-":
        found = variants_in(read_variants(read_text(wanted), wanted), Path(wanted).name, facts)
    else:
        need = Requirement(check_requirement(wanted))
        found = variants_of(need, machine, facts, python or machine.python or USUAL_PYTHON, sources)
    if as_json:
        echo_json(found)
    else:
        for line in found.lines:
            echo(line)
    if found.uv.label is None:
        click.get_current_context().exit(NothingFits.exit_code)
