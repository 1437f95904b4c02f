"""Turn a plan into an environment: `prepare` says what would happen, `run` does it or leaves everything as it was.

Other packages import from here only, never from the modules behind it.
"""

from assistant.host.uv import find_uv
from assistant.install.conflicts import FOREIGN_PIP, conflicts, undone_by_project
from assistant.install.constraints import guarded, guards, replaced
from assistant.install.difference import Difference, Wanted, carry_out, version_in_place, work_out
from assistant.install.elsewhere import commands_for, resolve_for
from assistant.install.environments import (
    Kind,
    Made,
    Spot,
    find_environments,
    foreign_target,
    made_environments,
    marked_environments,
    prune,
    remove_environment,
    replaced_builds,
    size_of,
    spot_at,
)
from assistant.install.inspect_env import (
    Distribution,
    Site,
    dead,
    interpreter,
    is_closed,
    is_environment,
    look_at,
    python_of,
    read_site,
    stamp_of,
    torch_build,
)
from assistant.install.installation import Prepared, prepare, run
from assistant.install.kernel import environments_with_kernels, set_variables
from assistant.install.resolution import (
    Package,
    Resolution,
    Unsolved,
    check_index_url,
    check_requirement,
    without_wheel,
)
from assistant.install.sources import Consent, Sources, Tools
from assistant.install.swap import set_aside
from assistant.install.target import (
    KERNEL,
    check_folder,
    default_target,
    find_target,
    full_path,
    not_an_environment,
    read_marker,
)
from assistant.install.transaction import Outcome, Recovered, give_up, recover
from assistant.install.undo import Move, Undoable, forget, undo, undoable

__all__ = [
    "FOREIGN_PIP",
    "KERNEL",
    "Consent",
    "Difference",
    "Distribution",
    "Kind",
    "Made",
    "Move",
    "Outcome",
    "Package",
    "Prepared",
    "Recovered",
    "Resolution",
    "Site",
    "Sources",
    "Spot",
    "Tools",
    "Undoable",
    "Unsolved",
    "Wanted",
    "carry_out",
    "check_folder",
    "check_index_url",
    "check_requirement",
    "commands_for",
    "conflicts",
    "dead",
    "default_target",
    "environments_with_kernels",
    "find_environments",
    "find_target",
    "find_uv",
    "foreign_target",
    "forget",
    "full_path",
    "give_up",
    "guarded",
    "guards",
    "interpreter",
    "is_closed",
    "is_environment",
    "look_at",
    "made_environments",
    "marked_environments",
    "not_an_environment",
    "prepare",
    "prune",
    "python_of",
    "read_marker",
    "read_site",
    "recover",
    "remove_environment",
    "replaced",
    "replaced_builds",
    "resolve_for",
    "run",
    "set_aside",
    "set_variables",
    "size_of",
    "spot_at",
    "stamp_of",
    "torch_build",
    "undo",
    "undoable",
    "undone_by_project",
    "version_in_place",
    "without_wheel",
    "work_out",
]
