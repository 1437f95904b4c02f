"""`assistant recipes` and `assistant fit` as a user meets them: tables, JSON, and one sentence for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import forked
import pytest
from addons.projects.test_memory import LLAMA_31_8B as CONFIG
from forked import Run
from refused import refused

from assistant_addons.projects.recipes import recipes

pytestmark = pytest.mark.process

MACHINE = {
    "os": "linux",
    "arch": "x86_64",
    "glibc": "2.39",
    "python": "3.12.4",
    "memory_gb": 32,
    "nvidia_driver": "580.95.05",
    "gpus": [{"vendor": "nvidia", "name": "GeForce RTX 4090", "compute_capability": "8.9", "vram_gb": 24}],
}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Give a function that runs the command in a home of its own, with files of a machine and of a model."""
    (tmp_path / "machine.json").write_text(json.dumps(MACHINE))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    environment = forked.at_home(tmp_path / "home")
    return lambda *arguments, **more: forked.run(*arguments, env=environment, cwd=tmp_path, **more)


def test_all_recipes_are_listed(run: Run) -> None:
    """Each with what it works with and the least memory; as JSON with all that is known."""
    listed = run("recipes", "list").stdout
    assert all(f" {recipe.key} " in listed for recipe in recipes())
    assert "CUDA, ROCm, XPU, MPS, CPU" in listed
    answer = json.loads(run("recipes", "list", "--json").stdout)
    assert [row["key"] for row in answer] == [recipe.key for recipe in recipes()]


def test_a_recipe_is_shown_with_its_sources(run: Run) -> None:
    """Requirements, memory by use, notes, addresses and dates."""
    shown = run("recipes", "show", "a1111").stdout
    for word in ("gradio==3.41.2", "4 GB: pictures with", "STABLE_DIFFUSION_REPO", "2024-07-27"):
        assert word in shown
    assert json.loads(run("recipes", "show", "a1111", "--json").stdout)["application"]["commit"].startswith("82a973c")


def test_a_recipe_that_cannot_run_ends_with_3(run: Run) -> None:
    """With the reason."""
    machine = json.dumps({**MACHINE, "gpus": [], "nvidia_driver": None})
    refused(run("plan", "--for", "vllm", "--machine", "-", input=machine), 3, "vLLM needs a GPU")
    told = json.loads(run("plan", "--for", "vllm", "--machine", "-", "--json", input=machine).stdout)
    assert told["choice"] is None
    assert told["rejected"][0]["key"] == "recipe-without-backend"


@pytest.mark.parametrize("words", [("recipes", "show"), ("plan", "--for")], ids=" ".join)
def test_a_misspelt_recipe_gets_the_nearest(run: Run, words: tuple[str, ...]) -> None:
    """In one sentence, before anything is done."""
    refused(run(*words, "comfui"), 2, "'comfui'", "comfyui")


def test_a_model_is_held_against_the_card(run: Run) -> None:
    """The parts and the range are told, and the verdict; one that does not fit ends with 3."""
    fits = run("fit", "--config", "config.json", "--machine", "machine.json")
    assert fits.returncode == 0, fits.stderr
    assert "It fits: GeForce RTX 4090 has 24.0 GB." in fits.stdout
    assert "15.7–19.2 GB" in fits.stdout
    large = run("fit", "--parameters", "70B", "--bits", "4", "--machine", "machine.json")
    assert (large.returncode, large.stderr) == (3, "")
    assert "It does not fit" in large.stdout
    answer = json.loads(run("fit", "--parameters", "8B", "--bits", "Q4_K_M", "--memory", "8", "--json").stdout)
    assert answer["verdict"] == "unknown"
    assert "--config" in answer["text"]["text"]


def test_a_model_is_known_by_its_name(run: Run) -> None:
    """The figure that the answer rests on is told, and who states it; what is not known asks for the size."""
    named = run("fit", "Qwen/Qwen2.5-7B-Instruct", "--machine", "machine.json")
    assert "Weights (7.0 billion parameters, bf16)" in named.stdout
    assert "✓ It fits: GeForce RTX 4090 has 24.0 GB." in named.stdout
    stated = run("fit", "whisper-large-v3", "--memory", "6")
    assert "whisper-large, as OpenAI states" in stated.stdout
    assert "10 GB" in stated.stdout
    assert "That is more than the card has (6.0 GB): it may still run with fewer bits" in stated.stdout
    answer = json.loads(run("fit", "wan2.2-ti2v-5b", "--memory", "8", "--json").stdout)
    assert (answer["verdict"], answer["need"]["gb"], answer["by"]) == ("unknown", 24, "Wan")
    refused(run("fit", "cogvideox-5b", "--memory", "8"), 2, "How large cogvideox-5b is, is not known.")


def test_the_format_in_a_name_counts(run: Run) -> None:
    """Also where the size is given; what somebody states is not of another format."""
    assert "billion parameters, gptq)" in run("fit", "Maverick-AWQ", "--parameters", "400B", "--memory", "80").stdout
    refused(run("fit", "flux.1-dev-fp8"), 2, "How much flux.1 takes in the format fp8", "InvokeAI states 10 GB")


def test_without_a_gpu_the_main_memory_counts(run: Run) -> None:
    """What is not known is told as such."""
    machine = {**MACHINE, "gpus": [], "nvidia_driver": None}
    told = run("fit", "--parameters", "8B", "--bits", "4", "--machine", "-", input=json.dumps(machine))
    assert "the machine has 32.0 GB" in told.stdout
    unknown = run("fit", "--parameters", "8B", "--machine", "-", input=json.dumps({**machine, "memory_gb": None}))
    assert "is not known" in unknown.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--parameters", "many"), "Write it like 8B"),
        (("--parameters", "9" * 400), "Write it like 8B"),
        (("--parameters", "8B", "--bits", "q9"), "Choose one of: fp32"),
        (("--config", "machine.json"), "machine.json is not the config.json of a language model"),
        (("--config", "missing.json"), "cannot be read"),
        (("--parameters", "8B", "--memory", "8", "--machine", "machine.json"), "cannot be combined"),
        ((), "Give it, for example with --parameters 8B"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, words: tuple[str, ...], said: str) -> None:
    """In one sentence, with 2."""
    refused(run("fit", *words), 2, said)
