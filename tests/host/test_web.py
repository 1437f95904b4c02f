"""The HTTP client: proxies, certificates, passwords and what goes wrong, against real servers on loopback."""

from __future__ import annotations

import base64
import datetime
import gzip
import hashlib
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from email.message import Message
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from assistant.host import web
from assistant.host.download import Fetch, Patience, download
from assistant.host.pip_settings import NO_SETTINGS, PipSettings
from assistant.host.process import CancelToken
from assistant.host.web import Budget, Unreachable, Web

pytestmark = pytest.mark.process

SECRET = "s3cret"  # noqa: S105 - of nobody


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take this machine's proxies, certificates and passwords out of the tests."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in (*web.CERTIFICATES, "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def pour(source: socket.socket, sink: socket.socket) -> None:
    """Hand on what comes from one side until it ends."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)


class Server:
    """A server whose paths say how it answers; `asked` holds each path with its headers."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.asked: list[tuple[str, Message]] = []
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if context:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Let waiting answers go and stop."""
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append((self.path, self.headers))
                status, headers, body = server.pages.get(self.path, (404, {}, b""))
                if "wait" in self.path:
                    server.over.wait(20)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def do_CONNECT(self) -> None:
                server.asked.append((self.path, self.headers))
                host, _colon, port = self.path.partition(":")
                with socket.create_connection((host, int(port))) as further:
                    self.send_response(200)
                    self.end_headers()
                    threading.Thread(target=pour, args=(self.connection, further), daemon=True).start()
                    pour(further, self.connection)

            def log_message(self, *arguments: object) -> None:
                """Keep the test's output clean."""

        return Handler


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Give a function that starts a server with some pages."""
    started: list[Server] = []

    def start(context: ssl.SSLContext | None = None, **pages: tuple[int, dict[str, str], bytes]) -> Server:
        started.append(Server(context))
        started[-1].pages = {f"/{name}": page for name, page in pages.items()}
        return started[-1]

    yield start
    for server in started:
        server.close()


def read(url: str, settings: PipSettings = NO_SETTINGS, *indexes: str, timeout: float = 5.0) -> str:
    """Read a page as text."""
    return Web(settings, timeout=timeout, index_urls=indexes).read(url, 1 << 20).content.decode()


def why(url: str, settings: PipSettings = NO_SETTINGS, **how: float) -> str:
    """Say why a page cannot be read."""
    with pytest.raises(Unreachable) as caught:
        read(url, settings, **how)
    assert SECRET not in f"{caught.value} {caught.value.reason}"
    return str(caught.value.reason)


def login(given: Message, header: str = "Authorization") -> str:
    """Read the name and password that a request brought, "" for none."""
    return base64.b64decode(given.get(header, "").removeprefix("Basic ")).decode()


PAGE = (200, {"Content-Type": "text/html; charset=utf-8"}, b"welcome")


@pytest.mark.parametrize("by", ["setting", "HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_is_asked_with_its_own_password(serve, monkeypatch, by):
    """The index's password goes through it, and its own goes to no other server, also where no proxy is for that."""
    proxy, index = serve(), serve(page=PAGE)
    address = proxy.url.replace("://", f"://me:{SECRET}@").removeprefix("http://" if by == "setting" else "")
    if by != "setting":
        monkeypatch.setenv(by, address)
    proxy.pages["http://far.example/page"] = (302, {"Location": f"{index.url}/page"}, b"")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    settings = PipSettings(proxy=address if by == "setting" else "")
    assert read("http://far.example/page", settings, "http://you:secret2@far.example/simple") == "welcome"
    ((_path, at_proxy),), ((_path, at_index),) = proxy.asked, index.asked
    assert (login(at_proxy), login(at_proxy, "Proxy-Authorization")) == ("you:secret2", f"me:{SECRET}")
    assert (login(at_index), login(at_index, "Proxy-Authorization")) == ("", "")


def test_a_socks_proxy_is_named_as_the_reason(monkeypatch):
    """It would take what it is sent for something else, and not answer."""
    monkeypatch.setenv("ALL_PROXY", f"socks5://me:{SECRET}@127.0.0.1:9")
    assert why("https://far.example/simple/") == why("http://far.example/") == "SOCKS proxies are not supported"


@cache
def certificate(name: str) -> tuple[bytes, bytes]:
    """Make a certificate for this machine that nobody has signed, and its key."""
    key, subject = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    made = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
    return made.sign(key, hashes.SHA256()).public_bytes(encoding), private


@pytest.fixture
def company(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    """Give the file of a company's own certificate, and what its server shows."""
    public, private = certificate("company")
    path, pair = tmp_path / "company.pem", tmp_path / "pair.pem"
    path.write_bytes(public)
    pair.write_bytes(public + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    return path, context


@pytest.mark.parametrize("by", ["setting", *web.CERTIFICATES[:-1], "trusted host", "trusted host and port"])
def test_a_private_certificate_is_taken_from_where_pip_takes_it(serve, company, monkeypatch, by):
    """By pip's setting, by the variables that pip heeds, or not looked at for a host that is trusted."""
    path, context = company
    index = serve(context, page=PAGE)
    host = index.url.removeprefix("https://")
    names = {"trusted host": host.partition(":")[0], "trusted host and port": host}
    if by.isupper():
        monkeypatch.setenv(by, str(path))
    settings = PipSettings(cert=str(path) if by == "setting" else "", trusted_hosts=(names[by],) if by in names else ())
    assert read(f"{index.url}/page", settings) == "welcome"


def test_an_unknown_certificate_is_refused(serve, company, tmp_path):
    """In a few words, with the system's certificates and with others; a file that is not there is named, too."""
    index = serve(company[1], page=PAGE)
    (tmp_path / "other.pem").write_bytes(certificate("other")[0])
    for cert in ("", str(tmp_path / "other.pem")):
        reason = why(f"{index.url}/page", PipSettings(cert=cert))
        assert "certificate verify failed" in reason
        assert "_ssl.c" not in reason
    with pytest.raises(Unreachable, match="No such file") as caught:
        read(f"{index.url}/page", PipSettings(cert=str(tmp_path / "gone.pem")))
    assert caught.value.status == 0
    assert index.asked == []


def test_encryption_goes_through_a_proxy_unseen(serve, company):
    """The proxy sees the host, and of the passwords its own alone."""
    path, context = company
    index, proxy = serve(context, page=PAGE), serve()
    settings = PipSettings(cert=str(path), proxy=proxy.url.replace("://", f"://me:{SECRET}@"))
    assert read(f"{index.url}/page", settings, index.url.replace("://", "://you:secret2@")) == "welcome"
    ((seen, at_proxy),), ((_path, at_index),) = proxy.asked, index.asked
    assert seen == index.url.removeprefix("https://")
    assert (login(at_proxy), login(at_proxy, "Proxy-Authorization")) == ("", f"me:{SECRET}")
    assert (login(at_index), login(at_index, "Proxy-Authorization")) == ("you:secret2", "")


def test_a_password_goes_to_its_own_server_alone(serve):
    """Not to another host or port, not after a redirection, and not by one back to where it is known from."""
    other = serve(page=PAGE)
    index = serve(
        page=PAGE, away=(302, {"Location": f"{other.url}/page"}, b""), round=(301, {"Location": "/page"}, b"")
    )
    own = index.url.replace("://", f"://me%40home:{SECRET}@")
    for path in ("page", "away", "round"):
        assert (
            read(f"{own}/{path}", NO_SETTINGS, f"{own}/simple", "http://joe:doe@far.example/", "http://[") == "welcome"
        )
    assert read(f"{other.url}/page", NO_SETTINGS, own) == "welcome"
    assert [login(headers) for _path, headers in index.asked] == [f"me@home:{SECRET}"] * 4
    assert [login(headers) for _path, headers in other.asked] == ["", ""]


@pytest.mark.parametrize("place", [".netrc", "_netrc", "NETRC"])
def test_netrc_lends_passwords(serve, tmp_path, monkeypatch, place):
    """To the hosts that it names; a file that cannot be read lends none."""
    file = tmp_path / place
    if place == "NETRC":
        monkeypatch.setenv("NETRC", str(file))
    file.write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    file.chmod(0o600)
    index = serve(page=PAGE)
    assert read(f"{index.url}/page") == read(f"{index.url.replace('127.0.0.1', 'localhost')}/page") == "welcome"
    file.write_text("machine")
    assert read(f"{index.url}/page") == "welcome"
    assert [login(headers) for _path, headers in index.asked] == [f"me:{SECRET}", "", ""]


@pytest.mark.parametrize(
    ("path", "reason", "status"),
    [
        ("gone", "HTTP 404", 404),
        ("broken", "HTTP 503", 503),
        ("loop", "HTTP 302", 302),
        ("to_disk", "HTTP 302", 302),
        ("wait", "it did not answer within 0.5 s", 0),
        ("short", "the connection broke off", 0),
        ("cut", "the connection broke off", 0),
        ("large", "it is too large", 200),
        ("bomb", "it is too large", 0),
    ],
)
def test_what_goes_wrong_has_a_short_reason(serve, monkeypatch, path, reason, status):
    """With the status of an answer; nothing that came until then counts."""
    monkeypatch.setattr(web, "INFLATED", 1 << 20)
    packed = {"Content-Encoding": "gzip"}
    index = serve(
        broken=(503, {}, b""),
        loop=(302, {"Location": "/loop"}, b""),
        to_disk=(302, {"Location": "file:///etc/passwd"}, b""),
        short=(200, {"Content-Length": "99"}, b"welcome"),
        cut=(200, packed, gzip.compress(b"welcome")[:-9]),
        large=(200, {}, b"x" * (1 << 20) + b"x"),
        bomb=(200, packed, gzip.compress(b"x" * (2 << 20))),
    )
    with pytest.raises(Unreachable) as caught:
        read(f"{index.url}/{path}", timeout=0.5)
    assert (str(caught.value.reason), caught.value.status) == (reason, status)


def test_no_password_stands_in_a_reason(tmp_path):
    """Whatever is wrong with an address."""
    assert why(f"http://me:{SECRET}@127.0.0.1:9/simple/") == "Connection refused"
    for address in (f"http://me:{SECRET}@host:port/", f"https://me:{SECRET}@[::1/", f"ftp://me:{SECRET}@far.example/"):
        assert why(address)
    assert "No such file" in why((tmp_path / "gone").as_uri())


def test_a_page_is_packed_and_counted_as_it_is_sent(serve):
    """A budget of several pages is spent on what they take; one that would take more is not read."""
    page = b"welcome" * 1000
    packed = gzip.compress(page)
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/html; charset=utf-8"}
    index, budget = serve(known=(200, {**headers, "Content-Length": str(len(packed))}, packed)), Budget(150)
    index.pages["/unknown"] = (200, headers, packed)
    client = Web(timeout=5.0)
    for path in ("known", "unknown"):
        assert client.read(f"{index.url}/{path}", 1000, budget) == ("text/html", page)
    assert budget.left == 150 - 2 * len(packed)
    for path in ("known", "unknown"):
        with pytest.raises(Unreachable, match="too large"):
            client.read(f"{index.url}/{path}", 1000, budget)
    assert index.asked[0][1]["Accept-Encoding"] == "gzip"


def test_a_file_comes_in_pieces_from_where_it_broke_off(loopback_index):
    """As a download goes on that broke off, on several threads at once; the server's own answer says from where."""
    wheel = loopback_index.add("torch", "2.9.1")
    whole, client, parts = wheel.read_bytes(), Web(timeout=5.0), dict[int, bytes]()

    def fetch(begin: int) -> None:
        with client.open(f"{loopback_index.url}/torch/{wheel.name}", {"Range": f"bytes={begin}-"}) as answer:
            assert (answer.status, answer.length) == (206, len(whole) - begin)
            assert answer.headers["Content-Range"].startswith(f"bytes {begin}-")
            parts[begin] = b"".join(answer.pieces(100))

    threads = [threading.Thread(target=fetch, args=(begin,)) for begin in range(1, 500, 70)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert parts == {begin: whole[begin:] for begin in range(1, 500, 70)}


@pytest.mark.parametrize("known", [{}, {"size": 5, "sha256": hashlib.sha256(b"whole").hexdigest()}])
def test_a_download_that_begins_anew_has_resumed_nothing(serve, tmp_path, known):
    """A server sends all of it again, or what lay here was another file: else the speed shown would be below zero."""
    server, goal = serve(wheel=(200, {}, b"whole")), tmp_path / "wheel"
    Path(f"{goal}.part").write_bytes(b"other")
    fetch = Fetch(f"{server.url}/wheel", str(goal), **known)
    *_before, last = download([fetch], CancelToken(), patience=Patience(pause=0.0))
    assert (last.have, last.resumed) == ({str(goal): 5}, 0)
