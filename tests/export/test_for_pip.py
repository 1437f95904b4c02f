"""What pip reads, every pip can read: also pip 24 of Python 3.11, on a system in any language."""

import json
import os
import subprocess
import sys

import pytest
from export.setups import ENVIRONMENT, SETUP

from assistant.export.packages import constraints_text, requirements_text
from assistant.i18n import use_language
from assistant.install.constraints import constraints

pytestmark = pytest.mark.full

# pip 24.0's own reader. It asks Python for the encoding of the locale, and a system with a Chinese one is missing here.
READ = """
import json, locale, sys
locale.getpreferredencoding = lambda *_: sys.argv[1]
from pip import __version__
from pip._internal.network.session import PipSession
from pip._internal.req.req_file import parse_requirements
assert __version__ == "24.0"
print(json.dumps([[one.requirement for one in parse_requirements(name, PipSession())] for name in sys.argv[2:]]))
"""


def texts(language):
    """Write each file that pip reads, in a language."""
    use_language(language)
    try:
        return {
            "requirements": requirements_text(SETUP),
            "constraints": constraints_text(SETUP),
            "environment": constraints(ENVIRONMENT.packages),
        }
    finally:
        use_language("en")


@pytest.fixture(scope="module")
def old_pip(large_folder):
    """Give the folder of a pip that takes the locale's encoding for granted."""
    folder = large_folder("pip24")
    subprocess.run([sys.executable, "-m", "uv", "pip", "install", "-q", "--target", folder, "pip==24.0"], check=True)
    return folder


@pytest.mark.process
@pytest.mark.parametrize("page", ["cp936", "cp950", "cp932", "cp1252", "ascii"])
def test_pip_24_reads_it_on_a_system_in_any_language(old_pip, tmp_path, page):
    """The requirements are those that are read where UTF-8 is the rule, with notes in Chinese, too."""
    english = texts("en")
    for language in ("en", "zh_CN"):
        files = [tmp_path / f"{name}-{language}.txt" for name in english]
        for file, text in zip(files, texts(language).values(), strict=True):
            file.write_text(text, "utf-8")
        done = subprocess.run(
            [sys.executable, "-c", READ, page, *files],
            env={**os.environ, "PYTHONPATH": str(old_pip), "PIP_CONFIG_FILE": os.devnull},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        named = [[line for line in text.splitlines() if line[0] not in "#-"] for text in english.values()]
        assert json.loads(done.stdout) == named


def test_only_what_needs_it_says_its_coding():
    """Chinese notes are there, behind the line that names UTF-8; ASCII stays as it was."""
    assert all(text.isascii() for text in texts("en").values())
    for text in texts("zh_CN").values():
        assert text.startswith("# -*- coding: utf-8 -*-\n")
        assert not text.isascii()
