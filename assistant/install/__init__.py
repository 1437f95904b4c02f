"""Turn a plan into an environment: `prepare` computes what would change; `Prepared.install` changes all or nothing.

Other packages import from here only, never from the modules behind it.
"""

from assistant.install.environment_folder import EnvironmentFolder, find_environments
from assistant.install.in_place import LastChange
from assistant.install.installation import ChangeRequest, Difference, Prepared, prepare, recover
from assistant.install.site import Site
from assistant.install.sources import RemotePlan, Sources, Tools
from assistant.install.uv import Package, Resolution, Unsolved
