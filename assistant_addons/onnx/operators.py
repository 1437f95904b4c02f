"""DirectML's table of kernels, ONNX Runtime's rule for which kernel takes a node, and what its CPU provider says."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from assistant.api import Message, Text, _
from assistant.api.texts import verbatim
from assistant_addons.onnx.prepare import definition

Types = tuple[str | None, ...]  # "" for an argument that is left out, None for a type that is not known
Formals = tuple[tuple[str, str], ...]  # names and type variables, or types; the last one may repeat
# A row of the table: the version of an operator that it takes ("since"); for each type variable a number in the table's
# "type_sets"; a further condition ("query", see `placement`); inputs that are read on the CPU.
Kernel = dict[str, Any]


@cache
def table() -> dict[str, Any]:
    """Read DirectML's table; it says what its last release loads ("loads"), and what brings other domains, too."""
    content: dict[str, Any] = json.loads((files(__package__) / "data" / "dml.json").read_bytes())
    return content


@cache
def since(domain: str, op: str, opset: int) -> int | None:
    """Return the version at which an operator last changed at or before an opset; None for one that is not known."""
    schema = definition(domain, op, opset)
    if schema is None:
        return 1 if op in table()["signatures"].get(domain, {}) else None
    return None if schema.deprecated else int(schema.since_version)


@cache
def signature(domain: str, op: str, version: int) -> tuple[Formals, Formals]:
    """Return the inputs and outputs of an operator's version; none where neither ONNX nor the table describes it."""
    if schema := definition(domain, op, version):
        sides = [tuple((one.name, one.type_str) for one in side) for side in (schema.inputs, schema.outputs)]
        return sides[0], sides[1]
    found = table()["signatures"].get(domain, {}).get(op, {"inputs": (), "outputs": ()})
    return tuple(map(tuple, found["inputs"])), tuple(map(tuple, found["outputs"]))


def takes(row: Kernel, version: int) -> bool:
    """Return whether a kernel takes an operator as it was changed in `version`.

    A row names no last version, so it takes only its own: `VerifyVersion` in
    onnxruntime/core/framework/kernel_registry.cc.
    """
    return bool(row["since"] == version)


@lru_cache(maxsize=2**16)
def match(domain: str, op: str, version: int, inputs: Types = (), outputs: Types = ()) -> tuple[Kernel | None, Text]:
    """Return DirectML's kernel that takes a node, or None and the reason. A type that is not known denies no kernel."""
    rows, sets = table()["operators"].get(domain, {}).get(op, ()), table()["type_sets"]
    if not rows:
        return None, _("DirectML has no kernel for {op}.", op=op)
    why: Text = ""
    bound: dict[str, str | None] = {}  # the type of each type variable and argument: that of the first which is there
    for formals, types in zip(signature(domain, op, version), (inputs, outputs), strict=True):
        for index, kind in enumerate(types if formals else ()):
            for name in formals[min(index, len(formals) - 1)] if kind != "" else ():
                bound.setdefault(name, kind)
    for row in (row for row in rows if takes(row, version)):
        kinds = [(bound.get(name), sets[number]) for name, number in row["types"].items()]
        wrong = [kind for kind, allowed in kinds if kind and kind not in allowed]
        if not wrong:
            return row, ""
        why = _("DirectML has no kernel of {op} for {type}.", op=op, type=wrong[0])
    if not why:
        message = _("{op} changed in opset {since}; DirectML has kernels for the versions of {versions} only.")
        why = message.format(op=op, since=version, versions=", ".join(map(str, sorted(row["since"] for row in rows))))
    return None, why


def has_runtime() -> bool:
    """Return whether there is an ONNX Runtime to be asked."""
    return importlib.util.find_spec("onnxruntime") is not None


@lru_cache(maxsize=2**12)
def ask(model: bytes) -> tuple[tuple[str, ...], Text]:
    """Let ONNX Runtime open a model, of one node mostly, on the CPU; return the operators that it runs, or its refusal.

    Releases before 1.24 do not tell the operators.
    """
    import onnxruntime  # noqa: PLC0415 - a tenth of a second

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    with contextlib.suppress(Exception):
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - the runtime's errors share no base
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rpartition(" : ")[2].rstrip(".")
        return (), _("ONNX Runtime refuses it: {reason}.", reason=verbatim(reason))
    ops: list[str] = []
    with contextlib.suppress(Exception):
        ops = [node.op_type for part in session.get_provider_graph_assignment_info() for node in part.get_nodes()]
    return tuple(ops), ""


def is_foreign(domain: str) -> bool:
    """Return whether ONNX Runtime brings no operators of a domain."""
    own = domain == "" or domain.startswith(("ai.onnx", "com.microsoft", "com.ms.internal"))
    return not own or domain in table()["libraries"]


def unknown_domain(domain: str) -> tuple[Message, Message, tuple[str, ...]]:
    """Return why no operator of a foreign domain runs, what to do about it, and the commands for that."""
    package = table()["libraries"].get(domain)
    if package is None:
        advice = _("They need the library that defines them; export the model without them.")
        return _("ONNX Runtime does not know the domain {domain}.", domain=domain), advice, ()
    why = _("ONNX Runtime does not know the domain {domain}, which {library} brings.", domain=domain, library=package)
    advice = _(
        "Install {library}, and register its operators with each session: SessionOptions.register_custom_ops_library."
    )
    return why, advice.format(library=package), (f"python -m pip install {package}",)
