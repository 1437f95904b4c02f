"""The official client, driven as by an agent, and a user who answers what the server asks."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import ElicitResult


@dataclass
class User:
    """Agrees or not, and remembers what was asked."""

    agrees: bool = True
    says: object = True
    asked: list[str] = field(default_factory=list)

    async def answer(self, _context: object, params: Any) -> ElicitResult:
        """Answer the form."""
        self.asked.append(params.message)
        if not self.agrees:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"agree": self.says})


class Agent:
    """A connected client: `call` gives what a tool answered, `progress` what the last call told meanwhile."""

    def __init__(self, portal: Any, client: Client) -> None:
        self._portal, self.client = portal, client
        self.progress: list[tuple[float, float | None, str | None]] = []
        self.failed = False

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool; `failed` says afterwards whether it was an error."""
        self.progress = []
        result = self._portal.call(self._called, tool, arguments)
        self.failed = bool(result.is_error)
        return result.structured_content or {"text": "".join(part.text for part in result.content)}

    async def _called(self, tool: str, arguments: dict[str, object]) -> Any:
        return await self.client.call_tool(tool, arguments, progress_callback=self._told)

    async def _told(self, number: float, total: float | None, message: str | None) -> None:
        self.progress.append((number, total, message))

    def cancelled(self, tool: str, after: Callable[[], bool], **arguments: object) -> None:
        """Call a tool and cancel it once `after` holds."""

        async def run() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(self._called, tool, arguments)
                await anyio.to_thread.run_sync(_until, after)
                group.cancel_scope.cancel()

        self._portal.call(run)

    def do(self, method: str, *arguments: object, **options: object) -> Any:
        """Call a method of the client."""

        async def run() -> Any:
            return await getattr(self.client, method)(*arguments, **options)

        return self._portal.call(run)

    def trusted(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool that may run the Python of an environment; where it needs consent, ask and have it answer."""
        answer = self.call(tool, **arguments)
        return self.agreed(answer) if self.failed and "change" in answer else answer

    def agreed(self, proposal: dict[str, Any]) -> dict[str, Any]:
        """Have the user asked about a proposal, and it carried out if they agree."""
        return self.call("carry_out", change=proposal["change"])


def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.05)


@contextlib.contextmanager
def connected(env: dict[str, str], user: User | None = None, *options: str, mode: str = "auto") -> Iterator[Agent]:
    """Start the server as a client's configuration does, and connect to it; without a user nobody can be asked."""
    program = str(Path(sys.executable).with_name("assistant"))
    server = StdioServerParameters(command=program, args=["mcp", *options], env=env, cwd=env["HOME"])
    client = Client(server, elicitation_callback=user.answer if user else None, mode=mode)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield Agent(portal, client)
