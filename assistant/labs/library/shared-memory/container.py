"""Start the training that compose.yaml describes; usage: container.py PYTHON.

The container is pretended, as not every computer has Docker: no file in shared memory may become larger than the
shared memory that a container with these settings has. What fails then is PyTorch's own data loader.
Docker's default: https://docs.docker.com/reference/cli/docker/container/run/.
"""

import re
import resource
import subprocess
import sys
from pathlib import Path

import yaml

DEFAULT = "64m"
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

try:
    service = yaml.safe_load(Path("compose.yaml").read_text(encoding="utf-8"))["services"]["train"]
    size = re.fullmatch(r"(\d+)([bkmg]?)b?", str(service.get("shm_size", DEFAULT)).lower())
except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
    sys.exit(f"compose.yaml: {type(error).__name__}: {error}")
if size is None:
    sys.exit(f"services.train.shm_size: invalid size: {service['shm_size']!r}")
shared = "host" if service.get("ipc") == "host" else int(size[1]) * UNITS[size[2]]
print("shared memory of the container:", shared if shared == "host" else f"{shared >> 20} MB", flush=True)
if shared != "host":
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    bound = shared if hard == resource.RLIM_INFINITY else min(shared, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bound, bound))
sys.exit(subprocess.run([sys.argv[1], Path(__file__).with_name("train.py")], check=False).returncode)
