"""Judges the plan that a learner has put into answer.json, against a recorded machine."""

from __future__ import annotations

from msgspec import Struct

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.i18n import render, say
from assistant.labs.scene import Scene
from assistant.machines import load
from assistant.model.errors import AssistantError
from assistant.model.plan import Backend
from assistant.model.record import from_json
from assistant.plan import make_plans


class _Chosen(Struct):
    """What decides in a plan that `assistant plan --json` printed."""

    backend: Backend
    variant: str
    torch: str


class _Answer(Struct):
    choice: _Chosen | None = None


def plan_fault(scene: Scene, machine: str) -> str:
    """Compare the plan in answer.json with those that run on the machine as it stands; "" for a right one."""
    written = scene.read("answer.json")
    if not written:
        return say("There is no answer.json yet.")
    try:
        answer = from_json(written, _Answer, "answer.json").choice
    except AssistantError as error:
        return render(error.message)
    known = make_plans(detect(ReplayHost(load(machine))).machine, load_catalog()).plans
    right = {(plan.variant, plan.torch) for plan in known if plan.backend is Backend.CUDA}
    if answer is None or answer.backend is not Backend.CUDA:
        return say("The plan in answer.json does not use the GPU.")
    if (answer.variant, answer.torch) not in right:
        return say(
            "torch {torch} with {variant} does not run on that machine as it is.",
            torch=answer.torch,
            variant=answer.variant,
        )
    return ""
