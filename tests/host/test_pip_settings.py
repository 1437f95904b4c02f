"""pip's configuration, read from its own words and told to uv in uv's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from uv import find_uv_bin

from assistant import start
from assistant.host.live import LiveHost
from assistant.host.pip_settings import (
    PipSettings,
    ask_pip,
    read_pip_settings,
    uv_arguments,
    uv_environment,
)
from assistant.install import Sources
from assistant.model.errors import BadInput
from assistant.privacy import Policy, redact

pytestmark = pytest.mark.process

# Printed by pip 25.3 for a company's pip.conf with values over several lines, and variables in the environment.
COMPANY = """\
:env:.default-timeout='60'
:env:.disable-pip-version-check='1'
:env:.trusted-host='mirror.example'
global.cert='/etc/ssl/company.pem'
global.client-cert='/home/user/me.pem'
global.extra-index-url='\\nhttps://joe:s3cret@one.example/simple\\nhttps://two.example/simple'
global.find-links='/srv/wheels https://pages.example/links.html'
global.index-url='https://mirror.example/simple'
global.proxy='proxy.example:3128'
global.timeout='15'
install.index-url="https://install.example/o'simple"
list.format='columns'
"""


class TestReading:
    """What `pip config list` says."""

    def test_reads_every_shape_of_value(self):
        """Values in either quotes, over lines or in a row, and the older names of options are read."""
        assert read_pip_settings(COMPANY) == PipSettings(
            index_url="https://install.example/o'simple",
            extra_index_urls=("https://joe:s3cret@one.example/simple", "https://two.example/simple"),
            find_links=("/srv/wheels", "https://pages.example/links.html"),
            proxy="proxy.example:3128",
            cert="/etc/ssl/company.pem",
            client_cert="/home/user/me.pem",
            trusted_hosts=("mirror.example",),
            timeout="60",
        )

    @pytest.mark.parametrize("text", ["", "\n", "WARNING: something\n", "no-such line", "global.index-url=''"])
    def test_says_nothing_where_nothing_is_set(self, text):
        """Empty output, other lines and empty values leave everything unset."""
        assert read_pip_settings(text) == PipSettings()

    @pytest.mark.parametrize(
        ("value", "meant"), [("1", True), ("true", True), ("Yes", True), ("0", False), ("no", False)]
    )
    def test_reads_switches_as_pip_does(self, value, meant):
        """`no-index` is on for pip's words for yes only."""
        assert read_pip_settings(f"global.no-index='{value}'").no_index is meant

    def test_environment_goes_before_files(self):
        """A variable replaces what the files say, whichever line comes first."""
        text = ":env:.index-url='https://env.example'\nglobal.index-url='https://file.example'\n"
        assert read_pip_settings(text).index_url == "https://env.example"

    def test_reads_the_real_pip(self, tmp_path):
        """What the pip of this Python prints for a file and variables is read back."""
        config = tmp_path / "pip.conf"
        config.write_text("[global]\nextra-index-url =\n    https://a.example/simple\n    https://b.example/simple\n")
        environment = {**os.environ, "PIP_CONFIG_FILE": str(config), "PIP_INDEX_URL": "https://c.example/simple"}
        environment["PIP_NO_INDEX"] = "0"
        said = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"], env=environment, capture_output=True, text=True, check=True
        )
        settings = read_pip_settings(said.stdout)
        assert settings.index_url == "https://c.example/simple"
        assert settings.extra_index_urls == ("https://a.example/simple", "https://b.example/simple")
        assert not settings.no_index

    def test_keeps_passwords_out_of_sight(self):
        """Neither the settings' repr nor a cleaned line shows a password."""
        assert "s3cret" not in repr(read_pip_settings(COMPANY))
        said = "GET https://joe:s3cret@one.example/simple/"
        assert redact(said, Policy.USABLE) == "GET https://one.example/simple/"


class TestSources:
    """Where pip would look."""

    def test_the_default_index_needs_no_name(self):
        """Only what is configured is named: pip and uv know their default index themselves."""
        assert PipSettings(extra_index_urls=("file:///a",)).index_urls == ("file:///a",)
        assert PipSettings(index_url="https://m").index_urls == ("https://m",)

    def test_no_index_leaves_find_links_only(self):
        """With `no-index` pip looks at find-links alone."""
        told = PipSettings(no_index=True, index_url="https://m", find_links=("/w",))
        assert (told.index_urls, told.find_links) == ((), ("/w",))


class TestUv:
    """The same, in uv's words."""

    def test_says_every_setting(self):
        """Each setting has its variable; a proxy without a scheme is an http one, as for pip."""
        assert uv_environment(read_pip_settings(COMPANY)) == {
            "UV_DEFAULT_INDEX": "https://install.example/o'simple",
            "UV_INDEX": "https://joe:s3cret@one.example/simple https://two.example/simple",
            "UV_FIND_LINKS": "/srv/wheels,https://pages.example/links.html",
            "UV_INSECURE_HOST": "mirror.example",
            "UV_HTTP_TIMEOUT": "60",
            "SSL_CERT_FILE": "/etc/ssl/company.pem",
            "SSL_CLIENT_CERT": "/home/user/me.pem",
            "HTTP_PROXY": "http://proxy.example:3128",
            "HTTPS_PROXY": "http://proxy.example:3128",
        }

    def test_says_nothing_for_a_bare_pip(self):
        """Without settings uv is left alone."""
        assert uv_environment(PipSettings()) == {}
        assert uv_arguments(PipSettings()) == ()
        assert uv_arguments(PipSettings(no_index=True)) == ("--no-index",)

    def test_leaves_what_the_user_told_uv(self):
        """A variable of uv's own, under its newer or older name, is not replaced; pip's certificate is kept."""
        already = {"UV_INDEX_URL": "https://uv.example", "UV_FIND_LINKS": "", "SSL_CERT_FILE": "/conda.pem"}
        said = uv_environment(read_pip_settings(COMPANY), already)
        assert not {"UV_DEFAULT_INDEX", "UV_FIND_LINKS"} & said.keys()
        assert said["SSL_CERT_FILE"] == "/etc/ssl/company.pem"

    @pytest.mark.parametrize("place", ["index", "extra index", "find-links"])
    def test_uv_chooses_the_version_that_pip_chooses(self, loopback_index, tmp_path, place):
        """The real uv and the real pip take the same, newest version, wherever it lies."""
        loopback_index.add("demo-thing", "1.0")
        (tmp_path / "more").mkdir()
        more = type(loopback_index)(tmp_path / "more")
        newest = (loopback_index if place == "index" else more).add("demo-thing", "2.0")
        environment = {"PIP_INDEX_URL": loopback_index.url, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": more.url}
        if place == "find-links":
            environment |= {"PIP_FIND_LINKS": str(newest.parent), "PIP_EXTRA_INDEX_URL": ""}
        try:
            by_pip, by_uv = _pip(environment, "install", "demo-thing"), _uv(environment, "demo-thing")
        finally:
            more.close()
        assert "demo-thing-2.0" in by_pip.replace("demo_thing", "demo-thing")
        assert "demo-thing==2.0" in by_uv


def _pip(environment: dict[str, str], *arguments: str) -> str:
    """Run the real pip with these variables and no files; nothing is installed."""
    dry = ("--dry-run", "--ignore-installed") if arguments[0] == "install" else ()
    whole = {**os.environ, **environment, "PIP_CONFIG_FILE": os.devnull}
    command = [sys.executable, "-m", "pip", *arguments, *dry]
    return subprocess.run(command, env=whole, capture_output=True, text=True, check=True).stdout


def _uv(environment: dict[str, str], requirement: str) -> str:
    """Run the real uv with what pip says of these variables; nothing is installed."""
    settings = read_pip_settings(_pip(environment, "config", "list"))
    command = [find_uv_bin(), "pip", "install", "--no-cache", "--dry-run", "--python", sys.executable, requirement]
    told = {**os.environ, **uv_environment(settings)}
    return subprocess.run([*command], env=told, capture_output=True, text=True, check=True).stderr


ODD = {
    "without a section": (b"index-url = https://joe:s3cret@corp.example/simple\n", "no section headers"),
    "binary": (b"\x00\x01\xff\xfe\x80", "characters"),
    "a section twice": (b"[global]\ntimeout = 5\n[global]\ntimeout = 6\n", "already exists"),
    "a script": (b"[global]\nindex-url = javascript:alert(1)\n", "javascript:alert(1), which is not the address"),
    "misspelt": (b"[global]\nindex-url = htp://corp.example/simple\n", "htp://corp.example/simple, which is not"),
}


@pytest.mark.parametrize("name", ODD)
def test_a_configuration_that_cannot_be_used_is_not_taken_for_none(name, tmp_path, monkeypatch):
    """By this Python's pip, for the planner and for the start alike: file and fault are named, PyPI is not asked."""
    text, fault = ODD[name]
    file = tmp_path / "pip.conf"
    file.write_bytes(text)
    for variable in [one for one in os.environ if one.startswith("PIP_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    for ask in (lambda: Sources(LiveHost()).settings, lambda: start._pip_settings([sys.executable, "-m", "pip"])):
        with pytest.raises(BadInput) as refused:
            ask()
        assert str(file) in str(refused.value.message)
        assert fault in str(refused.value.message)
        assert "s3cret" not in str(refused.value.message)


def test_an_index_that_only_a_variable_names_is_told_by_the_variable():
    """And a folder, which pip takes for an index, is one."""
    with pytest.raises(BadInput, match=r"PIP_INDEX_URL names htp://a\.example"):
        ask_pip(lambda *words: (True, ":env:.index-url='htp://a.example'" if words[1] == "list" else "env_var:"))
    for place in ("/srv/simple", r"D:\\simple", "file:///srv/simple"):
        assert ask_pip(lambda *_words, place=place: (True, f"global.index-url='{place}'")).index_url
    assert ask_pip(lambda *_words: (False, "No module named pip")) is None
