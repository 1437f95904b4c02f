"""Imports what a distribution brings, to see whether it works; `child.py` loads this file in place of the checks.

One process imports one distribution, as a user's program would, so that neither what another one has loaded nor its
crash is taken for this one's. Like `child.py` this file runs on Python >= 3.8 and imports nothing of the assistant.
"""

from __future__ import annotations

import contextlib
import csv
import email.message
import functools
import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
import sysconfig
import time
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Tuple  # noqa: UP035 - evaluated by Python 3.8

if TYPE_CHECKING:
    from assistant.verify.child import Checks, Result, Target

Parts = Tuple[str, ...]  # noqa: UP006 - evaluated by Python 3.8; ("google", "protobuf") is google.protobuf
# Chosen: top-level names that distributions leave behind by mistake, and that are not there to be imported.
_STRAY_NAMES = re.compile(
    r"tests?|testing|docs?|examples?|samples?|benchmarks?|scripts?|tools?|setup|conftest|build|src"
)
_LEGACY_NAMESPACE = re.compile(rb"declare_namespace|extend_path")  # pkg_resources' and pkgutil's ways, before PEP 420
# The words of dlopen on Linux and macOS, and of ctypes on Windows.
_LIBRARY = re.compile(
    r"(?<![^\s/'\"])([^\s/'\"]+\.so[.\d]*): cannot open shared object|Library not loaded: (?:\S*/)?(\S+)"
    r"|[Cc]ould not find module '(?:[^']*[\\/])?([^'\\/]+)'"
)
_SYMBOL = re.compile(
    r"undefined symbol: (\w+)|[Ss]ymbol not found(?: in flat namespace)?:? '?(\w+)|version [`'](\S+)' not"
)
# An extension that is a module by itself finds torch's libraries only once torch has been imported.
_TORCH_FIRST = re.compile(r"\b(?:lib)?(?:c10|torch)\w*\.(?:so|dylib)|\b_Z\w*(?:c10|torch|2at)|DLL load failed")
# OpenCV's wheels share the module cv2 and differ in windows and extra modules: whichever came last does the work.
_INTERCHANGEABLE = re.compile(r"opencv(-contrib)?-python(-headless)?")


class Distribution(NamedTuple):
    """An installed distribution: its metadata, its files by path with their recorded sizes, and what to import.

    `files` is None where they are not recorded; `primary` are the modules that bear its name, or all where none does.
    """

    name: str
    found: Any
    files: Dict[str, str] | None  # noqa: UP006 - as in 3.8
    modules: List[str]  # noqa: UP006 - likewise
    primary: List[str]  # noqa: UP006 - likewise


def checks(asked: dict[str, dict[str, Any]]) -> Checks:
    """Return a check for each question by its key: a distribution's name with a call to try, `gpu` or not, or a call.

    A call alone is a recipe's.
    """
    return {
        key: (functools.partial(check_package if "name" in wanted else check_call, **wanted), ())
        for key, wanted in asked.items()
    }


def check_package(target: Target, name: str, call: str = "", *, gpu: bool = False) -> Result:
    """Import the top-level modules of a distribution, then try the call."""
    sys.argv = [""]  # as in a console: some modules read the command line while they are imported
    started = time.perf_counter()
    package = read(name)
    if package is None:
        return failure(target, "not installed", name=name)
    result = fault_of_files(target, package) or imported(target, package)
    if result["status"] == "passed" and call:
        left_out = gpu and target.kind == "cpu"
        result = {
            **result,
            **(
                target.explain("call left out", call=call)
                if left_out
                else tried(target, "call fails", call, package=name)
            ),
        }
    seconds = time.perf_counter() - started
    return {**result, "seconds": seconds, "first_seconds": seconds} if result["status"] == "passed" else result


def check_call(target: Target, call: str, *, gpu: bool) -> Result:
    """Run a recipe's line, which computes something with what was installed."""
    sys.argv = [""]
    if gpu and target.kind == "cpu":
        return {"status": "skipped", **target.explain("call left out", call=call)}
    started = time.perf_counter()
    result = tried(target, "trial fails", call)
    seconds = time.perf_counter() - started
    return {**result, "seconds": seconds, "first_seconds": seconds} if result["status"] == "passed" else result


def tried(target: Target, reason: str, call: str, **values: object) -> Result:
    """Run a line that shows that something works; `reason` and `values` tell that it does not."""
    try:
        exec(call, {})  # noqa: S102 - a line of the assistant's own table
    except BaseException as error:  # noqa: BLE001 - any failure of the target is a finding
        return failure(target, reason, error, call=call, error=words(target, error), **values)
    return {"status": "passed"}


def failure(target: Target, reason: str, cause: BaseException | None = None, **values: object) -> Result:
    """Return a failed result: its sentence, and what was raised."""
    return {
        "status": "failed",
        **({"detail": target.chain(cause)} if cause else {}),
        **target.explain(reason, **values),
    }


def words(target: Target, error: BaseException) -> str:
    """Return the first line of what was raised."""
    return str(target.chain(error)).partition("\n")[0][:300]


def canonical(name: str) -> str:
    """Return a distribution's name as in an index (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def metadata(found: Any) -> Any:  # noqa: ANN401 - importlib.metadata's own
    """Return what a distribution says of itself, nothing where that is gone: Python 3.15 and newer raise there."""
    try:
        return found.metadata
    except FileNotFoundError:
        return email.message.Message()


def own_name(found: Any) -> str:  # noqa: ANN401 - importlib.metadata's own
    """Return the canonical name that a distribution gives itself, "" for none."""
    return canonical(metadata(found)["Name"] or "")


def find(name: str) -> Any:  # noqa: ANN401 - importlib.metadata's own
    """Find an installed distribution by any spelling of its name; None where there is none."""
    for one in importlib.metadata.distributions(name=name):
        return one
    for one in importlib.metadata.distributions():  # Python 3.8 does not find ruamel.yaml by ruamel-yaml
        if own_name(one) == canonical(name):
            return one
    return None


def read(name: str) -> Distribution | None:
    """Read what an installed distribution says of itself."""
    found = find(name)
    if found is None:
        return None
    files = recorded(found)
    modules = [module for module in modules_of(found, files) if module]
    own = [module for module in modules if canonical(name) in (canonical(module), canonical(module.split(".")[0]))]
    ordered = own + [module for module in modules if module not in own]
    return Distribution(name, found, files, ordered, own or ordered)


def recorded(found: Any) -> dict[str, str] | None:  # noqa: ANN401 - importlib.metadata's own
    """Read the files of a distribution with their sizes; `Distribution.files` leaves out what is gone.

    torch/__init__.py,sha256=4bZ…,103412
    """
    text = found.read_text("RECORD")
    rows = csv.reader((text or "").splitlines())
    return {row[0].replace("\\", "/"): row[-1] if len(row) > 2 else "" for row in rows if row} or None  # noqa: PLR2004


def modules_of(found: Any, files: dict[str, str] | None) -> list[str]:  # noqa: ANN401 - importlib.metadata's own
    """List the modules of a distribution that a user imports: by its metadata (PEP 794), or by its files."""
    named = metadata(found).get_all("Import-Name")
    if named is not None:
        names = [name.partition(";")[0].strip() for name in named if not name.partition(";")[2].strip()]
        return [name for name in names if name.rpartition(".")[0] not in names]
    tops = (found.read_text("top_level.txt") or "").split()
    if files is None:
        return wanted([(top,) for top in tops], found) or guessed(found)
    spaces = {tuple(line.split(".")) for line in (found.read_text("namespace_packages.txt") or "").split()}
    packages, modules = python_files(found, files, spaces)
    there = outermost(packages, modules)
    tops = tops or list(dict.fromkeys(parts[0] for parts in there))
    listed = [parts for top in tops for parts in ([one for one in there if one[0] == top] or [(top,)])]
    return wanted(listed, found) or ([] if listed else guessed(found))


def guessed(found: Any) -> list[str]:  # noqa: ANN401 - importlib.metadata's own
    """Return the module of the distribution's own name, where nothing says which ones it has but that one is there.

    So with what is installed in place (PEP 660): it records only the file that leads there.
    """
    name = own_name(found).replace("-", "_")
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(name)
        return [name] if spec and spec.origin else []  # a folder of data has no origin
    return []


def wanted(listed: list[Parts], found: Any) -> list[str]:  # noqa: ANN401 - importlib.metadata's own
    """Leave out modules that nobody is to import: private ones unless there are no others, tests, documentation."""
    own = own_name(found)
    meant = [one for one in listed if canonical(one[0]) == own or not any(map(_STRAY_NAMES.fullmatch, one))]
    public = [parts for parts in meant if not any(part.startswith("_") for part in parts)]
    return [".".join(parts) for parts in dict.fromkeys(public or meant)]


def python_files(found: Any, files: dict[str, str], spaces: set[Parts]) -> tuple[set[Parts], set[Parts]]:  # noqa: ANN401
    """Return the packages and the modules among files; a package of `spaces` is shared by several distributions."""
    packages: set[Parts] = set()
    modules: set[Parts] = set()
    for path in files:
        *folders, last = path.split("/")
        name = module_name(last)
        if not name or not all(map(str.isidentifier, folders)) or "__pycache__" in folders:
            continue
        if name != "__init__":
            modules.add((*folders, name))
        elif folders and tuple(folders) not in spaces and not is_shared(found, path):
            packages.add(tuple(folders))
    return packages, modules


def is_shared(found: Any, path: str) -> bool:  # noqa: ANN401 - importlib.metadata's own
    """Return whether the `__init__.py` of a top-level package only lets distributions share it."""
    if path.count("/") != 1:
        return False
    with contextlib.suppress(OSError), open(str(found.locate_file(path)), "rb") as file:  # noqa: PTH123 - as the child
        return _LEGACY_NAMESPACE.search(file.read(2000)) is not None
    return False


def module_name(file: str) -> str:
    """Return the module that a file holds, "" for none.

    six.py, _yaml.cpython-311-x86_64-linux-gnu.so, _cffi_backend.cp312-win_amd64.pyd; but not libtorch.so
    """
    name, _, rest = file.partition(".")
    tagged = re.fullmatch(r"(?:cpython-\d|pypy\d|abi3|cp\d)[\w.-]*(?:so|pyd)", rest)
    is_one = tagged or rest in ("py", "pyc", "pyd") or (rest == "so" and not name.startswith("lib"))
    return name if is_one and name.isidentifier() else ""


def outermost(packages: set[Parts], modules: set[Parts]) -> list[Parts]:
    """Return the packages and modules that lie in no other package: below a namespace, the first that is one.

    A module in a folder that is no package counts only where there is nothing else: mostly it is a stray script.
    """

    def inner(parts: Parts) -> bool:
        return any(parts[:length] in packages for length in range(1, len(parts)))

    there = [parts for parts in sorted(packages | modules) if not inner(parts)]
    return [parts for parts in there if parts in packages or len(parts) == 1] or there


def fault_of_files(target: Target, package: Distribution) -> Result | None:
    """Tell what is wrong with a distribution before it is imported: half removed, or overwritten by another."""
    name = package.name
    if not own_name(package.found):
        return failure(target, "no metadata", package=name)
    missing, changed = compared(package)
    if missing:
        return failure(target, "files missing", package=name, count=len(missing), path=missing[0])
    other = owner(package, changed) if changed else ""
    if other and not (_INTERCHANGEABLE.fullmatch(canonical(name)) and _INTERCHANGEABLE.fullmatch(other)):
        return failure(target, "overwritten", package=name, other=other)
    return None


def compared(package: Distribution) -> tuple[list[str], dict[str, int]]:
    """Compare the code of the modules with the record: the files that are gone, and those of another size.

    Of a distribution without modules it is all code, such as the libraries of an NVIDIA wheel.
    """
    roots = tuple(module.replace(".", "/") for module in package.modules) or ("",)
    missing, changed = [], {}
    for path, size in (package.files or {}).items():
        *folders, last = path.split("/")
        code = last.endswith((".py", ".pyd", ".dll", ".dylib")) or ".so" in last
        if not (code and path.startswith(roots)) or any(map(_STRAY_NAMES.fullmatch, folders[1:])):
            continue
        try:
            seen = os.stat(str(package.found.locate_file(path))).st_size  # noqa: PTH116 - as the rest of the child
        except FileNotFoundError:
            missing.append(path)
        else:
            if size and int(size) != seen:
                changed[path] = seen
    return missing, changed


def owner(package: Distribution, changed: dict[str, int]) -> str:
    """Return the distribution whose files stand in the place of this one's; "" where the user has changed them."""
    for other in importlib.metadata.distributions():
        named = own_name(other)
        theirs = (recorded(other) or {}) if named != canonical(package.name) else {}
        if any(theirs.get(path) == str(size) for path, size in changed.items()):
            return named
    return ""


def imported(target: Target, package: Distribution) -> Result:
    """Import the modules of a distribution, one after the other, until one fails."""
    if not package.modules:
        return {"status": "skipped", **target.explain("nothing to import", package=package.name)}
    for module in package.modules:
        try:
            stray = elsewhere(package, module)
            if stray:
                return failure(target, "from elsewhere", module=module, path=stray, package=package.name)
            import_after_torch(module)
        except BaseException as error:  # noqa: BLE001 - any failure of the target is a finding
            if module in package.primary or not excused(package, module, error):
                return failed_import(target, package, module, error)
    return {"status": "passed"}


def import_after_torch(module: str) -> None:
    """Import a module; one that misses torch's libraries is tried again after torch."""
    try:
        importlib.import_module(module)
    except (ImportError, OSError) as error:
        if "torch" in sys.modules or not _TORCH_FIRST.search(str(error)):
            raise
        importlib.import_module("torch")
        importlib.import_module(module)


def elsewhere(package: Distribution, module: str) -> str:
    """Return the file from which a module would come that is none of the distribution's; "" where all is well."""
    start = module.replace(".", "/")
    own = [path for path in package.files or {} if path.startswith((start + ".", start + "/__init__."))]
    spec = importlib.util.find_spec(module) if own else None
    origin = os.path.realpath(spec.origin) if spec and spec.origin and os.path.isabs(spec.origin) else ""  # noqa: PTH117
    if not origin or origin in {os.path.realpath(str(package.found.locate_file(path))) for path in own}:
        return ""
    return "" if is_standard(origin) else origin  # as with what PyPI keeps for older Pythons, such as dataclasses


def is_standard(path: str) -> bool:
    """Return whether a file belongs to Python's own library."""
    with contextlib.suppress(ValueError):  # it lies elsewhere
        parts = PurePath(path).relative_to(os.path.realpath(sysconfig.get_path("stdlib"))).parts
        return not {"site-packages", "dist-packages"}.intersection(parts)
    return False


def excused(package: Distribution, module: str, error: BaseException) -> bool:
    """Return whether a failed import does not count: the module needs an extra, or was never there.

    blackd of black needs aiohttp, of the extra black[d]; and top_level.txt may name what was never shipped.
    """
    missing = missing_module(error)
    if missing == module and not metadata(package.found).get_all("Import-Name"):
        return package.files is not None and not any(
            path.startswith((module + ".", module + "/")) for path in package.files
        )
    lines = package.found.requires or []
    extras, always = (
        {canonical(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in lines if ("extra ==" in line) is optional}
        for optional in (True, False)
    )
    return canonical(missing.split(".")[0]) in extras - always


def missing_module(error: BaseException | None) -> str:
    """Return the module whose lack is behind an exception; "" where it is something else."""
    for _ in range(8):
        if error is None or (isinstance(error, ModuleNotFoundError) and error.name):
            break
        error = error.__cause__ or error.__context__
    return (error.name or "") if isinstance(error, ModuleNotFoundError) else ""


def failed_import(target: Target, package: Distribution, module: str, error: BaseException) -> Result:
    """Say why an import failed, as far as the words of the exceptions tell."""
    said = target.chain(error)
    library, symbol = _LIBRARY.search(said), _SYMBOL.search(said)
    if isinstance(error, SystemExit):
        return failure(target, "exits", error, module=module)
    if library:
        return failure(target, "library missing", error, module=module, library=library.group(library.lastindex or 0))
    if symbol:
        return failure(target, "symbol missing", error, module=module, symbol=symbol.group(symbol.lastindex or 0))
    missing = missing_module(error)
    if missing and (module + ".").startswith(missing + "."):
        return failure(target, "module missing", error, module=module, package=package.name)
    if missing:
        return failure(target, "needs module", error, module=module, missing=missing)
    return failure(target, "cannot be imported", error, module=module, error=words(target, error))
