"""The tools that `tools.toml` lists, each with the types, choices and help of its command's parameters."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import click
from pydantic import Field

from assistant.api import Record
from assistant.api.records import from_plain

LOG_LIMIT = 100 * 10**6  # chosen, as in the terminal: characters of a log, which is held in memory
MOST_VALUES = 100  # chosen: of one parameter, such as packages
# No path and no name holds a character that steers.
Line = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00-\x1f\x7f]*$")]
PROPOSED = "Nothing is changed: show the answer to the user, and pass its `change` to `carry_out`."
STRANGER = (
    "This runs the Python of the environment that is named. Where the assistant did not make that, the answer is an "
    "error with a `change`: `carry_out` asks the user, and answers in place of this tool."
)


class Tool(Record, frozen=True):
    """A command for agents; `tools.toml` says what the fields are."""

    name: str
    command: str
    says: str = ""
    takes: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    text: str = ""
    target: str = ""
    does: tuple[str, ...] | None = None
    dry: tuple[str, ...] | None = None

    def description(self, command: click.Command) -> str:
        """Return what an agent reads of the tool."""
        parts = (self.says or command.help, self.does is not None and PROPOSED, self.target and STRANGER)
        return " ".join(part for part in parts if part)


def tools() -> tuple[Tool, ...]:
    """Read the table of tools."""
    file = Path(__file__).with_name("tools.toml")
    return tuple(from_plain(row, Tool, file.name) for row in tomllib.loads(file.read_text("utf-8"))["tool"])


def parameters_of(tool: Tool, command: click.Command) -> Iterator[Parameter]:
    """Yield the parameters of a tool's command that agents may set; none for a command whose extra is missing.

    Before the parameter that names a file (`tool.text`) comes one for what such a file would hold.
    """
    for option in command.params:
        name, says = option.name or "", " ".join(filter(None, (getattr(option, "help", ""), option.metavar)))
        if name not in tool.takes:
            continue
        if name == tool.text:
            kind = dict[str, Any] if name == "machine" else Annotated[str, Field(max_length=LOG_LIMIT)]
            yield _parameter(name, kind, f"What `{name}_file` would hold, in its place", needed=False)
            name, says = f"{name}_file", says or "The name of a file"
        needed = option.required or (isinstance(option, click.Option) and tool.takes == (name,))
        yield _parameter(name, _kind(option), says, needed=needed)


def _parameter(name: str, kind: Any, says: str, *, needed: bool) -> Parameter:  # noqa: ANN401 - a type's annotation
    """Return a parameter with a type and a description; None is its default unless it is `needed`."""
    full: Any = Annotated[kind if needed else kind | None, Field(description=says)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=Parameter.empty if needed else None, annotation=full)


def _kind(option: click.Parameter) -> Any:  # noqa: ANN401 - likewise
    """Return the annotation that an agent's value for an option is checked against; a list if it has several."""
    kind, one = option.type, cast("Any", Line)
    if isinstance(kind, click.Choice):
        one = Literal[tuple(kind.choices)]
    elif isinstance(kind, click.IntRange | click.FloatRange):
        one = Annotated[int if isinstance(kind, click.IntRange) else float, Field(ge=kind.min, le=kind.max)]
    elif isinstance(kind, click.types.BoolParamType):
        one = bool
    return Annotated[list[one], Field(max_length=MOST_VALUES)] if _is_many(option) else one  # type: ignore[valid-type]


def _is_many(option: click.Parameter) -> bool:
    return option.nargs == -1 or option.multiple


def words_of(tool: Tool, command: click.Command, given: Mapping[str, Any]) -> tuple[list[str], str | None]:
    """Return the words that run a tool's command, and the text for its standard input, None for none.

    `given` are values by the names of parameters; None, false and empty ones are left out.
    """
    text = given.get(tool.text)
    known = {**given, tool.text: "-" if text else given.get(f"{tool.text}_file")}
    options, places = [*tool.command.split(), *tool.always], list[str]()
    for option in command.params:
        value = known.get(option.name or "")
        if not value:
            continue
        values = map(str, value if _is_many(option) else [value])
        if isinstance(option, click.Argument):
            places += values
        elif isinstance(option.type, click.types.BoolParamType):
            options.append(option.opts[0])
        else:
            options += [word for text in values for word in (max(option.opts, key=len), text)]
    if any(place.startswith("-") and place != "-" for place in places):
        options.append("--")
    return [*options, *places], json.dumps(text) if isinstance(text, dict) else text
