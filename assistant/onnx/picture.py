"""Draws where a model runs, as SVG: segments of nodes in the lanes of device and CPU, and the copies between."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from assistant.i18n import render, say
from assistant.markup import Markup, document, tag, text
from assistant.onnx.advice import count_nodes, obstacle
from assistant.onnx.examination import Examination
from assistant.onnx.partition import Segment, segments

Lanes = dict[str, tuple[float, float, str]]  # left edge, width and title, by device

MOST_BOXES = 24
MOST_OPERATORS = 4  # named in one box
LETTER = 7.2  # pixels, about the width of a letter in system-ui at 13 pixels
WIDTH, MARGIN, GAP, BOX_HEIGHT, STEP, TOP = 760, 20, 20, 46, 78, 84

# Both colour schemes, each on a card of its own, so that any page behind it will do.
STYLE = """
svg { --card: #ffffff; --ink: #1f2328; --soft: #57606a; --line: #8c959f; --dml: #ddf4ff; --dml-edge: #0969da;
  --cpu: #fff8c5; --cpu-edge: #9a6700; --none: #ffebe9; --none-edge: #cf222e; font-family: system-ui, sans-serif; }
@media (prefers-color-scheme: dark) {
  svg { --card: #0d1117; --ink: #e6edf3; --soft: #9da7b1; --line: #7d8590; --dml: #0c2d6b; --dml-edge: #58a6ff;
    --cpu: #4b2900; --cpu-edge: #d29922; --none: #67060c; --none-edge: #f85149; } }
.card { fill: var(--card); } text { fill: var(--ink); font-size: 13px; } .soft { fill: var(--soft); font-size: 12px; }
.lane { font-weight: 600; } .dml { fill: var(--dml); stroke: var(--dml-edge); }
.cpu { fill: var(--cpu); stroke: var(--cpu-edge); }
.none { fill: var(--none); stroke: var(--none-edge); stroke-dasharray: 5 3; }
.flow { stroke: var(--line); stroke-width: 1.5; fill: none; } .tip { fill: var(--line); }
""".strip()

TIP = """<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>"""


def draw(exam: Examination) -> str:
    """Draw the main graph as SVG; what a node holds in its branches counts with it."""
    stop = obstacle(exam)
    own = [node for node in exam.nodes if node.step.scope is exam.program.main and node.op != "Constant"]
    found = [Segment("none", own)] if stop and own else segments(own)
    lanes = _lanes(exam.provider, found)
    shown = found[:MOST_BOXES]
    more = len(found) - len(shown)
    height = TOP + STEP * len(shown) + (30 if more else 0) + MARGIN
    title = f"{Path(exam.file).name}: {render(count_nodes(sum(node.op != 'Constant' for node in exam.nodes)))}"
    counts = Counter(node.device for node in own)
    description = ", ".join(f"{name}: {counts[device]}" for device, (_left, _width, name) in lanes.items())
    parts = [Markup(f"<style>{STYLE}</style>{TIP}"), tag("rect", class_="card", width=WIDTH, height=height, rx=8)]
    parts += [text(MARGIN, 30, title, class_="lane"), text(MARGIN, 50, render(stop), class_="soft")]
    for left, width, name in lanes.values():
        parts.append(text(left + width / 2, TOP - 12, name, class_="lane", text_anchor="middle"))
    parts += [_box(segment, index, shown, lanes) for index, segment in enumerate(shown)]
    if more:
        words = say("… and {count} more segments", count=more)
        parts.append(text(WIDTH / 2, height - MARGIN - 8, words, class_="soft", text_anchor="middle"))
    return str(document(WIDTH, height, parts, title, description)) + "\n"


def _lanes(provider: str, found: list[Segment]) -> Lanes:
    """Return the left edge, width and title of each lane in use."""
    names = {"dml": say("On the device (DirectML)"), "cpu": say("On the CPU"), "none": say("Nowhere")}
    used = [device for device in names if device == provider or any(segment.device == device for segment in found)]
    width = (WIDTH - 2 * MARGIN - GAP * (len(used) - 1)) / len(used)
    return {device: (MARGIN + place * (width + GAP), width, names[device]) for place, device in enumerate(used)}


def _box(segment: Segment, index: int, shown: list[Segment], lanes: Lanes) -> Markup:
    left, width, _title = lanes[segment.device]
    top = TOP + STEP * index
    parts = []
    if index:
        parts.append(_arrow(shown[index - 1], segment, top, lanes))
    parts.append(tag("rect", class_=segment.device, x=left, y=top, width=width, height=BOX_HEIGHT, rx=6))
    head = render(count_nodes(len(segment.nodes))) if len(segment.nodes) > 1 else segment.nodes[0].name
    counts = Counter(node.op for node in segment.nodes)
    operators = ", ".join(f"{op} {count}" for op, count in counts.most_common(MOST_OPERATORS))
    operators += ", …" if len(counts) > MOST_OPERATORS else ""
    for line, (words, kind) in enumerate(((head, ""), (operators, "soft"))):
        most = int(width / LETTER)
        cut = words if len(words) <= most else words[: most - 1] + "…"
        parts.append(text(left + width / 2, top + 19 + 17 * line, cut, class_=kind, text_anchor="middle"))
    return Markup("\n".join(parts))


def _arrow(before: Segment, after: Segment, top: float, lanes: Lanes) -> Markup:
    start, end = (lanes[one.device][0] + lanes[one.device][1] / 2 for one in (before, after))
    floor = top - (STEP - BOX_HEIGHT)
    middle = floor + (STEP - BOX_HEIGHT) / 2
    way = f"M{start:g} {floor:g}V{middle:g}H{end:g}V{top:g}"
    path = tag("path", class_="flow", marker_end="url(#tip)", d=way)
    if not after.copies:
        return path
    words = say("{count} copied", count=after.copies)
    aside, anchor = (8, "start") if end > start else (-8, "end")
    return path + text(end + aside, top - 5, words, class_="soft", text_anchor=anchor)
