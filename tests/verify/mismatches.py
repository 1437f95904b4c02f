"""Distributions that fail on import as real ones do, and healthy ones with strange ways, made for a real environment.

Each class of failures is a function that yields its variations, with the outcome that is expected of them. Their files
are real: extensions are compiled, wheels are installed by uv, and what is damaged is damaged after that.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from assistant.model.report import Status

FAILED, PASSED, SKIPPED, TIMEOUT = Status.FAILED, Status.PASSED, Status.SKIPPED, Status.TIMEOUT
Damage = Callable[[Path], None]
EXTENSION = """
#include <stddef.h>
struct definition {{ size_t count; void *type; void *init; size_t index; void *copy; const char *name, *doc;
                     ptrdiff_t size; void *methods, *slots, *traverse, *clear, *release; }};
static struct definition known = {{1, 0, 0, 0, 0, "{name}", 0, -1, 0, 0, 0, 0, 0}};
extern void *PyModule_Create2(void *, int);
{before}
void *PyInit_{name}(void) {{ {inside} return PyModule_Create2(&known, 1013); }}
"""


@dataclass
class Case:
    """A distribution: its files, what its metadata says, what happens to it after, and what must come of it.

    `words` are looked for in what the verification says; `needs` are distributions installed before it, or not at all.
    """

    name: str
    status: Status
    files: dict[str, str | bytes] = field(default_factory=dict)
    words: str = ""
    metadata: str = ""
    top_level: str | None = None
    extra_info: dict[str, str] = field(default_factory=dict)
    damage: Damage | None = None
    installed: bool = True
    version: str = "1.0"

    @property
    def module(self) -> str:
        """Its module, where it has one of its own name."""
        return self.name.replace("-", "_")

    def wheel(self, folder: Path) -> Path:
        """Write its wheel."""
        info = f"{self.module}-{self.version}.dist-info"
        files = {name: text.encode() if isinstance(text, str) else text for name, text in self.files.items()}
        files[f"{info}/METADATA"] = (
            f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}\n{self.metadata}".encode()
        )
        files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        if self.top_level is not None:
            files[f"{info}/top_level.txt"] = self.top_level.encode()
        files |= {f"{info}/{name}": text.encode() for name, text in self.extra_info.items()}
        path = folder / f"{self.module}-{self.version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            rows = []
            for name, content in files.items():
                wheel.writestr(name, content)
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                rows.append(f"{name},sha256={digest},{len(content)}\n")
            wheel.writestr(f"{info}/RECORD", "".join([*rows, f"{info}/RECORD,,\n"]))
        return path


@cache
def compiled(source: str, *options: str, cwd: Path | None = None) -> bytes:
    """Compile a shared library and return it."""
    import tempfile  # noqa: PLC0415 - here alone

    with tempfile.TemporaryDirectory() as folder:
        code, made = Path(folder) / "code.c", Path(folder) / "made.so"
        code.write_text(source)
        words = ["gcc", "-shared", "-fPIC", "-w", "-O0", "-o", str(made), str(code), *options]
        subprocess.run(words, check=True, capture_output=True, cwd=cwd)
        return made.read_bytes()


@cache
def needing(name: str, library: str) -> bytes:
    """Compile an extension that asks the loader for a library."""
    import tempfile  # noqa: PLC0415 - here alone

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "stub.so").write_bytes(compiled("int stub(void) { return 1; }", f"-Wl,-soname,{library}"))
        return compiled(
            EXTENSION.format(name=name, before="extern int stub(void);", inside="stub();"),
            f"{folder}/stub.so",
            "-Wl,--no-as-needed",
        )


def extension(name: str, before: str = "", inside: str = "") -> bytes:
    """Compile an extension of Python."""
    return compiled(EXTENSION.format(name=name, before=before, inside=inside))


def package(name: str, code: str, **more: str | bytes) -> dict[str, str | bytes]:
    """Return the files of a package whose `__init__.py` holds some code."""
    return {f"{name}/__init__.py": code, **{f"{name}/{file}": content for file, content in more.items()}}


def numbered(kind: str, status: Status, codes: dict[str, str], words: str = "") -> Iterator[Case]:
    """Yield a case for each piece of code that stands at the top of a package, and what must be said of it."""
    for number, (code, said) in enumerate(codes.items()):
        name = f"{kind}-{number}"
        yield Case(name, status, package(name.replace("-", "_"), code), said or words)


# Of torch, for which the import is tried again after torch's, and of anything else.
SYMBOLS = ("_ZN3c105ErrorC2ENS_14SourceLocationESs", "PyNothing_Such")


def undefined_symbols() -> Iterator[Case]:
    """Yield extensions built against another torch or Python: in the package, beside it, and deep inside."""
    for number, symbol in enumerate(SYMBOLS):
        code = {"before": f"extern int {symbol}(void);", "inside": f"{symbol}();"}
        beside, within, deep = f"symbol-beside-{number}", f"symbol-within-{number}", f"symbol-deep-{number}"
        module = beside.replace("-", "_")
        files = package(module, "") | {f"{module}_cuda.so": extension(f"{module}_cuda", **code)}
        yield Case(beside, FAILED, files, symbol)
        files = package(within.replace("-", "_"), "from . import _C", **{"_C.so": extension("_C", **code)})
        yield Case(within, FAILED, files, symbol)
        inner = {"ops/__init__.py": "import ctypes, os\nctypes.CDLL(os.path.dirname(__file__) + '/libops.so')"}
        files = package(deep.replace("-", "_"), "from . import ops", **inner)
        files[f"{deep.replace('-', '_')}/ops/libops.so"] = compiled(
            f"extern int {symbol}(void); int f(void) {{ return {symbol}(); }}", "-Wl,-z,now"
        )
        yield Case(deep, FAILED, files, symbol)


def raised() -> Iterator[Case]:
    """Yield packages whose import raises: names that another package no longer has, and every kind of exception.

    What is raised is repeated as it is, so one of each kind stands for all that packages say.
    """
    yield from numbered(
        "raised",
        FAILED,
        {
            "from torch import _six": "_six",
            "import torch\ntorch.cuda.amp.custom_fwd": "cuda",
            "from collections import Mapping": "Mapping",
            "import numpy\nnumpy.float": "float",
            "raise ImportError('numpy.core.multiarray failed to import')": "multiarray",
            "raise RuntimeError('operator torchvision::nms does not exist')": "torchvision::nms",
            "raise ImportError('DLL load failed while importing _C: The specified module could not be found.')": "DLL",
            "raise FileNotFoundError(\"Could not find module 'C:\\\\x\\\\bitsandbytes.dll' (or one of its "
            'dependencies).")': "bitsandbytes.dll",
            "class A(type): pass\nclass B(type): pass\nclass C(metaclass=A): pass\nclass D(C, metaclass=B): pass": (
                "metaclass conflict"
            ),
            "import importlib.metadata as m\nm.version('transformers-nothing')": "transformers-nothing",
            "import importlib.metadata as m\nassert m.version('raised-7') > '9'": "Assert",
            "import warnings\nwarnings.simplefilter('error')\nwarnings.warn('raised')": "",
            "raise ExceptionGroup('several', [ValueError(1)])": "several",
            "def f(): return f()\nf()": "Recursion",
            "raise MemoryError": "MemoryError",
            "raise PermissionError(13, 'Permission denied', '/root/.cache')": "Permission",
            "from . import gone": "gone",
            "from .gone import thing": "gone",
            "from raised_18 import own_name": "own_name",
        },
    )


def exits() -> Iterator[Case]:
    """Yield modules that end the program, by Python's way and behind its back."""
    yield from numbered(
        "exit",
        FAILED,
        {
            "raise SystemExit": "",
            "import sys\nsys.exit('No GPU was found.')": "No GPU",
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--need', required=True)\np.parse_args()": (
                "SystemExit: 2"
            ),
            "import os\nos._exit(0)": "exit status 0",
            "import os\nos._exit(3)": "exit status 3",
            "raise KeyboardInterrupt": "KeyboardInterrupt",
            "class Own(BaseException): pass\nraise Own('own')": "own",
            "import threading, _thread\n_thread.interrupt_main()\nimport time\ntime.sleep(1)": "KeyboardInterrupt",
            "input('Continue? ')": "EOF",
        },
    )


def crashes() -> Iterator[Case]:
    """Yield modules that take the process down."""
    codes = {f"import os, signal\nos.kill(os.getpid(), signal.{name})": name for name in ("SIGABRT", "SIGKILL")}
    yield from numbered("crash", FAILED, {**codes, "import ctypes\nctypes.string_at(0)": "SIGSEGV"})
    name = "crash_native"
    yield Case("crash-native", FAILED, {f"{name}.so": extension(name, inside="*(volatile int *)0 = 1;")}, "SIGSEGV")
    name = "crash_constructor"
    before = "__attribute__((constructor)) static void early(void) { *(volatile int *)0 = 1; }"
    yield Case("crash-constructor", FAILED, {f"{name}.so": extension(name, before=before)}, "SIGSEGV")


def hangs() -> Iterator[Case]:
    """Yield modules that do not come back: they wait, will not be ended, hold Python's lock, wait for a child."""
    yield from numbered(
        "hang",
        TIMEOUT,
        {
            "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()": "",
            "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)": "",
            "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])": "",
        },
        "It did not end within",
    )
    yield Case("hang-native", TIMEOUT, {"hang_native.so": extension("hang_native", inside="for (;;);")}, "did not end")


def foreign_binaries() -> Iterator[Case]:
    """Yield extensions of another Python, another machine, or cut off."""
    good = extension("x")
    arm = good[:18] + b"\xb7\x00" + good[20:]  # e_machine of ELF: AArch64
    for number, (content, words) in enumerate(((good[:3000], ""), (b"", "file too short"), (arm, ""))):
        name = f"foreign_{number}"
        yield Case(name.replace("_", "-"), FAILED, {f"{name}.so": content}, words)
    tag = "cpython-38-x86_64-linux-gnu"
    yield Case("foreign-python", FAILED, {f"foreign_python.{tag}.so": good}, "")
    yield Case("foreign-name", FAILED, {"foreign_name.so": extension("other_name")}, "PyInit")


def without(*paths: str) -> Damage:
    """Return what removes files from site-packages."""

    def damage(site: Path) -> None:
        for path in paths:
            for found in site.glob(path):
                shutil.rmtree(found) if found.is_dir() else found.unlink()

    return damage


def half_removed() -> Iterator[Case]:
    """Yield distributions of which files are gone: an uninstallation that was cut, a disk cleaner."""
    for number, gone in enumerate(("__init__.py", "sub/deep.py", "_C.so", ".", "libcore.so.1")):
        name = f"half-{number}"
        module = name.replace("-", "_")
        more = {"lazy.py": "", "sub/__init__.py": "", "sub/deep.py": "", "_C.so": extension("_C"), "libcore.so.1": b"x"}
        files = package(module, "", **more)
        yield Case(name, FAILED, files, "are missing", damage=without(module if gone == "." else f"{module}/{gone}"))
    yield Case("half-single", FAILED, {"half_single.py": ""}, "are missing", damage=without("half_single.py"))
    for number, (gone, words) in enumerate((("METADATA", "metadata"), ("[MRW]*", "metadata"))):
        name = f"half-info-{number}"
        info = without(f"{name.replace('-', '_')}-1.0.dist-info/{gone}")
        yield Case(name, FAILED, package(name.replace("-", "_"), ""), words, damage=info)
    files = {"half_data/lib/libhalf.so.13": b"x", "half_data/include/half.h": ""}
    yield Case("half-data", FAILED, files, "are missing", damage=without("half_data/lib"))
    both = without("half_both", "half_both-1.0.dist-info/RECORD")
    yield Case("half-both", FAILED, package("half_both", ""), "half_both", "", "half_both\n", damage=both)


def absent() -> Iterator[Case]:
    """Yield what is asked for and not installed."""
    for name in ("torchcodec", "Absent.Name"):
        yield Case(f"absent-{name.lower().replace('.', '-')}", FAILED, words="not installed", installed=False)


def false_metadata() -> Iterator[Case]:
    """Yield metadata that names modules which are not there."""
    yield Case("named-only", FAILED, {}, "named_only", top_level="named_only\n")
    yield Case("named-other", FAILED, {"readme.txt": "x"}, "elsewhere_it_is", top_level="elsewhere_it_is\n")
    yield Case("named-import", FAILED, {}, "named_import", metadata="Import-Name: named_import\n")
    yield Case("named-inner", FAILED, package("named_inner", ""), "inner", metadata="Import-Name: named_inner.inner\n")
    two = "Import-Name: named_two\nImport-Name: named_second\n"
    yield Case("named-two", FAILED, package("named_two", ""), "named_second", metadata=two)
    yield Case("named-only-two", FAILED, {}, "aa_named", top_level="aa_named\nbb_named\n")


def below_a_namespace() -> Iterator[Case]:
    """Yield distributions whose module lies in a folder that others share, or needs what an extra brings."""
    space = {"dd_space/beside/__init__.py": "1 / 0"}
    yield Case("beside-space", FAILED, space, "division")
    yield Case("beside-space-top", FAILED, {"ee_space/beside/__init__.py": "1 / 0"}, "division", top_level="ee_space\n")
    yield Case("beside-extra-own", FAILED, package("beside_extra_own", "import extra_thing"), "extra_thing", EXTRA)


EXTRA = 'Requires-Dist: extra-thing; extra == "more"\nProvides-Extra: more\n'
MISMATCHES = (
    *(undefined_symbols, raised, exits, crashes, hangs, foreign_binaries),
    *(half_removed, absent, false_metadata, below_a_namespace),
)


def mismatches() -> list[Case]:
    """Return all cases."""
    return [case for kind in MISMATCHES for case in kind()]


TORCH = """
import ctypes, os
__version__ = "2.9.9+standin"
ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib", "libc10.so"), ctypes.RTLD_GLOBAL)
"""
LIBC10 = "int _ZN3c103oneEv(void) { return 1; } int stub(void) { return 1; }"


def torch() -> Case:
    """Return a torch that only brings its library, as extensions need it."""
    library = compiled(LIBC10, "-Wl,-soname,libc10.so")
    return Case("torch", PASSED, package("torch", TORCH, **{"lib/libc10.so": library, "utils/__init__.py": ""}))


def healthy() -> list[Case]:
    """Return distributions that work, each in a way of its own."""
    one = "_ZN3c103oneEv"
    wants_torch = {"before": f"extern int {one}(void);", "inside": f"{one}();"}
    shadow = "import sys\nsys.modules[__name__] = type('Lazy', (), {'x': 1})()"
    lazy = "def __getattr__(name):\n    raise AttributeError(name)\n"
    more = {"tests/__init__.py": "1 / 0", "docs/conf.py": "1 / 0", "examples/__init__.py": "1 / 0", "setup.py": "1 / 0"}
    dirty = {f"{name}.py": "1 / 0" for name in ("conftest", "benchmarks", "tools", "scripts")}
    tagged = f"well_tagged.cpython-{'{}{}'.format(*__import__('sys').version_info)}-x86_64-linux-gnu.so"
    return [
        torch(),
        Case("well-single", PASSED, {"well_single.py": ""}),
        Case("Well.Dotted-name", PASSED, package("well_dotted_name", "")),
        Case("well-other-name", PASSED, package("quite_another", "")),
        Case("well-native", PASSED, {"well_native.so": extension("well_native")}),
        Case("well-tagged", PASSED, {tagged: extension("well_tagged")}),
        Case("well-abi3", PASSED, {"well_abi3.abi3.so": extension("well_abi3")}),
        Case("well-within", PASSED, package("well_within", "from . import _C", **{"_C.so": extension("_C")})),
        Case("well-torch-first", PASSED, {"well_torch_first.so": extension("well_torch_first", **wants_torch)}),
        Case("well-torch-library", PASSED, {"well_torch_library.so": needing("well_torch_library", "libc10.so")}),
        Case("well-torch-needed", PASSED, package("well_torch_needed", "import torch")),
        Case("well-space", PASSED, {"hh_space/well/__init__.py": ""}),
        Case("well-space-two", PASSED, {"hh_space/two/__init__.py": "import hh_space.well"}, top_level="hh_space\n"),
        Case("well-space-deep", PASSED, {"ii/jj/kk/__init__.py": "", "ii/jj/ll/__init__.py": ""}),
        Case("well-space-module", PASSED, {"mm_space/module.py": ""}),
        Case("well-legacy", PASSED, {"nn/__init__.py": "", "nn/in/__init__.py": ""}, top_level="nn\n"),
        Case("nvidia-well-cu13", SKIPPED, {"nvidia/cu13/lib/libwell.so.13": b"x", "nvidia/cu13/include/well.h": ""}),
        Case("well-data", SKIPPED, {"well_data/weights.bin": b"x", "well_data/LICENSE": "x"}),
        Case("types-well", SKIPPED, {"well-stubs/__init__.pyi": "x: int"}),
        Case("well-empty", SKIPPED, {}),
        Case("well-says-none", SKIPPED, {"stray.py": "1 / 0"}, metadata="Import-Name:\n"),
        Case("well-top-empty", SKIPPED, {}, top_level="\n"),
        Case("well-stray", PASSED, package("well_stray", "") | more | dirty),
        Case("well-stray-top", PASSED, package("well_stray_top", ""), top_level="well_stray_top\ntests\n_private\n"),
        Case("well-stale-top", PASSED, package("well_stale_top", ""), top_level="well_stale_top\nlong_gone\n"),
        Case("well-private", PASSED, package("_well_private_only", ""), top_level="_well_private_only\n"),
        Case("well-private-beside", PASSED, package("well_private_beside", "") | {"_wrong.py": "1 / 0"}),
        Case("well-pep794", PASSED, package("well_pep", "") | {"un.py": "1 / 0"}, metadata="Import-Name: well_pep\n"),
        Case(
            "well-pep794-private",
            PASSED,
            package("well_pep_own", "") | {"hidden.py": "1 / 0"},
            metadata="Import-Name: well_pep_own\nImport-Name: hidden ; private\n",
        ),
        Case("well-extra", PASSED, package("well_extra", "") | {"well_extrad.py": "import extra_thing"}, "", EXTRA),
        Case("well-slow", PASSED, package("well_slow", "import time\ntime.sleep(1.5)")),
        Case("well-prints", PASSED, package("well_prints", "print('loading', end='')")),
        Case("well-floods", PASSED, package("well_floods", "print('x' * 5_000_000)\nprint('y\\n' * 50_000)")),
        Case("well-json", PASSED, package("well_json", "print('{\"status\": \"ok\"}')\nprint('{}')")),
        Case("well-writes", PASSED, package("well_writes", "import os\nos.write(1, b'from C')\nos.write(2, b'\\xff')")),
        Case("well-closes", PASSED, package("well_closes", "import os, sys\nsys.stdout.close()\nos.close(1)")),
        Case("well-quiet", PASSED, package("well_quiet", "import os\nos.dup2(os.open(os.devnull, os.O_WRONLY), 1)")),
        Case("well-replaces", PASSED, package("well_replaces", "import sys\nsys.stdout = sys.stderr = None")),
        Case(
            "well-argparse",
            PASSED,
            package("well_argparse", "import argparse\nargparse.ArgumentParser().parse_args()"),
        ),
        Case("well-warns", PASSED, package("well_warns", "import warnings\nwarnings.warn('old')")),
        Case("well-lazy", PASSED, package("well_lazy", lazy)),
        Case("well-replaced", PASSED, package("well_replaced", shadow)),
        Case("well-thread", PASSED, package("well_thread", "import threading, time\n"
             "threading.Thread(target=time.sleep, args=(600,)).start()")),
        Case("well-child", PASSED, package("well_child", "import subprocess, sys\n"
             "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])")),
        Case("well-atexit", PASSED, package("well_atexit", "import atexit, os\natexit.register(os._exit, 1)")),
        Case("well-numpy", PASSED, package("well_numpy", "import numpy\nnumpy.zeros(2)")),
        Case("dataclasses", PASSED, {"dataclasses.py": "1 / 0"}),
        Case("asyncio", PASSED, package("asyncio", "1 / 0")),
        Case("opencv-python", PASSED, package("cv2", "x = 'long one'")),
        Case("opencv-python-headless", PASSED, package("cv2", "x = 'other'")),
        Case("well-signal", PASSED, package("well_signal", "import signal\n"
             "signal.signal(signal.SIGTERM, signal.SIG_IGN)")),
        Case("well-path", PASSED, package("well_path", "import sys\nsys.path.clear()")),
        Case("well-patched", PASSED, package("well_patched", "x = 1"), damage=patched("well_patched/__init__.py")),
        Case("well-tests-gone", PASSED, package("well_tests_gone", "", **{"tests/__init__.py": "", "tests/t.py": ""}),
             damage=without("well_tests_gone/tests")),
        Case("well-unrecorded", PASSED, package("well_unrecorded", ""), damage=without("well_unrecorded-*/RECORD")),
        Case("well-leftover", PASSED, package("well_leftover", "x = 1"), damage=left_behind),
    ]  # fmt: skip


# What Python 3.15 does: https://docs.python.org/3.15/whatsnew/3.15.html#importlib-metadata
STRICT = """import importlib.metadata as m
class MetadataNotFound(FileNotFoundError): pass
def metadata(self, old=m.Distribution.metadata.fget):
    if self.read_text('METADATA') is None and self.read_text('PKG-INFO') is None: raise MetadataNotFound
    return old(self)
m.Distribution.metadata = property(metadata)
"""


def left_behind(site: Path) -> None:
    """Leave what a cut uninstallation leaves, and change a file, so that its owner is looked for; as in Python 3.15."""
    (site / "~ell_leftover-0.9.dist-info").mkdir()
    (site / "strict_metadata.py").write_text(STRICT)
    (site / "strict_metadata.pth").write_text("import strict_metadata\n")
    patched("well_leftover/__init__.py")(site)


def patched(path: str) -> Damage:
    """Return what changes a file, as a user may."""

    def damage(site: Path) -> None:
        (site / path).unlink()  # uv may have linked it to its cache
        (site / path).write_text("x = 'by hand'\n")

    return damage
