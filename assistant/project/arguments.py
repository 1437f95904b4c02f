"""The words of pip's and uv's command lines and requirement files: which are options, which take a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

# Options whose value is a word of its own: pip 25.3 `pip install --help`, uv 0.13 `uv pip install` and `uv add`, and
# https://pip.pypa.io/en/stable/reference/requirements-file-format/.
_VALUED = frozenset(
    {
        "--abi", "--all-releases", "--allow-insecure-host", "--bounds", "--branch", "--build-constraint",
        "--build-constraints", "--cache-dir", "--cert", "--client-cert", "--color", "--config-file",
        "--config-setting", "--config-settings", "--config-settings-package", "--constraint", "--constraints",
        "--default-index", "--directory", "--editable", "--exclude-newer", "--exclude-newer-package",
        "--excludes", "--exists-action", "--extra", "--extra-index-url", "--find-links", "--fork-strategy",
        "--global-option", "--group", "--hash", "--implementation", "--index", "--index-strategy",
        "--index-url", "--keyring-provider", "--link-mode", "--log", "--marker", "--no-binary",
        "--no-binary-package", "--no-build-isolation-package", "--no-build-package", "--no-editable-package",
        "--no-install-package", "--no-sources-package", "--only-binary", "--only-final", "--optional",
        "--output-format", "--override", "--overrides", "--package", "--platform", "--prefix", "--prerelease",
        "--prerelease-package", "--progress-bar", "--project", "--proxy", "--pypi-url", "--python",
        "--python-platform", "--python-version", "--refresh-package", "--reinstall-package", "--report",
        "--requirement", "--requirements", "--requirements-from-script", "--resolution", "--resume-retries",
        "--retries", "--rev", "--root", "--root-user-action", "--src", "--tag", "--target", "--timeout",
        "--torch-backend", "--trusted-host", "--upgrade-group", "--upgrade-package", "--upgrade-strategy",
        "--uploaded-prior-to", "--use-deprecated", "--use-feature", "-C", "-P", "-b", "-c", "-e", "-f", "-i",
        "-p", "-r", "-t",
    }
)  # fmt: skip
_LONG = {
    "-c": "--constraint",
    "-e": "--editable",
    "-f": "--find-links",
    "-i": "--index-url",
    "-r": "--requirement",
    "--constraints": "--constraint",
    "--default-index": "--index-url",
    "--index": "--extra-index-url",
    "--overrides": "--override",
    "--pypi-url": "--index-url",
    "--requirements": "--requirement",
}
_SHORT = 2  # characters of an option such as -r


def arguments(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of an option, by its long name, and its value ("" without one); a word that is none has option ""."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            continue
        if not word.startswith("-") or word == "-":
            yield "", word
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            yield _LONG.get(name, name), value if equals or name not in _VALUED else next(rest, "")
        else:
            name, value = word[:_SHORT], word[_SHORT:].removeprefix("=")
            valued = name in _VALUED
            yield _LONG.get(name, name) if valued else word, (value or next(rest, "")) if valued else ""
