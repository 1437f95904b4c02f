"""A ruler of NVIDIA drivers: where the installed one stands, and which CUDA and torch each step allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assistant.catalog import number
from assistant.i18n import say
from assistant.markup import Markup, tag, text
from assistant.session.what_if import Opening
from assistant.wizard import html

TOP, LINE, BELOW, HEIGHT = 16, 30, 54, 76  # heights of the drivers' names, the line, what is opened, the picture


def driver_ruler(openings: Sequence[Opening], driver: str) -> Markup:
    """Draw the ruler as an SVG that is as wide as the page gives it, with its sentence below; "" for no openings."""
    if not openings:
        return html.NOTHING
    sentence = " ".join(_sentences(openings, driver))
    width = 100 / len(openings)
    here = _place(openings, driver) * width
    marks = [_mark(opening, (index + 0.5) * width) for index, opening in enumerate(openings)]
    name = say("Driver {version}", version=driver) if driver else say("No driver")
    line = {"x": 0, "y": LINE, "height": 8, "rx": 4}
    drawing = [
        tag("rect", class_="ptsa-ruler-line", width="100%", **line),
        tag("rect", class_="ptsa-ruler-reached", width=f"{here:.1f}%", **line),
        *marks,
    ]
    if driver:
        drawing.append(tag("rect", class_="ptsa-ruler-here", x=f"{here:.1f}%", y=LINE - 9, width=3, height=26))
    picture = tag("svg", *drawing, class_="ptsa-ruler", role="img", aria_label=sentence, height=HEIGHT)
    return picture + tag("p", html.icon("gpu"), tag("strong", f"{name}."), f" {sentence}")


def _place(openings: Sequence[Opening], driver: str) -> float:
    """Return where the driver stands, counted in openings: in the gap before the first that it does not reach."""
    if not driver:
        return 0.0
    reached = sum(opening.reached for opening in openings)
    exact = reached and number(driver) == number(openings[reached - 1].driver)
    return reached - 0.5 if exact else float(reached)


def _mark(opening: Opening, middle: float) -> Markup:
    state = "reached" if opening.reached else "closed"
    words = [
        (TOP, f"≥ {opening.driver}", "driver"),
        (BELOW, opening.variant, "variant"),
        (BELOW + 16, f"torch {opening.torch}", "torch"),
    ]
    place = f"{middle:.1f}%"
    texts = [text(place, y, word, class_=f"ptsa-ruler-{kind}", text_anchor="middle") for y, word, kind in words]
    return tag("g", tag("circle", cx=place, cy=LINE + 4, r=7), *texts, class_=f"ptsa-ruler-{state}")


def _sentences(openings: Sequence[Opening], driver: str) -> Iterator[str]:
    reached = [opening for opening in openings if opening.reached]
    closed = [opening for opening in openings if not opening.reached]
    if reached:
        best = reached[-1]
        yield say("It supports builds up to {variant} with torch {torch}.", variant=best.variant, torch=best.torch)
    elif driver:
        yield say("It is too old for every build of torch.")
    for opening in closed[:2]:
        yield say(
            "Driver {driver} or newer also runs {variant} with torch {torch}.",
            driver=opening.driver,
            variant=opening.variant,
            torch=opening.torch,
        )
    if reached and not closed:
        yield say("A newer driver would add nothing for this machine.")
