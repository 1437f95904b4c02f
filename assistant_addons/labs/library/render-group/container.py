"""Start what compose.yaml describes, in a pretended container, and look for the card as ROCm's rocminfo does.

Who may open a device is decided as the kernel decides it: by the numbers of the user and of the groups, and the
device's owner, group and mode. The devices are those of host.json, the names of groups those of the image,
in image.group.
"""

import json
import sys
from pathlib import Path

import yaml

NEEDED = ("/dev/kfd", "/dev/dri/renderD128")
READ_WRITE = 6

host = json.loads(Path("host.json").read_text(encoding="utf-8"))
try:
    service = yaml.safe_load(Path("compose.yaml").read_text(encoding="utf-8"))["services"]["train"]
    service.get("user")
except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
    sys.exit(f"compose.yaml: services.train does not describe a container: {type(error).__name__}: {error}")
lines = Path("image.group").read_text(encoding="utf-8").splitlines()
image = {line.split(":")[0]: int(line.split(":")[2]) for line in lines}


def number(name):
    """Return a group's number, as Docker does: a number stays, a name is looked up in the image."""
    name = str(name)
    if name.isdecimal():
        return int(name)
    if name not in image:
        sys.exit(f"Error response from daemon: Unable to find group {name}: no matching entries in group file")
    return image[name]


user, _colon, group = str(service.get("user", "0:0")).partition(":")
uid = int(user) if user.isdecimal() else 0 if user == "root" else 1000
groups = [number(group or "0"), *(number(one) for one in service.get("group_add") or [])]
given = [str(one).split(":")[0] for one in service.get("devices") or []]
called = {value: key for key, value in image.items()}
print(f"uid={uid} groups={','.join(f'{one}({called[one]})' if one in called else str(one) for one in groups)}")
for path in NEEDED:
    if not any(path == one or path.startswith(f"{one}/") for one in given):
        sys.exit(f"Unable to open {path} read-write: No such file or directory")
    owner, gid, mode = host["devices"][path]
    print(f"{path}: owner {owner}, group {gid}, mode {mode}")
    digit = mode[2] if gid in groups else mode[3]
    if uid and int(digit) & READ_WRITE != READ_WRITE:
        print(f"Unable to open {path} read-write: Permission denied")
        sys.exit(
            'user is not member of "render" group, the default DRM access group. Users must be a member of the '
            '"render" group or another DRM access group in order for ROCm applications to run successfully.'
        )
print("Agent 2: gfx1100, AMD Radeon RX 7900 XTX")
if not uid:
    sys.exit("refused: the program runs as root, and whatever breaks out of it may do everything")
