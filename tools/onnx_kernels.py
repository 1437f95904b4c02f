"""Measures the CPU kernels of ONNX Runtime's releases and writes cpu.json anew.

`python tools/onnx_kernels.py dump FOLDER` asks the installed release, once for each release;
`python tools/onnx_kernels.py write FOLDER YYYY-MM-DD` makes the table of all that lie there.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import onnx
from packaging.version import Version

TABLE = Path(__file__).parents[1] / "assistant_addons" / "onnx" / "data" / "cpu.json"
OPEN = 2**31 - 1  # how ONNX Runtime writes that a kernel has no last version
BY_HAND = ("query", "cpu_inputs")  # what no kernel says of itself, kept from the table as it is

Row = dict[str, Any]
Types = dict[str, list[str]]  # what a kernel takes for each type variable


def kernels() -> list[Row]:
    """Ask the installed ONNX Runtime for the kernels of its CPU provider, joined where one row says the same."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # noqa: PLC0415 - `write` works without

    types: dict[tuple[str, str, int, int], list[Types]] = defaultdict(list)
    for kernel in state.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider":
            told = {name: sorted(set(kinds)) for name, kinds in sorted(kernel.type_constraints.items())}
            types[kernel.domain, kernel.op_name, *kernel.version_range].append(told)
    return [
        {"key": key[:3], "until": None if key[3] == OPEN else key[3], "types": joined(found)}
        for key, found in sorted(types.items())
    ]


def joined(found: list[Types]) -> list[Types]:
    """Join kernels that differ in the types of one variable only, so that all together take just what each takes."""
    left, result = sorted(found, key=json.dumps), list[Types]()
    while left:
        one = left.pop()
        for other in left:
            unlike = [name for name in one if one[name] != other.get(name)]
            if one.keys() == other.keys() and len(unlike) <= 1:
                other.update({name: sorted({*one[name], *other[name]}) for name in unlike})
                break
        else:
            result.append(one)
    return sorted(result, key=json.dumps)


def signatures() -> list[Row]:
    """Ask the installed ONNX Runtime for the arguments of the operators that onnx does not describe."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # noqa: PLC0415 - likewise

    return [
        {
            "key": (one.domain, one.name),
            "inputs": [(formal.name, formal.typeStr) for formal in one.inputs],
            "outputs": [(formal.name, formal.typeStr) for formal in one.outputs],
        }
        for one in sorted(state.get_all_operator_schema(), key=lambda one: int(one.since_version))
        if not onnx.defs.has(one.name, int(one.since_version), one.domain)
    ]


def merged(releases: dict[str, list[Row]]) -> dict[str, dict[str, list[Row]]]:
    """Put the releases' rows together, each with the release that it came with and the one that it was gone with."""
    by_key: dict[tuple[str, str, int], dict[str, Row]] = {}
    for release, rows in releases.items():
        for row in rows:
            by_key.setdefault(tuple(row["key"]), {})[release] = row
    result: dict[str, dict[str, list[Row]]] = {}
    for (domain, op, since), found in sorted(by_key.items(), key=lambda item: (*item[0][:2], -item[0][2])):
        result.setdefault(domain, {}).setdefault(op, []).extend(spans(list(releases), found, (domain, op, since)))
    return result


def spans(releases: list[str], found: dict[str, Row], key: tuple[str, str, int]) -> Iterator[Row]:
    """Give a row for each run of releases, oldest first, in which a kernel takes the same."""
    for same, run in groupby(releases, lambda release: release in found and taken(found[release], key)):
        span = list(run)
        if same:
            after = releases.index(span[-1]) + 1
            until = found[span[-1]]["until"]
            head = {"since": key[2]} | ({} if until is None else {"until": until})
            tail = {"came": span[0]} if span[0] != releases[0] else {}
            tail |= {"gone": releases[after]} if after < len(releases) else {}
            yield from (head | {"types": types} | tail for types in found[span[-1]]["types"])


def taken(row: Row, key: tuple[str, str, int]) -> tuple[list[int], list[Types]]:
    """Give what a row takes: the operator's versions and the types."""
    domain, op, since = key
    known = versions()[domain, op]
    return [version for version in known if since <= version <= (row["until"] or since)], row["types"]


@cache
def versions() -> dict[tuple[str, str], list[int]]:
    """Give the versions of every operator that onnx describes."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        found[schema.domain, schema.name].append(schema.since_version)
    return found


def main() -> None:
    """Dump the installed release, or write the table."""
    folder = Path(sys.argv[2])
    if sys.argv[1] == "dump":
        import onnxruntime  # noqa: PLC0415 - likewise

        told = {"kernels": kernels(), "signatures": signatures()}
        (folder / f"{onnxruntime.__version__}.json").write_text(json.dumps(told), "utf-8")
        return
    dumps = {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}
    dumps = {name: dumps[name] for name in sorted(dumps, key=Version)}
    TABLE.write_text(table(dumps, sys.argv[3]), "utf-8")


def table(dumps: dict[str, Any], as_of: str) -> str:
    """Write the table of all dumps, a line for each set of types, operator and signature."""
    old = json.loads(TABLE.read_text("utf-8"))
    operators = merged({name: dump["kernels"] for name, dump in dumps.items()})
    sets: dict[str, int] = {}
    for domain, ops in operators.items():
        for op, rows in ops.items():
            known = {row["since"]: row for row in old["operators"].get(domain, {}).get(op, ())}
            for row in rows:
                row["types"] = {name: number(sets, types) for name, types in sorted(row["types"].items())}
                row |= {name: known[row["since"]][name] for name in BY_HAND if name in known.get(row["since"], {})}
    forms = {tuple(one.pop("key")): one for dump in dumps.values() for one in dump["signatures"]}
    own = {domain: {op: forms[domain, op] for op in ops if (domain, op) in forms} for domain, ops in operators.items()}
    head = {name: old[name] for name in ("provider", "source")} | {"as_of": as_of}
    head |= {"holds_for": f"onnxruntime {next(iter(dumps))} to {list(dumps)[-1]}", "about": old["about"]}
    lines = [f"  {json.dumps(name)}: {json.dumps(text)}," for name, text in head.items()]
    rest = json.dumps(old["runtimes"], indent=2).replace("\n", "\n  ")
    lines += [f'  "runtimes": {rest},', '  "type_sets": [', ",\n".join(f"    {text}" for text in sets), "  ],"]
    parts = (f'  "{name}": {{\n{domains(part)}\n  }}' for name, part in (("operators", operators), ("signatures", own)))
    return "\n".join(("{", *lines, ",\n".join(parts), "}", ""))


def number(sets: dict[str, int], types: list[str]) -> int:
    """Give the place of a set of types, a new one at the end."""
    return sets.setdefault(json.dumps(types), len(sets))


def domains(part: dict[str, dict[str, Any]]) -> str:
    """Write what is known by domain and operator."""
    return ",\n".join(
        f"    {json.dumps(domain)}: {{\n"
        + ",\n".join(f"      {json.dumps(op)}: {json.dumps(told)}" for op, told in ops.items())
        + "\n    }"
        for domain, ops in part.items()
        if ops
    )


if __name__ == "__main__":
    main()
