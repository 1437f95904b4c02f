"""What a file may ask for on the machine that it describes: packages, and never where they come from."""

from __future__ import annotations

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Machine
from assistant.model.plan import Request
from assistant.model.record import from_json, replace
from assistant.model.requirement import plain_requirement

# Of a request; the rest is for the command line alone.
_ASKABLE = frozenset({"backend", "python", "pins", "nightly", "bundle"})


class Brief(Machine, frozen=True):
    """A machine, and what is asked for on it."""

    pins: tuple[str, ...] = ()
    request: Request = Request()

    def asked(self, own: Request) -> Request:
        """Return what is asked for, the command line's own request first; raise `BadInput` for more than is askable."""
        wish = replace(self.request, pins=(*self.request.pins, *self.pins))
        beyond = [name for name in wish.__struct_fields__ if name not in _ASKABLE and getattr(wish, name)]
        beyond += [f"{need.name} @ …" for pin in wish.pins if (need := plain_requirement(pin)) and need.url]
        if beyond:
            raise BadInput(
                _(
                    "A machine's file may ask for packages, not say where they come from: {names}.",
                    names=", ".join(beyond),
                ),
                hint=_(
                    "Name on the command line what you trust of it.", option="--trust-index, --find-links, --pin, -r"
                ),
            )
        return own.joined(wish)


def read_brief(text: str, what: str) -> Brief:
    """Read a machine's file, or a line of a batch; raise `BadInput` that names `what` for any other text."""
    return from_json(text, Brief, what)
