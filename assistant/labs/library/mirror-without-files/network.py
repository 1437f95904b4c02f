"""Run pip in a small network; usage: network.py pip ARGUMENTS….

The network has two hosts, pypi.example and mirror.example: what they serve are the folders below `network`. It is there
while pip runs, through a proxy on this computer, and nothing outside it can be reached.
"""

import os
import subprocess
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

HOSTS = Path.cwd() / "network"


class Proxy(SimpleHTTPRequestHandler):
    """Answers for each host with the files of its folder."""

    def translate_path(self, path):
        address = urlsplit(path)
        host = HOSTS / (address.hostname or "nowhere")
        found = (host / address.path.lstrip("/")).resolve()
        return str(found if found.is_relative_to(host.resolve()) else HOSTS / "nowhere")

    def send_head(self):
        return super().send_head() if Path(self.translate_path(self.path)).exists() else self.send_error(404)

    def log_message(self, *_arguments):
        """Say nothing."""


if sys.argv[1:2] != ["pip"]:
    sys.exit("usage: network.py pip ARGUMENTS...")
proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
Thread(target=proxy.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{proxy.server_port}"
kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
kept = {name: value for name, value in kept.items() if not name.startswith(("PIP_", "PYTHONPATH"))}
settings = {
    "http_proxy": address,
    "https_proxy": address,
    "PIP_CONFIG_FILE": str(Path.cwd() / "pip.conf"),
    "PIP_TRUSTED_HOST": "mirror.example pypi.example",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_RETRIES": "0",
}
command = [sys.executable, "-m", "pip", *sys.argv[2:]]
sys.exit(subprocess.run(command, env=kept | settings, check=False).returncode)
