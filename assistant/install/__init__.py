"""Turn a plan into an environment: `prepare` says what would happen, `run` does it or leaves everything as it was.

Other packages import from here only, never from the modules behind it.
"""

from assistant.install.backends import find_uv
from assistant.install.conflicts import conflicts
from assistant.install.constraints import guarded
from assistant.install.environments import (
    Made,
    made_environments,
    marked_environments,
    prune,
    remove_environment,
    replaced_builds,
)
from assistant.install.inspect_env import Site, interpreter, is_environment, look_at, python_of
from assistant.install.kernel import set_variables
from assistant.install.packages import Package, Resolution
from assistant.install.prepared import Prepared, prepare, run
from assistant.install.recovery import Outcome, Recovered, give_up, recover
from assistant.install.resolution import Unsolved
from assistant.install.sources import Consent, Sources, known_index
from assistant.install.target import (
    KERNEL,
    Marker,
    check_folder,
    default_target,
    find_target,
    not_an_environment,
    read_marker,
)
from assistant.install.tools import Tools
from assistant.install.validate import check_index_url, check_requirement

__all__ = [
    "KERNEL",
    "Consent",
    "Made",
    "Marker",
    "Outcome",
    "Package",
    "Prepared",
    "Recovered",
    "Resolution",
    "Site",
    "Sources",
    "Tools",
    "Unsolved",
    "check_folder",
    "check_index_url",
    "check_requirement",
    "conflicts",
    "default_target",
    "find_target",
    "find_uv",
    "give_up",
    "guarded",
    "interpreter",
    "is_environment",
    "known_index",
    "look_at",
    "made_environments",
    "marked_environments",
    "not_an_environment",
    "prepare",
    "prune",
    "python_of",
    "read_marker",
    "recover",
    "remove_environment",
    "replaced_builds",
    "run",
    "set_variables",
]
