"""What the conversion asks of graphs beside the walks of `load`."""

from __future__ import annotations

from itertools import chain, count

from onnx import GraphProto, ModelProto, ValueInfoProto

from assistant_addons.onnx.load import bodies, opsets, ordered, plain_domain, subgraphs

__all__ = ["bodies", "opsets", "ordered", "plain_domain", "subgraphs"]

# From here on a weight need not be listed among the inputs, and a caller may give what stands in place of one that is:
# https://github.com/onnx/onnx/blob/main/docs/IR.md
FIRST_FREE_IR = 4
# Who lists more weights than this, and all of them, means none to be given: older exporters did so (chosen).
MOST_DEFAULTS = 8
KNOWN_IR = 10  # every release of ONNX Runtime that data/runtimes.json lists reads it


def given_inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """Return the inputs that a caller must provide; older models list their weights among the inputs, too."""
    weights = {tensor.name for tensor in graph.initializer}
    return [info for info in graph.input if info.name not in weights]


def defaults(model: ModelProto) -> frozenset[str]:
    """Return the inputs that have a default: weights in whose place a caller may give others."""
    if model.ir_version < FIRST_FREE_IR:
        return frozenset()
    weights = {tensor.name for tensor in model.graph.initializer}
    found = frozenset(info.name for info in model.graph.input if info.name in weights)
    return frozenset() if len(found) == len(weights) > MOST_DEFAULTS else found


def unique_name(name: str, taken: set[str]) -> str:
    """Return `name`, with a number behind it where it is taken, and add it to `taken`."""
    found = next(one for one in chain([name], (f"{name}_{number}" for number in count(2))) if one not in taken)
    taken.add(found)
    return found
