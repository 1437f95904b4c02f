"""Reads what Python was asked for at a prompt or by `python -c`, with what it printed below."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from itertools import islice

from assistant.catalog.names import arch_of, system_of
from assistant.parsers.machine_facts import FAMILY

# C:\Users\me>python -c "import torch; print(torch.__version__, torch.cuda.is_available())"
# 2.7.1+cpu False
_COMMAND = re.compile(
    r"python[\d.]{0,5}(?:\.exe)?\"? (?:-[A-Z] )?-c (?:\"((?:[^\"\\]|\\.){5,800})\"|'([^']{5,800})')[^\n]{0,60}\n"
)
# >>> import onnxruntime as ort                     In [2]: torch.__version__
# >>> ort.__version__, ort.get_device()             Out[2]: '2.1.0'
# ('1.14.1', 'GPU')
_PROMPT = re.compile(r"^(?:>>>|In \[\d{1,4}\]:) {0,4}(\S[^\n]{0,400})\n", re.MULTILINE)
# import torch, torchvision                         (a notebook's cell, or a script between <<EOF and EOF)
# print(torch.__version__); print(torchvision.__version__)
# 2.5.1+cpu
# 0.20.1+cpu
_CELL = re.compile(r"^((?:(?:import|from) [^\n]{1,200}\n|print\([^\n]{1,400}\)\n){1,20})", re.MULTILINE)
_NEXT = re.compile(r"^(?:>>>|In \[\d{1,4}\]:|\(\w{1,30}\) [^\n]{0,80}[>$#] |[^\n]{0,80}[$#>❯] ?python)", re.MULTILINE)
_OUT = re.compile(r"^Out\[\d{1,4}\]: ")
_MOST = 60  # questions that are looked at (chosen)
_LINES = 16  # below a question: warnings may stand before the answer (chosen)
_TUPLE = r"(?:sys\.version_info)?\((?:major=)?3, (?:minor=)?\d{1,2}[^()\n]{0,80}\)"
_VERSION = r"\d{1,4}(?:\.\d{1,4}){1,3}[\w.+-]{0,40}"
_PACKAGE = re.compile(r"^(\w{2,30})\.__version__$|\bversion\(['\"]([\w-]{2,30})['\"]\)$")
# What is asked for, and the form of its answer; of everything else any answer is passed over.
_ASKED = {
    "python": (
        re.compile(r"\bsys\.version|\bpython_version\(\)"),
        rf"3\.\d{{1,2}}\.\d{{1,2}}\w{{0,4}}(?: [^\n]*)?|{_TUPLE}",
    ),
    "os": (re.compile(r"\bplatform\.(?:platform|system|version)\(\)|\bsys\.platform|\bos\.name"), r"[\w.-]{2,120}"),
    "nvidia_driver": (re.compile(r"\bnvmlSystemGetDriverVersion\(\)$"), r"\d{3}\.\d{2,3}[\d.]{0,3}"),
    "rocm_version": (re.compile(r"\bversion\.hip$"), r"\d{1,2}\.\d{1,2}[\w.-]{0,30}"),
}


def printed(text: str) -> dict[str, object]:
    """Return the facts that Python printed when it was asked for them, named as in `Machine`."""
    facts: dict[str, object] = {}
    packages: dict[str, str] = {}
    for asked, answer in _answers(text):
        package = _PACKAGE.search(asked)
        if package:
            packages.setdefault((package[1] or package[2]).lower().replace("_", "-"), answer)
        elif asked == "python":
            facts.setdefault("python", ".".join(re.findall(r"\d+", answer)[: 3 if answer[0] == "3" else 2]))
        elif asked == "os":
            facts.setdefault("os", system_of(answer))
            facts.setdefault("arch", arch_of(answer))
        elif asked == "nvidia_driver":
            facts.setdefault("nvidia_driver", answer)
        elif asked == "rocm_version":
            facts.setdefault("rocm_version", ".".join(answer.split(".")[:2]))
    facts["packages"] = {name: version for name, version in packages.items() if FAMILY.fullmatch(name)} or None
    return {name: value for name, value in facts.items() if value is not None}


def _answers(text: str) -> Iterator[tuple[str, str]]:
    """Yield what was asked for, by package or by fact, and its answer."""
    names: dict[str, str] = {}
    commands = ((found, found[1] or found[2]) for found in _COMMAND.finditer(text))
    prompts = ((found, found[1]) for found in _PROMPT.finditer(text))
    cells = ((found, found[1]) for found in _CELL.finditer(text))
    for source, shown in ((commands, False), (prompts, True), (cells, False)):
        for found, code in islice(source, _MOST):
            lines = _NEXT.split(text[found.end() : found.end() + 4000], maxsplit=1)[0].split("\n")[:_LINES]
            lines = [_OUT.sub("", line).strip() for line in lines]
            for parts in _prints(code.replace('\\"', '"'), names, shown=shown):
                yield from _matched(parts, lines)


def _prints(code: str, names: dict[str, str], *, shown: bool) -> Iterator[list[str | ast.expr]]:
    """Yield what each print writes, or a prompt shows: its text, and the expressions that stand for values."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of strings in a stranger's code
            body = ast.parse(code.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in body:
        if isinstance(statement, ast.Import):
            names |= {alias.asname: alias.name for alias in statement.names if alias.asname}
        if not isinstance(statement, ast.Expr):
            continue
        value = statement.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print":
            yield _joined(value.args, " ", names)
        elif shown and isinstance(value, ast.Tuple):
            yield ["(", *_joined(value.elts, ", ", names), ")"]
        elif shown:
            yield _joined([value], "", names)


def _joined(values: list[ast.expr], separator: str, names: dict[str, str]) -> list[str | ast.expr]:
    parts: list[str | ast.expr] = []
    for value in values:
        parts.append(separator if parts else "")
        for one in value.values if isinstance(value, ast.JoinedStr) else [value]:
            inner = one.value if isinstance(one, ast.FormattedValue) else one
            parts.append(str(inner.value) if isinstance(inner, ast.Constant) else _spelt_out(inner, names))
    return parts


def _spelt_out(value: ast.expr, names: dict[str, str]) -> ast.expr:
    """Put the module's own name where the code has another for it: `import onnxruntime as ort`."""
    for node in ast.walk(value):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return value


def _matched(parts: list[str | ast.expr], lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the values of the first line that has the form of what was asked for, and take that line out."""
    asked = [_asked(part) for part in parts if not isinstance(part, str)]
    if not any(fact for fact, _form in asked):
        return
    forms = iter(asked)
    pattern = "".join(re.escape(part) if isinstance(part, str) else f"['\"]?({next(forms)[1]})['\"]?" for part in parts)
    for number, line in enumerate(lines):
        if found := re.fullmatch(pattern, line):
            del lines[: number + 1]
            yield from ((fact, value) for (fact, _form), value in zip(asked, found.groups(), strict=True) if fact)
            return


def _asked(value: ast.expr) -> tuple[str, str]:
    """Return what an expression asks for, "" where it is nothing that is looked for, and the form of its answer."""
    code = ast.unparse(value)
    if _PACKAGE.search(code):
        return code, _VERSION
    return next(((fact, form) for fact, (mark, form) in _ASKED.items() if mark.search(code)), ("", r"[^\n]{0,200}?"))
