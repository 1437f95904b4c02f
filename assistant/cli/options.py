"""Options that several commands share: what is asked for, where packages come from, where they go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from pathlib import Path
from typing import Any

import click

from assistant.catalog.catalog import find_bundle
from assistant.cli.terminal import Option, read_file
from assistant.host.live import LiveHost
from assistant.i18n import _, say
from assistant.install import Sources
from assistant.model.errors import BadInput
from assistant.model.plan import Backend, Request, check_requirement
from assistant.model.record import Record


def refuse_several(**options: object) -> None:
    """Raise `UsageError` if more than one of the options is set."""
    given = [f"--{name}" for name, value in options.items() if value]
    if len(given) > 1:
        raise click.UsageError(say("{options} cannot be combined; use only one of them.", options=", ".join(given)))


def combine(*options: Option) -> Option:
    """Return one decorator for several options, listed by `--help` in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def check_each(check: Callable[[str], str]) -> Callable[..., Any]:
    """Return a click callback that replaces an option's value, or each of several, by `check` of it; "" stays."""
    return lambda _context, _option, value: (
        (value and check(value)) if isinstance(value, str) else tuple(map(check, value))
    )


def _check_folder(name: str) -> str:
    """Return an address or an existing folder unchanged; raise `BadInput` for a folder that does not exist."""
    if "://" not in name and not Path(name).expanduser().is_dir():
        raise BadInput(_("{folder} is not a folder.", folder=name), hint=_("Name the folder that holds the wheels."))
    return name


request_options = combine(
    click.option(
        "--backend",
        type=click.Choice([backend.value for backend in Backend]),
        help="Use this backend; by default the best one for the machine.",
    ),
    click.option(
        "--pin",
        "pins",
        multiple=True,
        metavar="REQ",
        callback=check_each(check_requirement),
        help="A requirement that must hold, such as torch==2.6.0; may be given several times.",
    ),
    click.option("--nightly", is_flag=True, help="Take last night's build of torch instead of a release."),
    click.option("--python", metavar="V", help="The Python version to use, such as 3.12."),
    click.option(
        "--for",
        "bundle",
        default="",
        metavar="NAME",
        callback=check_each(lambda name: find_bundle(name).key),
        help="What it is for: minimal, course, images, audio, language, or a recipe (see `assistant recipes list`).",
    ),
)
trust_index_option = click.option(
    "--trust-index",
    multiple=True,
    metavar="URL",
    help="Trust this index, which the project names.",
)
project_options = combine(
    click.option(
        "-r",
        "--requirements",
        "projects",
        multiple=True,
        metavar="FILE|FOLDER",
        help="Also what a project needs: requirements.txt, pyproject.toml, environment.yml, a notebook or a "
        "folder of code; '-' for standard input; may be given several times.",
    ),
    click.option(
        "--extra",
        "extras",
        multiple=True,
        metavar="NAME",
        help="Include an optional part of that project (an extra), such as train; may be given several times.",
    ),
)
find_links_option = click.option(
    "--find-links",
    multiple=True,
    metavar="DIR",
    callback=check_each(_check_folder),
    help="Also look for wheels in this folder; may be given several times.",
)
offline_option = click.option("--offline", is_flag=True, help="Use only caches and local folders.")
source_options = combine(
    click.option(
        "--index-url",
        default="",
        metavar="URL",
        callback=check_each(Sources.check_index_url),
        help="Take torch from this index.",
    ),
    find_links_option,
    offline_option,
)


dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")


def pop_request(options: dict[str, Any]) -> Request:
    """Remove the values of `request_options` from a command's options, and return them as a request."""
    backend = options.pop("backend")
    rest = {name: options.pop(name) for name in ("pins", "python", "nightly", "bundle")}
    return Request(backend=Backend(backend) if backend else None, **rest)


def with_projects(
    request: Request, options: dict[str, Any], trusted: Iterable[str], **how: bool
) -> tuple[Request, Record | None]:
    """Read the projects that `project_options` name; return the request with what they require, and the projects read.

    Those options are removed; without projects the request is returned as it is, and None. Projects may name indexes
    that are `trusted`; `how` goes to the add-on's `agreed`. Raises `WorkFailed` if the add-on that reads is missing.
    """
    names, extras = options.pop("projects"), options.pop("extras")
    if not names:
        return request, None
    from assistant.session.planning import load_project_reader  # noqa: PLC0415 - most commands name no project

    own = Sources(LiveHost(), index_url=options.get("index_url", ""), find_links=options.get("find_links", ())).trusted
    named = (read_file(name) if name == "-" else name for name in names)
    reader = load_project_reader()
    project = reader.read_project(*named, extras=extras, trusted=(*trusted, *own))
    return reader.agreed(request, project, **how), project
