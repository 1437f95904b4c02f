"""The six steps, as an add-on may take them: the machine, the catalogue, plans, environments and causes."""

from __future__ import annotations

from assistant.catalog import Catalog, TorchWheel, load_catalog, number
from assistant.detect import detect
from assistant.diagnose import read_log
from assistant.export import MARKER
from assistant.host.base import ReplayHost
from assistant.host.download import Fetch, Patience, download
from assistant.host.extras import find_uv
from assistant.host.files import file_name, local_path
from assistant.host.live import LiveHost
from assistant.install import EnvironmentFolder, Package, RemotePlan, Resolution, Site, Sources, Tools
from assistant.machines import load as recorded_machine
from assistant.machines import shipped as recorded_machines
from assistant.plan import USUAL_PYTHON, PlanInputs, make_plans, nothing_fits
from assistant.session.diagnosis import find_causes
from assistant.session.planning import plan_request
from assistant.session.state import State, Task, required
from assistant.session.store import Store, record_fault
from assistant.views import plan_title, rejection_reason, system_name
