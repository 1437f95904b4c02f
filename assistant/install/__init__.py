"""Turn a plan into an environment: `prepare` says what would happen, `run` does it or leaves everything as it was.

Other packages import from here only, never from the modules behind it.
"""

from assistant.install.conflicts import FOREIGN_PIP, conflicts, undone_by_project
from assistant.install.constraints import guarded, guards, replaced
from assistant.install.difference import ChangeRequest, Difference, make_change, plan_change, version_in_place
from assistant.install.downloads import prune
from assistant.install.elsewhere import commands_for, resolve_for
from assistant.install.in_place import Move, Undoable
from assistant.install.inspect_env import (
    Distribution,
    Site,
    interpreter,
    is_closed,
    is_environment,
    look_at,
    missing_python_finding,
    python_of,
    read_site,
    stamp_of,
    torch_build,
)
from assistant.install.installation import Prepared, prepare, run
from assistant.install.kernel import environments_with_kernels, set_variables
from assistant.install.marker import read_marker
from assistant.install.resolution import (
    OnlySource,
    Package,
    Resolution,
    Unsolved,
    check_index_url,
    check_requirement,
    find_one,
    without_wheel,
)
from assistant.install.search import (
    FoundEnvironment,
    Kind,
    MadeEnvironment,
    environment_at,
    find_environments,
    foreign_target,
    made_environments,
    marked_environments,
    remove_environment,
    replaced_builds,
    size_of,
)
from assistant.install.sources import Consent, Sources, Tools
from assistant.install.target import (
    KERNEL,
    check_folder,
    find_target,
    full_path,
    not_an_environment,
)
from assistant.install.undo import Outcome, Recovered, forget, recover, undo, undoable
