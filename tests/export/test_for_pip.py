"""What pip reads, every pip can read: also pip 24 of Python 3.11, on a system in any language."""

from export.setups import ENVIRONMENT, SETUP

from assistant.export.packages import pinned_files, requirements_text
from assistant.i18n import use_language
from assistant.install.guards import constraints_file_text


def texts(language):
    """Write each file that pip reads, in a language."""
    use_language(language)
    try:
        return {
            "requirements": requirements_text(SETUP),
            "constraints": pinned_files(SETUP)["constraints.txt"],
            "environment": constraints_file_text(ENVIRONMENT.packages),
        }
    finally:
        use_language("en")


def test_only_what_needs_it_says_its_coding():
    """Chinese notes are there, behind the line that names UTF-8; ASCII stays as it was."""
    assert all(text.isascii() for text in texts("en").values())
    for text in texts("zh_CN").values():
        assert text.startswith("# -*- coding: utf-8 -*-\n")
        assert not text.isascii()
