"""Nothing secret and nobody's name is in any export, wherever it was planted."""

from pathlib import Path

import msgspec
import pytest
from export.setups import DETECTION, ENVIRONMENT, GPU, LOCK, PLAN, REPORT, SETUP

from assistant.export import Setup, export
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Evidence
from assistant.privacy import PrivateNames, secret_values

change = msgspec.structs.replace
TOKENS = (
    "ghp_0123456789abcdefABCDEF0123456789abcd",
    "github_pat_11ABCDEFG0123456789_abcdefghijklmnop",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "glpat-AbCdEfGhIjKlMnOpQrSt",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-123456789012-abcdefghijkl",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmnop",
)
VARIABLES = {
    "COMPANY_API_KEY": "Zk3-planted-api-key",
    "DB_PASSWORD": "correct horse battery",
    "HF_TOKEN": "plainlookingtokenvalue",
    "PIP_INDEX_URL": "https://jane:in-the-index-9@index.example/simple",
    "HTTPS_PROXY": "http://proxyuser:proxy-pass-7@proxy.example:3128",
}
SECRETS = (*secret_values(VARIABLES), "jane", "janes-laptop")


def planted(secret: str, folder: Path) -> str:
    """Export a setup that holds a secret in every text; give all that was written, and the names of the files."""
    plan = change(
        PLAN,
        index_url=f"https://user:{secret}@example.org/whl/cu126?token={secret}",
        requirements=("torch==2.6.0", f"own @ https://user:{secret}@example.org/own-1-py3-none-any.whl"),
        env={"PIP_EXTRA_INDEX_URL": f"https://{secret}:x@example.org/", "NOTE": f"token={secret}"},
        reasons=(f"Found at https://{secret}@example.org/.", f"Bearer {secret}"),
        warnings=(f"api_key: {secret}",),
    )
    machine = change(
        DETECTION.machine,
        env={"HF_TOKEN": secret},
        gpus=(GPU,),
        evidence=(Evidence(fact="gpus", source=f"tool --token {secret}", text=f"token: {secret}"),),
        nvidia_smi_output=f"password={secret} in /home/jane/x on janes-laptop",
    )
    finding = Finding(key="x", severity=Severity.INFO, text=f"secret={secret}", evidence=(f"/home/jane/{secret}/log",))
    checks = (change(REPORT.checks[1], detail=f"cannot clone with {secret} from C:\\Users\\jane\\x"),)
    environment = change(ENVIRONMENT, path=f"/home/jane/{secret}/env", python=f"/home/jane/{secret}/env/bin/python")
    lock = LOCK.replace("packages = []", "") + (
        f'[[packages]]\nname = "own"\nversion = "1"\n'
        f'wheels = [{{ url = "https://user:{secret}@example.org/own-1.whl?sig={secret}", hashes = {{}} }}]\n'
    )
    setup = Setup(
        machine=machine,
        findings=(finding,),
        plan=plan,
        environment=environment,
        report=change(REPORT, checks=checks, facts={"torch": "2.6.0", f"note {secret}": f"/home/jane/{secret}"}),
        lock=f"# uv pip compile --index-url https://user:{secret}@example.org\n{lock}",
        hashes={"own": "0" * 64},
    )
    export(setup, folder, known=PrivateNames(users=("jane",), hosts=("janes-laptop",), secrets=SECRETS))
    return "\n".join(f"{path}\n{path.read_text('utf-8')}" for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("secret", [*TOKENS, *secret_values(VARIABLES)])
def test_no_secret_and_no_name_is_in_any_format(secret, tmp_path):
    """Tokens by their form, values of variables and passwords of addresses wherever they stand, names, hosts."""
    written = planted(secret, tmp_path)
    assert secret not in written
    assert "janes-laptop" not in written
    assert "jane" not in written
    assert "example.org" in written


def test_secrets_are_known_by_their_names_and_in_addresses():
    """A variable holds a secret if its name says so; a path or a switch does not."""
    assert set(secret_values(VARIABLES)) == {
        "Zk3-planted-api-key",
        "correct horse battery",
        "plainlookingtokenvalue",
        "in-the-index-9",
        "proxy-pass-7",
    }
    assert secret_values({"SSH_KEY_PATH": "/home/x", "LANG": "C", "KEYBOARD": "de"}) == ()


def test_a_word_that_is_named_like_a_secret_leaves_the_packages_alone(tmp_path):
    """A token that is called `torch` or `2.6.0` would take every name and version out."""
    export(SETUP, tmp_path, ["requirements.txt"], known=PrivateNames(secrets=("torch", "2.6.0", "cuda")))
    assert "torch==2.6.0+cu126" in (tmp_path / "requirements.txt").read_text("utf-8")


def test_packages_that_look_like_tokens_keep_their_names(tmp_path):
    """`hf_transfer` and `pyserial-asyncio` are packages."""
    packages = {**ENVIRONMENT.packages, "hf-transfer": "0.1.9", "pyserial-asyncio": "0.6"}
    file = "hf_transfer-0.1.9-cp38-abi3-manylinux_2_17_x86_64.whl"
    lock = LOCK.replace("packages = []", f'packages = []\nfile = "{file}"')
    export(change(SETUP, environment=change(ENVIRONMENT, packages=packages), lock=lock), tmp_path)
    assert "pyserial-asyncio==0.6" in (tmp_path / "requirements.txt").read_text("utf-8")
    assert file in (tmp_path / "pylock.toml").read_text("utf-8")
