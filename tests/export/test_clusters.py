"""What clusters and hubs get, read by Lmod, Environment Modules, Slurm and the spawners of JupyterHub."""

from __future__ import annotations

import getpass
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from export.setups import BOARDS, ENVIRONMENT, PLAN, SETUP
from system_packages import install

from assistant.export.clusters import module_files, slurm_text
from assistant.export.hubs import hub_profiles
from assistant.export.setup import Unsuited
from assistant.install import find_uv
from assistant.model.errors import NothingFits
from assistant.model.machine import Gpu, Vendor
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.session.kits import Pc, profiles_for

LINUX = [name for name in BOARDS if name.startswith("linux")]
# What a module must hand on as it is; a line break becomes a space, as no format of variables has one.
VALUES = {
    "SPACES": "two words # no comment",
    "DOLLAR": "$HOME `id` $(id) [exit] {x} $env(HOME)",
    "QUOTES": 'it\'s "quoted" \\n \\',
    "LINES": "one\ntwo",
    "UMLAUT": "Ä 环境 ]]",
}
SHOWN = "import json, os, sys; print(json.dumps({**os.environ, 'prefix': sys.prefix}))"


def programs(wanted: str, packages: str) -> None:
    """Have programs, asking the system's package manager for them; fail, and never skip, without."""
    path = f"{os.environ['PATH']}{os.pathsep}/usr/sbin"
    if not all(shutil.which(name, path=path) for name in wanted.split()):
        install(packages)
    if lacking := [name for name in wanted.split() if not shutil.which(name, path=path)]:
        pytest.fail(f"{', '.join(lacking)} cannot be had here. Debian: apt install {packages}", pytrace=False)


@pytest.mark.parametrize("name", LINUX)
@pytest.mark.process
def test_shellcheck_reads_the_prologue(exports, name):
    """It is a script for any shell of POSIX."""
    script = exports[name] / "slurm" / "pytorch-prolog.sh"
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True, check=False, env=with_scripts())
    assert not done.stdout


def with_scripts() -> dict[str, str]:
    """Find the programs of the tests' own environment first."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def test_a_path_in_a_home_names_nobody():
    """Module and prologue look in the home of whoever loads them."""
    texts = "\n".join([*module_files(SETUP).values(), slurm_text(SETUP)])
    assert "jane" not in texts
    assert 'pathJoin(os.getenv("HOME"), "torch env")' in texts
    assert '[file join $::env(HOME) "torch env"]' in texts
    assert "target=\"$HOME\"/'torch env'" in texts


@pytest.mark.parametrize("changes", [{"os": "windows"}, {"os": "macos"}, {"os": "linux", "wsl": True}])
def test_no_cluster_runs_another_system(changes):
    """The refusal names what else there is."""
    with pytest.raises(Unsuited, match="Clusters run Linux"):
        module_files(replace(SETUP, machine=replace(SETUP.machine, **changes)))


CARDS = {
    "NVIDIA GeForce RTX 4090": ("GeForce RTX 4090", {"nvidia.com/gpu.product": "NVIDIA-GeForce-RTX-4090"}),
    "GeForce RTX 4090": ("GeForce RTX 4090", None),  # not the driver's own spelling: no node would have that label
    "NVIDIA Graphics Device (Ä)": ("Graphics Device (Ä)", None),  # Kubernetes takes no such label
}


@pytest.mark.parametrize("name", CARDS)
def test_nodes_are_chosen_by_the_name_that_the_driver_gives(name):
    """And by none where that is not known."""
    card, nodes = CARDS[name]
    gpu = Gpu(vendor=Vendor.NVIDIA, name=name, driver="nvidia")
    files = hub_profiles([replace(SETUP, card=card, machine=replace(SETUP.machine, gpus=(gpu,)))])
    (profile,) = yaml.safe_load(files["jupyterhub/values.yaml"])["singleuser"]["profileList"]
    assert profile["kubespawner_override"].get("node_selector") == nodes
    assert profile["kubespawner_override"]["extra_resource_limits"] == {"nvidia.com/gpu": "1"}


def test_machines_of_one_kind_share_a_profile():
    """Others have their own; the first is what a user gets who chooses nothing."""
    cpu = replace(SETUP, plan=replace(PLAN, backend=Backend.CPU, variant="cpu"))
    files = hub_profiles([replace(SETUP, card="GeForce RTX 4090")] * 3 + [cpu])
    profiles = yaml.safe_load(files["jupyterhub/values.yaml"])["singleuser"]["profileList"]
    assert [(one["slug"], one.get("default", False)) for one in profiles] == [
        ("cu126-geforce-rtx-4090", True),
        ("cpu", False),
    ]
    assert "extra_resource_limits" not in profiles[1]["kubespawner_override"]


def test_a_machine_that_no_profile_serves_is_told():
    """The others get theirs; where none is left, the reason is the answer."""
    windows = Pc(label="one", machine=replace(SETUP.machine, os="windows"), plan=PLAN)
    without = Pc(label="two", machine=SETUP.machine, why="Its driver is too old.")
    told = []
    files = profiles_for([windows, without, Pc(label="three", machine=SETUP.machine, plan=PLAN)], told.append)
    assert len(yaml.safe_load(files["jupyterhub/values.yaml"])["singleuser"]["profileList"]) == 1
    assert sorted(map(str, told)) == [
        "one gets no profile: A container runs Linux, and these packages are for windows.",
        "two gets no profile: Its driver is too old.",
    ]
    with pytest.raises(Unsuited, match="A container runs Linux"):
        profiles_for([windows], told.append)
    with pytest.raises(NothingFits, match="No PyTorch wheel fits"):
        profiles_for([without], told.append)


@pytest.fixture
def modules(cpu_setup, tmp_path) -> Path:
    """Give a folder with the modules of a real environment, whose variables have odd values."""
    environment = replace(ENVIRONMENT, path=cpu_setup["environment"]["path"])
    setup = replace(SETUP, environment=environment, plan=replace(PLAN, backend=Backend.CPU, env=VALUES))
    for path, text in module_files(setup).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    return tmp_path / "modulefiles"


def loaded(script: str) -> tuple[dict[str, str], str]:
    """Run lines of bash that load a module, show the variables and unload it; give those, and all else that is said."""
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    env = {**clean, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["bash", "-c", f"set -e; {script}"], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    shown, _line, rest = done.stdout.partition("\n")
    return json.loads(shown), rest + done.stderr


def proved(shown: dict[str, str], rest: str, cpu_setup: dict[str, dict[str, str]]) -> None:
    """Check that a module led to the environment, handed on every value and left nothing behind."""
    assert shown["prefix"] == cpu_setup["environment"]["path"]
    assert shown["VIRTUAL_ENV"] == cpu_setup["environment"]["path"]
    on_one_line = {name: " ".join(text.splitlines()) for name, text in VALUES.items()}
    assert {name: shown[name] for name in VALUES} == on_one_line
    assert "gone:." in rest


END = "echo gone:$VIRTUAL_ENV."


@pytest.mark.heavy
def test_lmod_loads_the_module(modules, cpu_setup):
    """It takes the one in Lua, and `python` is the environment's own until it is unloaded."""
    if not Path("/usr/share/lmod/lmod/init/bash").is_file():
        install("lmod")
    assert Path("/usr/share/lmod/lmod/init/bash").is_file(), "Lmod cannot be had here. Debian: apt install lmod"
    begin = f". /usr/share/lmod/lmod/init/bash; module use '{modules}'; module load pytorch"
    shown, rest = loaded(f'{begin}; python -c "{SHOWN}"; module -t list; module unload pytorch; {END}')
    proved(shown, rest, cpu_setup)
    assert "pytorch/2.6.0-cu126" in rest
    assert shown["_LMFILES_"].endswith(".lua")


@pytest.mark.heavy
def test_environment_modules_load_the_module(modules, cpu_setup, tmp_path):
    """It takes the one in Tcl. Debian has either this or Lmod, so its files are unpacked beside."""
    programs("tclsh dpkg apt-get", "tcl")
    subprocess.run(["apt-get", "download", "-q", "environment-modules"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["dpkg", "-x", next(tmp_path.glob("*.deb")), tmp_path / "unpacked"], check=True)
    command = min((tmp_path / "unpacked").rglob("modulecmd.tcl"))
    module = f'module() {{ eval "$(tclsh {command} bash "$@")"; }}'
    begin = f"{module}; module use '{modules}'; module load pytorch/2.6.0-cu126"
    shown, rest = loaded(f'{begin}; python -c "{SHOWN}"; module unload pytorch; {END}')
    proved(shown, rest, cpu_setup)
    assert not shown["_LMFILES_"].endswith(".lua")


SLURM = """
ClusterName=loop
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
Prolog={folder}/prolog.sh
TaskProlog={folder}/prolog.sh
NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES State=UP
"""


class Cluster:
    """A cluster of one node, this machine, that runs the exported prologue before its jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._children: list[subprocess.Popen[bytes]] = []
        self._path = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin", "SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> None:
        """Start munge, the controller and the node's daemon, and wait for the node."""
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        host, ports = socket.gethostname().partition(".")[0], [free_port(), free_port()]
        text = SLURM.format(folder=self.folder, host=host, user=getpass.getuser(), ports=ports)
        (self.folder / "slurm.conf").write_text(text)
        files = [f"--{kind}-file={self.folder}/munge.{kind}" for kind in ("key", "log", "pid", "seed")]
        self._daemon("munged", "--force", "--foreground", f"--socket={self.folder}/munge.sock", *files)
        wait((self.folder / "munge.sock").exists)
        self._daemon("slurmctld", "-D")
        self._daemon("slurmd", "-D")
        wait(lambda: "idle" in self.say("sinfo", "-h", "-o", "%T"))

    def _daemon(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.out").open("wb") as said:
            self._children.append(subprocess.Popen(command, env=self._path, stdout=said, stderr=said))

    def say(self, *command: str) -> str:
        """Run a client's command; give all that it printed."""
        done = subprocess.run(command, env=self._path, capture_output=True, text=True, check=False, timeout=120)
        return done.stdout + done.stderr

    def stop(self) -> None:
        """End all daemons, the last first."""
        for child in reversed(self._children):
            child.terminate()
            child.wait(30)


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait(ready) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < deadline, "Slurm did not start"
        time.sleep(0.2)


@pytest.fixture
def cluster(cpu_setup, tmp_path_factory) -> Iterator[Cluster]:
    """Run Slurm with the prologue of a real environment."""
    programs("munged slurmctld slurmd srun", "slurm-wlm munge")
    folder = tmp_path_factory.mktemp("slurm")
    (script,) = (Path(path) for path in cpu_setup["exported"] if path.endswith("pytorch-prolog.sh"))
    shutil.copy(script.parents[1] / "assistant.toml", folder)
    text = script.read_text("utf-8").replace("/opt/assistant/bin/assistant", str(folder / "assistant"))
    (folder / "prolog.sh").write_text(text.replace("/etc/slurm/assistant.toml", str(folder / "assistant.toml")))
    (folder / "assistant").write_text(f'#!/bin/sh\nexec {sys.executable} -m assistant "$@"\n')
    for name in ("prolog.sh", "assistant"):
        (folder / name).chmod(0o755)
    one = Cluster(folder)
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.mark.heavy
def test_slurm_runs_the_prologue(cluster):
    """A node as exported is silent; what differs is told to the user, and drains the node where that is wanted."""
    assert cluster.say("srun", "echo", "computed") == "computed\n"
    config, prologue = cluster.folder / "assistant.toml", cluster.folder / "prolog.sh"
    exported = config.read_text("utf-8")
    config.write_text(re.sub(r'^numpy = "[\d.]+"$', 'numpy = "1.0"', exported, count=1, flags=re.MULTILINE), "utf-8")
    said = cluster.say("srun", "echo", "computed")
    assert "package numpy: was 1.0" in said.partition("computed")[0]
    assert "computed" in said
    config.write_text("no configuration", "utf-8")
    prologue.write_text(prologue.read_text().replace("drain=0", "drain=1"))
    assert "computed" in cluster.say("srun", "echo", "computed")  # a fault of the check is none of the node
    config.write_text(exported.replace('numpy = "', 'numpy = "1.', 1), "utf-8")
    assert "computed" not in cluster.say("srun", "echo", "computed")
    assert "Prolog error" in cluster.say("sinfo", "-R", "-h")


KUBERNETES = """
import asyncio, json, sys, yaml
from kubespawner import KubeSpawner

async def main():
    profiles = yaml.safe_load(open(sys.argv[1]))["singleuser"]["profileList"]
    for one in profiles:
        spawner = KubeSpawner(_mock=True)
        spawner.profile_list, spawner.user_options = profiles, {"profile": one["slug"]}
        await spawner.load_user_options()
        pod = await spawner.get_pod_manifest()
        container = pod.spec.containers[0]
        device = [each.value for each in container.env if each.name == "INFERENCE_DEVICE"]
        print(json.dumps([one["slug"], container.image, container.resources.limits, pod.spec.node_selector, *device]))

asyncio.run(main())
"""
BATCH = """
import json, sys
from batchspawner import SlurmSpawner
from jupyterhub.spawner import LocalProcessSpawner
from traitlets.config.loader import PyFileConfigLoader

settings = PyFileConfigLoader(sys.argv[1]).load_config()
for kind in (SlurmSpawner, LocalProcessSpawner):
    spawner = kind(config=settings, _mock=True)
    assert sys.argv[2] in spawner.options_form(spawner)
    spawner.user_options = spawner.options_from_form({"profile": [sys.argv[2]]})
    spawner.pre_spawn_hook(spawner)
    print(json.dumps([spawner.environment["INFERENCE_DEVICE"], getattr(spawner, "req_gres", None)]))
"""
KUBECONFIG = """
{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
 clusters: [{name: x, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: x, user: {}}]}
"""


@pytest.mark.heavy
def test_the_spawners_of_kubernetes_and_slurm_take_the_profiles(tmp_path):
    """Each kind of GPU gets its image, its resource and its variables; a machine that no container serves is told."""
    command = [sys.executable, "-m", "assistant", "export", "jupyterhub", "--to", tmp_path]
    machines = ("linux-ubuntu2404-rtx4090", "linux-arch-rx9070xt", "linux-ubuntu2510-arc-b580", "windows11-rtx3060")
    more = [word for name in (*machines, "linux-debian12-cpu-container") for word in ("--machine", name)]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
    assert "gets no profile: A container runs Linux" in done.stderr
    python = tmp_path / "spawners" / "bin" / "python"
    subprocess.run([find_uv(), "venv", "-q", "--python", sys.executable, python.parents[1]], check=True)
    wanted = ("jupyterhub-kubespawner>=7", "batchspawner>=1.3", "pyyaml")
    subprocess.run([find_uv(), "pip", "install", "-q", "--python", python, *wanted], check=True)
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    env = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}
    values = tmp_path / "jupyterhub" / "values.yaml"
    done = subprocess.run([python, "-c", KUBERNETES, values], capture_output=True, text=True, check=True, env=env)
    said = done.stdout
    rows = {slug: rest for slug, *rest in map(json.loads, said.splitlines())}
    kinds = {slug: (limits, nodes, device) for slug, (_image, limits, nodes, device) in rows.items()}
    nodes = {"nvidia.com/gpu.product": "NVIDIA-GeForce-RTX-4090"}
    assert list(kinds.values()) == [
        ({"nvidia.com/gpu": "1"}, nodes, "cuda"),
        ({"amd.com/gpu": "1"}, None, "rocm"),
        ({"gpu.intel.com/xe": "1"}, None, "xpu"),
        ({}, None, "cpu"),
    ]
    assert all(re.fullmatch(r"torch-[a-z0-9.]+-hub:\d[\d.]+", image) for image, *_rest in rows.values())
    slug = list(rows)[1]
    profiles = tmp_path / "jupyterhub" / "profiles.py"
    said = subprocess.run([python, "-c", BATCH, profiles, slug], capture_output=True, text=True, check=True).stdout
    assert list(map(json.loads, said.splitlines())) == [["rocm", "gpu:1"], ["rocm", None]]
