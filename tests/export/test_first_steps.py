"""The first notebook: valid, in both languages, for every backend; and it runs on the kernel of a minimal install."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nbclient
import nbformat
import pytest
from export.setups import ENVIRONMENT, PLAN
from tables import each

from assistant.export import first_notebook, write_first_notebook
from assistant.i18n import use_language
from assistant.install.guards import terminal_line
from assistant.model.errors import WorkFailed
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.model.shell import Shell

CPU = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.11", requirements=("torch==2.13.0",))


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    yield
    use_language("en")


@each("language", ["en", "zh_CN"])
@each("backend", Backend)
def test_the_notebook_is_whole_for_every_backend(backend: Backend, language: str) -> None:
    """It follows the format, asks for the new kernel, and each cell is Python that names the backend's own device."""
    use_language(language)
    made = replace(ENVIRONMENT, display_name="PyTorch 2.6 · GeForce RTX 4090")
    notebook = first_notebook(made, replace(PLAN, backend=backend))
    nbformat.validate(nbformat.from_dict(notebook))
    assert notebook["metadata"]["kernelspec"] == {
        "name": ENVIRONMENT.kernel,
        "display_name": "PyTorch 2.6 · GeForce RTX 4090",
        "language": "python",
    }
    cells = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for source in cells:
        ast.parse(source)
    kind = {"rocm": "cuda", "directml": "torch_directml.device()"}.get(backend.value, backend.value)
    assert kind in cells[0]
    assert "PyTorch 2.6 · GeForce RTX 4090" in notebook["cells"][0]["source"]


def test_matplotlib_draws_where_the_plan_has_it() -> None:
    """And nothing beyond torch and IPython is imported where it has not."""

    def imported(plan: Plan) -> set[str]:
        text = "\n".join(cell["source"] for cell in first_notebook(ENVIRONMENT, plan)["cells"])
        return set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE))

    own = {"torch", "importlib", "sys", "time"}
    assert imported(CPU) == {*own, "struct", "zlib", "IPython"}
    assert imported(replace(CPU, requirements=("torch", "matplotlib"))) == {*own, "matplotlib"}


def test_a_notebook_of_before_is_kept(tmp_path: Path) -> None:
    """What the user made of it stays; another kernel's, or somebody else's of that name, is never written over."""
    folder = tmp_path / "new" / "folder"
    first = write_first_notebook(folder, ENVIRONMENT, CPU)
    assert first == folder / "first-steps.ipynb"
    text = json.loads(first.read_text(encoding="utf-8"))
    text["cells"] = text["cells"][:1]
    first.write_text(json.dumps(text))
    assert write_first_notebook(folder, ENVIRONMENT, CPU) == first
    assert len(json.loads(first.read_text())["cells"]) == 1
    other = replace(ENVIRONMENT, kernel="torch-cpu-2")
    assert write_first_notebook(folder, other, CPU).name == "first-steps-2.ipynb"
    first.write_text("mine")
    assert write_first_notebook(folder, ENVIRONMENT, CPU).name == "first-steps-3.ipynb"
    bare = replace(ENVIRONMENT, kernel=None)  # no notebook of anybody else's is taken for its own
    last = write_first_notebook(folder, bare, CPU)
    assert last.name == "first-steps-4.ipynb"
    assert write_first_notebook(folder, bare, CPU) == last
    assert first.read_text() == "mine"
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkFailed, match="cannot be written"):
        write_first_notebook(tmp_path / "file", ENVIRONMENT, CPU)


@pytest.mark.torch
@pytest.mark.parametrize("language", ["zh_CN", pytest.param("en", marks=pytest.mark.full)])  # the code is the same
def test_the_notebook_runs_on_a_minimal_install(
    cpu_environment: Environment, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an error: it draws twice, learns the spirals, and tells how long a step takes."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(Path(cpu_environment.path).parent / "JUPYTER_DATA_DIR"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # beside other tests, two threads would wait for one another
    use_language(language)
    notebook = nbformat.from_dict(first_notebook(cpu_environment, CPU))
    nbclient.NotebookClient(notebook, kernel_name=cpu_environment.kernel, timeout=300).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    said = "".join(output.get("text", "") for output in outputs)
    assert "envs --mend" not in said
    other = replace(cpu_environment, packages={"torch": "2.12.0+cu130"})  # as if that had been replaced
    first = next(cell for cell in first_notebook(other, CPU)["cells"] if cell["cell_type"] == "code")["source"]
    told = subprocess.run([cpu_environment.python, "-c", first], capture_output=True, text=True, check=True).stdout
    assert "uv " in told
    assert "2.12.0+cu130" in told
    assert f"assistant envs --mend {cpu_environment.path}" in told
    right = [int(percent) for percent in re.findall(r"(\d+)%", said)]
    assert right[0] < 70
    assert right[-1] > 95
    assert re.search(r"cpu +\d+\.\d ms", said)


@pytest.mark.process
def test_the_line_for_the_terminal_works(tmp_path: Path) -> None:
    """Typed into a shell it makes the environment's Python the first, with the plan's variables."""
    place = tmp_path / "it's $HOME"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "activate").write_text(f"PATH={shlex.quote(str(place / 'bin'))}:$PATH\n")
    plan = replace(CPU, env={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"})
    made = Environment(path=str(place), python=str(place / "bin" / "python"))
    line = terminal_line(made, plan, Shell.SH)
    done = subprocess.run(
        ["bash", "-c", f"{line}\necho $HSA_OVERRIDE_GFX_VERSION $PATH"],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"10.3.0 {place / 'bin'}:")


def test_the_line_for_windows_and_for_conda(tmp_path: Path) -> None:
    """PowerShell, which has to be allowed to run a script, cmd and conda have words of their own."""
    made = Environment(path=r"C:\it's", python=r"C:\it's\Scripts\python.exe")
    plan = replace(CPU, env={"HF_HUB_OFFLINE": "1"})
    powershell = terminal_line(made, plan, Shell.POWERSHELL)
    allowed = "Set-ExecutionPolicy -Scope Process RemoteSigned -Force"
    assert powershell == rf"$env:HF_HUB_OFFLINE = '1'; {allowed}; & 'C:\it''s\Scripts\Activate.ps1'"
    assert terminal_line(made, plan, Shell.WINDOWS) == powershell
    assert terminal_line(made, plan, Shell.CMD) == """set "HF_HUB_OFFLINE=1" && "C:\\it's\\Scripts\\activate.bat\""""
    (tmp_path / "conda-meta").mkdir()
    conda = Environment(path=str(tmp_path), python=str(tmp_path / "bin" / "python"))
    assert terminal_line(conda, CPU, Shell.SH) == f"conda activate {tmp_path}"
    there = Environment(path=r"C:\conda", python=r"C:\conda\python.exe")
    assert terminal_line(there, CPU, Shell.POWERSHELL) == r"conda activate C:\conda"
