"""Imports what a distribution brings, to see whether it works; `child.py` loads this file in place of the checks.

One process imports one distribution, as a user's program would, so that neither what another one has loaded nor its
crash is taken for this one's. Like `child.py` this file runs on Python >= 3.8 and imports nothing of the assistant.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import importlib
import importlib.metadata
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assistant.verify.child import Checks, Result, Target

# Chosen: top-level names that distributions leave behind by mistake, and that are not there to be imported.
_STRAY_NAMES = re.compile(
    r"tests?|testing|docs?|examples?|samples?|benchmarks?|scripts?|tools?|setup|conftest|build|src"
)


def checks(asked: dict[str, dict[str, Any]]) -> Checks:
    """Return the checks of distributions and recipes, by key, which need no others.

    A value of `asked` holds keyword arguments: with a "name" of `check_package`, else of `check_call`.
    """
    return {
        key: (functools.partial(check_package if "name" in question else check_call, **question), ())
        for key, question in asked.items()
    }


def check_package(target: Target, name: str, call: str = "", *, gpu: bool = False) -> Result:
    """Import the modules of a distribution, then run the line `call`, if any; return the result.

    With `gpu`, the line is left out on the CPU, and the result is "passed" all the same. It is "failed" if the
    distribution is not installed, its metadata or files are missing, or anything raises; "skipped" if it has nothing to
    import.
    """
    sys.argv = [""]  # as in a console: some modules read the command line while they are imported
    started = time.perf_counter()
    package = find_distribution(name)
    if package is None:
        return failed_result(target, "not installed", name=name)
    if not metadata_name(package):
        return failed_result(target, "no metadata", package=name)
    missing = missing_files(package)
    if missing:
        return failed_result(target, "files missing", package=name, count=len(missing), path=missing[0])
    result = import_modules(target, package, name)
    if result["status"] == "passed" and call and gpu and target.kind == "cpu":
        result.update(target.explain("call left out", call=call))
    elif result["status"] == "passed" and call:
        result = run_call(target, "call fails", call, package=name)
    return add_seconds(result, started)


def check_call(target: Target, call: str, *, gpu: bool) -> Result:
    """Run a recipe's line, which computes with what was installed; return the result; with `gpu` skip it on the CPU."""
    sys.argv = [""]
    if gpu and target.kind == "cpu":
        return {"status": "skipped", **target.explain("call left out", call=call)}
    started = time.perf_counter()
    return add_seconds(run_call(target, "trial fails", call), started)


def run_call(target: Target, reason: str, call: str, **values: object) -> Result:
    """Run a line of Python; return the status "passed", or a failed result with `reason` if it raises anything."""
    try:
        exec(call, {})  # noqa: S102 - a line of the assistant's own table
    except BaseException as error:  # noqa: BLE001 - any failure of the target is a finding
        return failed_result(target, reason, error, call=call, **values)
    return {"status": "passed"}


def add_seconds(result: Result, started: float) -> Result:
    """Return the result; if it passed, with the seconds since `started` (`time.perf_counter`)."""
    seconds = time.perf_counter() - started
    return {**result, "seconds": seconds, "first_seconds": seconds} if result["status"] == "passed" else result


def failed_result(target: Target, reason: str, cause: BaseException | None = None, **values: object) -> Result:
    """Return a failed result with an explanation: the key `reason` and its values.

    An exception `cause` adds its first line as the value `error`, and its chain of causes as detail.
    """
    if cause is None:
        return {"status": "failed", **target.explain(reason, **values)}
    detail = target.error_chain(cause)
    return {"status": "failed", "detail": detail, **target.explain(reason, error=detail.split("\n")[0][:300], **values)}


def canonicalize(name: str) -> str:
    """Return a distribution's name as in an index (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def metadata_name(package: Any) -> str:  # noqa: ANN401 - importlib.metadata's own
    """Return the canonical name in a distribution's metadata, "" if that is missing."""
    with contextlib.suppress(FileNotFoundError):  # which Python 3.15 and newer raise there
        return canonicalize(package.metadata["Name"] or "")
    return ""


def find_distribution(name: str) -> Any:  # noqa: ANN401 - importlib.metadata's own
    """Return an installed distribution, by any spelling of its name; None if it is not installed."""
    for package in importlib.metadata.distributions(name=name):
        return package
    for package in importlib.metadata.distributions():  # Python 3.8 does not find ruamel.yaml by ruamel-yaml
        if metadata_name(package) == canonicalize(name):
            return package
    return None


def recorded_files(package: Any) -> list[str]:  # noqa: ANN401 - importlib.metadata's own
    """Return the files that a distribution's RECORD lists, missing ones as well (`Distribution.files` has not those).

    torch/__init__.py,sha256=4bZ…,103412
    """
    rows = csv.reader((package.read_text("RECORD") or "").splitlines())
    return [row[0].replace("\\", "/") for row in rows if row]


def missing_files(package: Any) -> list[str]:  # noqa: ANN401 - importlib.metadata's own
    """Return the files of code in the RECORD that do not exist, as after an interrupted uninstallation.

    Files in folders such as "tests" and "docs" are left out.
    """
    return [
        path
        for path in recorded_files(package)
        if (path.endswith((".py", ".pyd", ".dll", ".dylib")) or ".so" in path.rpartition("/")[2])
        and not any(map(_STRAY_NAMES.fullmatch, path.split("/")[1:-1]))
        and not os.path.exists(str(package.locate_file(path)))  # noqa: PTH110 - as the rest of the child
    ]


def modules_to_import(package: Any) -> list[str]:  # noqa: ANN401 - importlib.metadata's own
    """Return the modules that a user imports of a distribution: those in its metadata's `Import-Name` (PEP 794).

    Without that field, return those of its name, with top-level extension modules, which may be built against another
    torch; a Python module there may need what only an extra brings, as blackd of black does. If none has its name,
    return all public ones but stray names such as "tests"; private ones only if there are no others.
    """
    named = package.metadata.get_all("Import-Name")  # PEP 794
    if named is not None:
        names = [name.partition(";")[0].strip() for name in named if not name.partition(";")[2].strip()]
        return [name for name in names if name.rpartition(".")[0] not in names]
    own, files = metadata_name(package), recorded_files(package)
    tops = (package.read_text("top_level.txt") or "").split() or ([] if files else [own.replace("-", "_")])
    found = top_level_modules(files) + [top for top in tops if not any(re.match(rf"{top}[./]", path) for path in files)]
    primary = [module for module in found if own in (canonicalize(module), *map(canonicalize, module.split(".")))]
    if primary:
        native = {module_name(path) for path in files if path.endswith((".so", ".pyd")) and "/" not in path}
        return primary + [module for module in found if module in native and module not in primary]
    meant = [module for module in found if not any(map(_STRAY_NAMES.fullmatch, module.split(".")))]
    public = [module for module in meant if not any(part.startswith("_") for part in module.split("."))]
    return public or meant


def top_level_modules(files: list[str]) -> list[str]:
    """Return the dotted names of the packages and modules, among files, that are not inside another package.

    In a namespace folder these are the first packages below it. Modules in such a folder count only if there is nothing
    else.
    """
    packages, modules = set(), set()
    for path in files:
        *folders, last = path.split("/")
        name = module_name(last)
        if name and all(map(str.isidentifier, folders)) and "__pycache__" not in folders:
            if name != "__init__":
                modules.add((*folders, name))
            elif folders:
                packages.add(tuple(folders))
    top = [
        parts
        for parts in sorted(packages | modules)
        if not any(parts[:length] in packages for length in range(1, len(parts)))
    ]
    # A module in a folder that is no package counts only where there is nothing else: mostly it is a stray script.
    return [".".join(parts) for parts in ([name for name in top if name in packages or len(name) == 1] or top)]


def module_name(file: str) -> str:
    """Return the module that a file holds, "" for none.

    six.py, _yaml.cpython-311-x86_64-linux-gnu.so, _cffi_backend.cp312-win_amd64.pyd; but not libtorch.so
    """
    name, _, rest = file.partition(".")
    tagged = re.fullmatch(r"(?:cpython-\d|pypy\d|abi3|cp\d)[\w.-]*(?:so|pyd)", rest)
    is_one = tagged or rest in ("py", "pyc", "pyd") or (rest == "so" and not name.startswith("lib"))
    return name if is_one and name.isidentifier() else ""


def import_modules(target: Target, package: Any, name: str) -> Result:  # noqa: ANN401 - importlib.metadata's own
    """Import the modules of a distribution, until one fails; return "passed", "failed", or "skipped" if it has none."""
    modules = modules_to_import(package)
    if not modules:
        return {"status": "skipped", **target.explain("nothing to import", package=name)}
    for module in modules:
        try:
            import_after_torch(module)
        except BaseException as error:  # noqa: BLE001 - any failure of the target is a finding
            return failed_result(target, "cannot be imported", error, module=module)
    return {"status": "passed"}


def import_after_torch(module: str) -> None:
    """Import a module; if that fails, import torch, whose libraries it may need, and try again, which may raise.

    What is neither `ImportError` nor `OSError` is raised at once.
    """
    try:
        importlib.import_module(module)
    except (ImportError, OSError):
        if "torch" in sys.modules:
            raise
        with contextlib.suppress(Exception):
            importlib.import_module("torch")
        if "torch" not in sys.modules:
            raise
        importlib.import_module(module)
