"""For clusters: module files for Lmod and Environment Modules, and a prologue for Slurm that runs `assistant check`."""

from __future__ import annotations

import re
import shlex

from assistant.export.setup import Setup, Unsuited, verified
from assistant.export.shells import variables
from assistant.export.templates import filled
from assistant.i18n import _, render
from assistant.privacy import at_home
from assistant.views import plan_title

_LUA = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
_HOME = "~/"


def module_files(setup: Setup) -> dict[str, str]:
    """Write a module in Lua, which Lmod prefers, and one in Tcl under the same name, for Environment Modules."""
    path = _on_linux(setup)
    name = re.sub(r"[^\w.+-]+", "-", f"{setup.plan.torch}-{setup.plan.variant}")
    content = {
        "home": path.startswith(_HOME),
        "path": path.removeprefix(_HOME),
        "title": render(plan_title(setup.plan)),
        "version": setup.plan.torch,
        "env": variables(setup),
    }
    return {
        f"modulefiles/pytorch/{name}.lua": filled("module.lua", {"lua": _lua}, **content),
        f"modulefiles/pytorch/{name}": filled("module.tcl", {"tcl": _tcl}, **content),
    }


def slurm_text(setup: Setup) -> str:
    """Write a script that Slurm runs before a job, or before a task: it compares the node with `assistant.toml`."""
    path = _on_linux(setup)
    target = f'"$HOME"/{shlex.quote(path.removeprefix(_HOME))}' if path.startswith(_HOME) else shlex.quote(path)
    return filled("prolog.sh", target=target)


def _on_linux(setup: Setup) -> str:
    """Return the folder of an environment on Linux; raise `Unsuited` for any other, which no cluster of these has."""
    environment = verified(setup)[0]
    if (setup.machine.os or "linux") != "linux" or setup.machine.wsl:
        raise Unsuited(
            _("Clusters run Linux, and this environment is for another system."),
            hint=_("Choose another format, such as requirements.txt."),
        )
    return at_home(environment.path)


def _lua(text: str) -> str:
    """Quote for Lua: a backslash and the quote are all that is special within double quotes, but for line breaks.

    https://www.lua.org/manual/5.3/manual.html#3.1
    """
    return f'"{text.translate(_LUA)}"'


def _tcl(text: str) -> str:
    """Quote for Tcl, which puts variables and commands in place within double quotes unless each is escaped.

    https://www.tcl-lang.org/man/tcl8.6/TclCmd/Tcl.htm
    """
    return '"{}"'.format(re.sub(r'([\\"$\[\]{}])', r"\\\1", " ".join(text.splitlines())))
