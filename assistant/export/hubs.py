"""For JupyterHub: one profile for each kind of GPU, from which users choose as their server starts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from assistant.export.containers import container_of, tag
from assistant.export.setup import Setup
from assistant.export.shells import variables
from assistant.export.templates import filled
from assistant.i18n import render
from assistant.model.machine import Gpu
from assistant.model.plan import Backend
from assistant.model.record import Record
from assistant.views import kernel_title, plan_title

# What Kubernetes takes for the value of a label: at most 63 letters, digits, dashes, underscores and dots.
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class Profile(Record, frozen=True, omit_defaults=False):
    """What users choose, and what their server gets then.

    `resources` and `nodes` are Kubernetes' names: what is asked for, and the label of nodes that have it; `gres` is the
    same for Slurm.
    """

    slug: str
    title: str
    about: str
    image: str
    environment: dict[str, str]
    resources: dict[str, str]
    nodes: dict[str, str]
    gres: str


def hub_files(setup: Setup) -> dict[str, str]:
    """Write the profile of one setup."""
    return hub_profiles([setup])


def hub_profiles(setups: Iterable[Setup]) -> dict[str, str]:
    """Write a profile for each kind of GPU among setups: values for Zero to JupyterHub, and for any other hub.

    Raises `Unsuited` for one whose device no container reaches.
    """
    kinds = {one.slug: one for one in map(_profile, setups)}
    profiles = list(kinds.values())
    return {
        "jupyterhub/values.yaml": filled("hub_values.yaml", profiles=profiles),
        "jupyterhub/profiles.py": filled("hub_profiles.py", profiles=profiles),
    }


def _profile(setup: Setup) -> Profile:
    """Describe the profile of a setup; raise `Unsuited` where no container reaches its device."""
    row, plan, words = container_of(setup), setup.plan, setup.card.split()
    named = (gpu for gpu in setup.machine.gpus if words and all(word in (gpu.name or "") for word in words))
    gpu = next(named, Gpu())
    resource = row.kubernetes.get(gpu.driver or "", row.kubernetes.get("", ""))
    # Nodes tell the name that the driver gives, "NVIDIA GeForce RTX 4090"; other tools leave the maker out.
    node = "-".join((gpu.name or "").split()) if gpu.name and gpu.name.startswith("NVIDIA") else ""
    return Profile(
        slug=re.sub(r"[^a-z0-9]+", "-", f"{plan.variant} {setup.card}".lower()).strip("-"),
        title=kernel_title(plan, setup.card),
        about=render(plan_title(plan)),
        image=f"{tag(setup)}-hub:{plan.torch}",
        environment=variables(setup),
        resources={resource: "1"} if resource else {},
        nodes={row.node_label: node} if row.node_label and _LABEL.fullmatch(node) else {},
        gres="" if plan.backend is Backend.CPU else "gpu:1",
    )
