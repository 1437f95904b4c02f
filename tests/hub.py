"""A JupyterHub on loopback: each account has a server, a home and a kernel of its own."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tornado.httpclient import HTTPRequest
from tornado.ioloop import IOLoop
from tornado.websocket import websocket_connect

START_SECONDS = 90.0
CELL_SECONDS = 300.0
SETTINGS = """
c = get_config()
c.JupyterHub.bind_url = {address!r}
c.JupyterHub.hub_port = {hub_port}
c.JupyterHub.db_url = "sqlite:///hub.sqlite"
c.JupyterHub.cookie_secret_file = "cookie_secret"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {homes!r} + "/{{username}}"
c.Spawner.args = ["--allow-root"]
{more}
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.JupyterHub.services = [{{"name": "test", "api_token": {token!r}}}]
scopes = ["admin:users", "admin:servers", "access:servers"]
c.JupyterHub.load_roles = [{{"name": "test", "scopes": scopes, "services": ["test"]}}]
"""


class Hub:
    """A running hub, driven by its own REST interface and by those of its accounts' servers."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self._login = {"Authorization": f"token {token}"}
        self._client = httpx.Client(headers=self._login, timeout=120.0)

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def start(self, *names: str) -> None:
        """Log accounts in and start their servers, side by side."""
        for name in names:
            self._client.post(f"{self.address}/hub/api/users/{name}").raise_for_status()
            self._client.post(f"{self.address}/hub/api/users/{name}/server").raise_for_status()
        for name in names:
            wait(
                lambda name=name: self._client.get(f"{self.address}/hub/api/users/{name}").json()["servers"][""][
                    "ready"
                ]
            )

    def of(self, name: str, method: str, path: str, **more: Any) -> Any:
        """Ask an account's server for something, as its JupyterLab does; answer what it says."""
        answer = self._client.request(method, f"{self.address}/user/{name}/{path}", **more)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def run(self, name: str, path: str, notebook: Any, kernel: str = "python3") -> None:
        """Run a notebook's code cells on a kernel of the account, with their outputs, and save it there."""
        wanted = {"path": path, "type": "notebook", "name": path, "kernel": {"name": kernel}}
        session = self.of(name, "POST", "api/sessions", json=wanted)
        channels = f"ws{self.address[4:]}/user/{name}/api/kernels/{session['kernel']['id']}/channels"
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        with ThreadPoolExecutor(1) as pool:  # in this thread the loop of the browser's driver may be running
            pool.submit(self._played, channels, code).result()
        self.of(name, "PUT", f"api/contents/{path}", json={"type": "notebook", "content": notebook})
        self.of(name, "DELETE", f"api/sessions/{session['id']}")

    def _played(self, channels: str, cells: list[Any]) -> None:
        loop = IOLoop(make_current=False)
        try:
            loop.run_sync(lambda: self._run(channels, cells), timeout=CELL_SECONDS)
        finally:
            loop.close(all_fds=True)

    async def _run(self, channels: str, cells: list[Any]) -> None:
        socket = await websocket_connect(HTTPRequest(channels, headers=self._login), max_message_size=1 << 26)
        for cell in cells:
            request = uuid.uuid4().hex
            header = {
                "msg_id": request,
                "msg_type": "execute_request",
                "session": request,
                "username": "",
                "version": "5.3",
            }
            content = {"code": "".join(cell["source"]), "silent": False, "store_history": True, "user_expressions": {}}
            message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
            await socket.write_message(json.dumps(message))
            cell["outputs"] = []
            while True:
                told = json.loads(await socket.read_message())
                if told["parent_header"].get("msg_id") != request:
                    continue
                if told["msg_type"] in {"stream", "display_data", "execute_result", "error"}:
                    cell["outputs"].append({"output_type": told["msg_type"], **told["content"]})
                    cell["outputs"][-1].pop("transient", None)
                if told["msg_type"] == "status" and told["content"]["execution_state"] == "idle":
                    break
        socket.close()


def wait(ready: Any) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            if ready():
                return
        except (httpx.HTTPError, KeyError):
            pass
        time.sleep(0.2)
    raise TimeoutError


@contextmanager
def hub(folder: Path, programs: Path, more: str) -> Iterator[Hub]:
    """Run a hub with `more` settings, by an environment's programs, until the test is done with it."""
    token, ports = secrets.token_hex(16), [_free() for _ in range(3)]
    address = f"http://127.0.0.1:{ports[0]}"
    (folder / "homes").mkdir(parents=True)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    settings = SETTINGS.format(
        address=address,
        hub_port=ports[1],
        proxy_port=ports[2],
        token=token,
        homes=str(folder / "homes"),
        proxy=str(fetch_proxy(folder, path)),
        more=more,
    )
    (folder / "jupyterhub_config.py").write_text(settings, encoding="utf-8")
    with (folder / "hub.log").open("w") as log:
        command = [programs / "jupyterhub", "-f", "jupyterhub_config.py"]
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, "PATH": path}, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        running = Hub(address, token)
        wait(lambda: httpx.get(f"{address}/hub/health").status_code == 200)
        yield running
        running.close()
    finally:
        process.terminate()
        process.wait(60)


def fetch_proxy(folder: Path, path: str) -> Path:
    """Fetch the proxy behind which a hub stands."""
    command = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", folder, "configurable-http-proxy@5"]
    subprocess.run(command, env={**os.environ, "PATH": path}, check=True)
    return folder / "node_modules" / ".bin" / "configurable-http-proxy"


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
