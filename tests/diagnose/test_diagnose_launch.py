"""Launch arguments of image applications are corrected for another backend; `answers.jsonl` has them read from logs."""

from __future__ import annotations

import pytest

from assistant.catalog.catalog import correct_arguments, launch_line, launchers
from assistant.model.plan import Backend

APPS = {launcher.key: launcher for launcher in launchers()}


@pytest.mark.parametrize(
    ("app", "old", "backend", "new"),
    [
        ("a1111", "--medvram --use-directml --port 7861", "rocm", "--medvram --port 7861"),
        ("forge", "--directml 1 --skip-torch-cuda-test --cuda-malloc", "rocm", "--cuda-malloc"),
        ("sdnext", "--use-directml --medvram", "rocm", "--medvram --use-rocm"),
        ("sdnext", "--use-zluda", "xpu", "--use-ipex"),
        ("comfyui", "--directml 0 --listen 0.0.0.0", "rocm", "--listen 0.0.0.0"),
        ("comfyui", "--lowvram", "cpu", "--lowvram --cpu"),
        ("stabilitymatrix", "--directml --no-half-vae", "rocm", "--no-half-vae"),
        ("invokeai", "cuda:1", "cpu", "cpu"),
        ("a1111", "--use-cpu=all --no-half", "cuda", "--no-half"),
    ],
)
def test_arguments_are_corrected_and_all_others_kept(app: str, old: str, backend: str, new: str) -> None:
    """What chooses another backend goes, with its values; what the new one needs comes."""
    assert correct_arguments(APPS[app], tuple(old.split()), Backend(backend)) == tuple(new.split())


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("app", APPS)
def test_correcting_twice_changes_nothing_more(app: str, backend: Backend) -> None:
    """Arguments that are right stay as they are."""
    once = correct_arguments(APPS[app], ("--directml", "1", "--port", "7861"), backend)
    assert once is None or correct_arguments(APPS[app], once, backend) == once


def test_a_backend_that_an_application_lacks_is_not_invented() -> None:
    """InvokeAI has no DirectML, the AMD fork does not run on a Mac."""
    assert correct_arguments(APPS["invokeai"], (), Backend.DIRECTML) is None
    assert launch_line(APPS["amdgpu"], (), "macos") is None


def test_the_line_is_written_as_its_file_wants_it() -> None:
    """Windows sets a variable in a batch file, Linux exports it; words with spaces stay one word."""
    words = ("--ckpt-dir", "my models")
    assert launch_line(APPS["a1111"], words, "windows") == 'set COMMANDLINE_ARGS=--ckpt-dir "my models"'
    assert launch_line(APPS["comfyui"], (), "linux") == "python main.py"
