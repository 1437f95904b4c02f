"""Writes the tables of data/targets anew from the documents that publish them.

`python tests/benchmarks/onnx_targets.py FOLDER YYYY-MM-DD` reads there what assistant/onnx/data/targets.toml names as
sources, each under its own file name: OperatorKernels.md, webnn-operators.md, webgpu-operators.md,
coreml_supported_mlprogram_ops.md, op_builder_factory.cc (QNN), data_ops.cc (OpenVINO), operators.md (TensorRT),
onnx_operators.rst and migraphx_execution_provider.cc, and winml-cli's folder runtime_check_rules as `rules`, for which
it needs pyarrow.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx
from onnx.defs import OpSchema
from onnx_kernels import domains, number

DATA = Path(__file__).parents[2] / "assistant" / "onnx" / "data"
OPEN = 99  # the last version of a row that takes all later ones
RUNTIME = "com.microsoft"
FIRST = 7  # the first opset that ONNX Runtime loads; operators that came before it are in it
# How documents write types, and onnx.
NAMES = {
    "FP64": "double", "FP32": "float", "FP16": "float16", "BF16": "bfloat16", "FP8": "float8e4m3fnuz", "UINT8": "uint8",
    "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8", "INT16": "int16", "INT32": "int32",
    "INT64": "int64", "INF64": "int64", "INT4": "int4", "BOOL": "bool", "FLOAT": "float", "FLOAT16": "float16",
    "DOUBLE": "double", "BFLOAT16": "bfloat16", "UINT4": "uint4", "STRING": "string",
}  # fmt: skip
# Operators that a document writes otherwise than ONNX.
SPELLED = {"Argmax": "ArgMax", "HardMax": "Hardmax", "LogSoftMax": "LogSoftmax", "Prelu": "PRelu"}
SPELLED |= {"Roialign": "RoiAlign", "IsNan": "IsNaN"}
# In coreml/builders they build an ML program, too (SupportsMLProgram); the list of operators leaves them out.
ALSO_COREML = [("", op) for op in ("BatchNormalization", "Gather", "Pad", "ReduceMin", "ReduceProd")]
# Of onnxruntime-web's kernels for WebGPU (onnxruntime/core/providers/js): js_data_types.cc, and who takes bool as well.
SIMPLE_NUMBERS = ("float", "float16", "int32", "uint32")
TAKE_BOOL = {"Cast", "Expand", "Where"}
UNTOLD = {"DequantizeLinear", "If", "Not"}  # their types are others, which the list does not tell
MEASURED = {
    "trtrtx": ("NvTensorRTRTXExecutionProvider_GPU",),
    "openvino-gpu": ("OpenVINOExecutionProvider_GPU",),
    "openvino-npu": ("OpenVINOExecutionProvider_NPU",),
    "qnn": ("QNNExecutionProvider_NPU",),
}

Row = dict[str, Any]  # "types" holds names of types here; their sets are numbered when the table is written
Rows = dict[str, dict[str, list[Row]]]  # by domain and operator


def cuda(folder: Path) -> Rows:
    """Read the section of the CUDA provider in ONNX Runtime's list of kernels."""
    text = (folder / "OperatorKernels.md").read_text("utf-8")
    section = text.partition("## Operators implemented by CUDAExecutionProvider")[2].partition("\n## ")[0]
    reads = cpu_inputs()
    found: Rows = defaultdict(lambda: defaultdict(list))
    domain = op = ""
    for line in section.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if line.startswith("|**Operator Domain:**"):
            domain = re.findall(r"\*([\w.]+)\*", cells[0])[-1]
            domain = "" if domain == "ai.onnx" else domain
        elif len(cells) == 4 and re.match(r"\[?\d", cells[2]):
            op = cells[0] or op
            types = dict(re.findall(r"\*\*(\w+)\*\* = ([^<]*)", cells[3]))
            row = versions(cells[2].strip("[]").replace(", ", "-"), as_kernel=True)
            row |= {"types": {name: kinds(told) for name, told in types.items()}}
            row |= {"cpu_inputs": reads[op]} if op in reads else {}
            found[domain][op].append(row)
    return found


def cpu_inputs() -> dict[str, list[int]]:
    """Give the inputs that GPU kernels read on the CPU, of which the list says nothing, from DirectML's table."""
    known = json.loads((DATA / "dml.json").read_text("utf-8"))["operators"]
    return {op: rows[0]["cpu_inputs"] for op, rows in known[""].items() if "cpu_inputs" in rows[0]}


def kinds(told: str) -> list[str]:
    """Give the types that a text lists."""
    return sorted(set(re.findall(r"(?:seq\()?(?:sparse_)?tensor\(\w+\)\)?", told)))


def versions(text: str, *, as_kernel: bool) -> Row:
    """Read "7-12", "13" or "13+": an open kernel takes its own version only, other tables mean all later ones."""
    first, last = re.fullmatch(r"(\d+)(?:-(\d+))?\+?", text).groups()
    until = int(last) if last else OPEN if text.endswith("+") and not as_kernel else None
    return {"since": int(first)} | ({} if until is None else {"until": until})


def web(folder: Path, name: str, *, as_kernel: bool) -> Rows:
    """Read a list of onnxruntime-web: operators with their domains and versions."""
    found: Rows = defaultdict(lambda: defaultdict(list))
    for line in (folder / f"{name}-operators.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for domain, spans in re.findall(r"([\w.]+)\(([\d\-,+ ]+)\)", cells[1]) if len(cells) > 2 else ():
            if domain in {"ai.onnx", RUNTIME} and not cells[0].startswith("Memcpy"):
                rows = [versions(span.strip(), as_kernel=as_kernel) | {"types": {}} for span in spans.split(",")]
                if rows[0]["since"] == FIRST and not as_kernel:
                    rows[0]["since"] = 1
                found["" if domain == "ai.onnx" else domain][cells[0]] += rows
    return found


def webgpu(folder: Path) -> Rows:
    """Read the list for WebGPU; its kernels take few types of numbers, and read on the CPU what DirectML's do."""
    found, reads = web(folder, "webgpu", as_kernel=True), cpu_inputs()
    for op, rows in found[""].items():
        types = (*SIMPLE_NUMBERS, *["bool"] * (op in TAKE_BOOL))
        reading = {"cpu_inputs": reads[op]} if op in reads else {}
        rows[:] = [row | reading for row in rows]
        if op not in UNTOLD:
            rows[:] = [row | {"types": data_types("", op, row["since"], types)} for row in rows]
    for row in found[""]["Cast"]:
        row["types"]["T2"] = row["types"]["T1"]
    return found


def coreml(folder: Path) -> Rows:
    """Read the list of operators that the CoreML provider builds into an ML program."""
    text = (folder / "coreml_supported_mlprogram_ops.md").read_text("utf-8")
    return all_versions([*re.findall(r"^\|([\w.]+):(\w+)\|", text, re.MULTILINE), *ALSO_COREML], 27)


def qnn(folder: Path) -> Rows:
    """Read the operators that the QNN provider builds; the measured ones tell types and dimensions."""
    text = (folder / "op_builder_factory.cc").read_text("utf-8")
    ops = [(domain, op) for op in re.findall(r'Create\w+\("(\w+)"', text) for domain in where(op)]
    return refined(all_versions(ops, OPEN), measured(folder, "qnn"))


def openvino(folder: Path, device: str) -> Rows:
    """Read the operators that the OpenVINO provider claims; for an NPU it claims what it does for a CPU."""
    text = (folder / "data_ops.cc").read_text("utf-8")
    listed = text.partition("supported_op_mode = {")[2].partition("};")[0]
    claims = re.findall(r'^\s*\{"(\w+)", \w+, \{([^}]*)\}', listed, re.MULTILINE)
    wanted = '"GPU"' if device == "gpu" else '"CPU"'
    ops = [(domain, op) for op, devices in claims if wanted in devices for domain in where(SPELLED.get(op, op))]
    rows = all_versions([*ops, *((RUNTIME, op) for op in ("DequantizeLinear", "QuantizeLinear"))], OPEN)
    return rows if device == "cpu" else refined(rows, measured(folder, f"openvino-{device}"))


def migraphx(folder: Path) -> Rows:
    """Read what ONNX Runtime gives to MIGraphX; MIGraphX's own list says that its types are not all that it takes."""
    text = (folder / "migraphx_execution_provider.cc").read_text("utf-8")
    listed = text.partition("mgx_supported_ops = {")[2].partition("};")[0]
    given = {SPELLED.get(op, op) for op in re.findall(r'"(\w+)"', listed)}
    denied = re.findall(r"^\| (\w+) +\| ❌", (folder / "onnx_operators.rst").read_text("utf-8"), re.MULTILINE)
    return all_versions([(domain, op) for op in sorted(given - set(denied)) for domain in where(op)], OPEN)


def trtrtx(folder: Path) -> Rows:
    """Read what TensorRT's parser takes, and what was measured on TensorRT for RTX."""
    found: Rows = defaultdict(lambda: defaultdict(list))
    for line in (folder / "operators.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 2 and cells[1] == "Y":
            for domain in where(cells[0]):
                types = data_types(domain, cells[0], 20, named(cells[2]))
                found[domain][cells[0]] = [{"since": 1, "until": OPEN, "types": types}]
    return refined(found, measured(folder, "trtrtx"))


def where(op: str) -> list[str]:
    """Give the domains that have an operator: ONNX's own, ONNX Runtime's, or both."""
    own = json.loads((DATA / "cpu.json").read_text("utf-8"))["operators"][RUNTIME]
    return [*[""] * onnx.defs.has(op), *[RUNTIME] * (op in own or not onnx.defs.has(op))]


def all_versions(ops: Iterable[tuple[str, str]], last: int) -> Rows:
    """Give a row that takes every version up to the last for each operator, of whose types nothing is told."""
    found: Rows = defaultdict(lambda: defaultdict(list))
    for domain, op in ops:
        plain = "" if domain in {"", "ai.onnx"} else domain
        found[plain][SPELLED.get(op, op)] = [{"since": 1, "until": last, "types": {}}]
    return found


def named(text: str) -> list[str]:
    """Give onnx's names of the types that a document lists."""
    return [NAMES[word] for word in re.findall(r"\w+", text) if word in NAMES]


def data_types(domain: str, op: str, opset: int, types: Iterable[str]) -> dict[str, list[str]]:
    """Say of which type variable a list of types speaks: the first one that may be of several types."""
    schema = schema_of(domain, op, opset)
    allowed = sorted(f"tensor({kind})" for kind in set(types))
    if schema is None or not allowed:
        return {}
    variables = {one.type_param_str: set(one.allowed_type_strs) for one in schema.type_constraints}
    used = [one.type_str for one in (*schema.inputs, *schema.outputs) if one.type_str in variables]
    chosen = next((name for name in used if len(variables[name]) > 1), None)
    return {} if chosen is None or variables[chosen] <= set(allowed) else {chosen: allowed}


def schema_of(domain: str, op: str, opset: int) -> OpSchema | None:
    """Give ONNX's definition of an operator; None where it has none."""
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


Measured = dict[tuple[str, str], dict[int, tuple[set[str], set[str], set[int], set[int]]]]


def measured(folder: Path, name: str) -> Measured:
    """Read measured runs: for each operator and version the types that ran and did not, and the numbers of dimensions.

    A type or number of dimensions counts as running where any model of one node with it was compiled and ran.
    """
    from pyarrow import parquet  # noqa: PLC0415 - only here

    found: Measured = defaultdict(dict)
    for provider in MEASURED[name]:
        for file in sorted((folder / "rules" / provider).glob("*.parquet")):
            op, since = re.match(rf"(\w+?)_{provider}_.*opset(\d+)", file.stem).groups()
            if "Pattern" not in op:
                runs = parquet.read_table(file).to_pylist()
                told = found["", op].setdefault(int(since), (set(), set(), set(), set()))
                for run in runs:
                    _note(run, op, told)
    return found


def _note(run: Row, op: str, told: tuple[set[str], set[str], set[int], set[int]]) -> None:
    """Note one run: its data's type, and the number of dimensions of what its first input is."""
    passed = all(run["compile_run_success"])
    schema = schema_of("", op, OPEN)
    first = next((key.removesuffix("_is_none") for key in run if key.endswith("_is_none") and "attr" not in key), "")
    first = next((one.name for one in schema.inputs if f"{one.name}_dim" in run), first) if schema else first
    kind = next((run[key] for key in (f"T_{op}", f"T1_{op}", f"V_{op}") if key in run), None)
    rank = run.get(f"{first}_dim")
    if not passed and all(json.loads(run[key])["v"] for key in run if key.endswith("_is_constant")):
        return  # what is computed before the provider sees it tells nothing of the provider
    if kind is not None:
        told[0 if passed else 1].add(NAMES.get(json.loads(kind)["v"], json.loads(kind)["v"].lower()))
    if rank is not None and json.loads(rank)["v"]:  # models of one number alone are run on the CPU
        told[2 if passed else 3].add(json.loads(rank)["v"])


def refined(rows: Rows, runs: Measured) -> Rows:
    """Put what was measured in place of a document's rows; a version that never ran counts as the others did."""
    for (domain, op), by_version in runs.items():
        listed = rows[domain].get(op, [])
        if not any(told[0] for told in by_version.values()):
            continue  # it ran in no type at all, so that the model of one node may be what is wrong
        result = []
        starts = sorted(by_version)
        every = {kind for ran, *_rest in by_version.values() for kind in ran}
        for place, since in enumerate(starts):
            ran, failed, ranks, refused = by_version[since]
            last = starts[place + 1] - 1 if place + 1 < len(starts) else OPEN
            types = data_types(domain, op, since, ran or every) if failed - ran else {}
            row: Row = {"since": since, "until": last, "types": types}
            result.append(row | ({"ranks": [0, *sorted(ranks)]} if ranks and refused - ranks else {}))
        before = [row | {"until": starts[0] - 1} for row in listed if starts[0] > 1]
        rows[domain][op] = [*result[::-1], *before]
    return rows


READ = {
    "cuda": cuda,
    "webnn": lambda folder: web(folder, "webnn", as_kernel=False),
    "webgpu": webgpu,
    "coreml": coreml,
    "qnn": qnn,
    "openvino-cpu": lambda folder: openvino(folder, "cpu"),
    "openvino-gpu": lambda folder: openvino(folder, "gpu"),
    "openvino-npu": lambda folder: openvino(folder, "npu"),
    "migraphx": migraphx,
    "trtrtx": trtrtx,
}


def main() -> None:
    """Write the table of every target."""
    folder, as_of = Path(sys.argv[1]), sys.argv[2]
    for name, read in READ.items():
        (DATA / "targets" / f"{name}.json").write_text(table(name, read(folder), as_of), "utf-8")


def table(name: str, operators: Rows, as_of: str) -> str:
    """Write a table in the form of dml.json: a line for each set of types and each operator."""
    sets: dict[str, int] = {}
    for ops in operators.values():
        for rows in ops.values():
            for row in rows:
                row["types"] = {var: number(sets, told) for var, told in sorted(row["types"].items())}
    old = json.loads((DATA / "targets" / f"{name}.json").read_text("utf-8"))  # its head is written by hand
    head = {key: old[key] for key in ("provider", "source", "as_of", "holds_for", "about")} | {"as_of": as_of}
    lines = [f"  {json.dumps(key)}: {json.dumps(text)}," for key, text in head.items()]
    lines += ['  "type_sets": [', ",\n".join(f"    {text}" for text in sets), "  ],"]
    plain = {domain: dict(sorted(ops.items())) for domain, ops in sorted(operators.items())}
    known = json.loads((DATA / "cpu.json").read_text("utf-8"))["signatures"]
    known |= {"": known.get("", {}) | json.loads((DATA / "dml.json").read_text("utf-8"))["signatures"][""]}
    own = {
        domain: {op: known.get(domain, {})[op] for op in ops if op in known.get(domain, {})}
        for domain, ops in plain.items()
    }
    parts = (f'  "{part}": {{\n{domains(told)}\n  }}' for part, told in (("operators", plain), ("signatures", own)))
    return "\n".join(("{", *lines, ",\n".join(parts), "}", ""))


if __name__ == "__main__":
    main()
