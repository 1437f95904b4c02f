"""The assistant that runs, as a wheel: what it is made of, and nothing that a teacher keeps from a class."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import assistant
from assistant.host.extras import NAME

_DATE = (1980, 1, 1, 0, 0, 0)  # the same assistant gives the same wheel; earlier dates no zip can hold
_ANSWERS = "labs/library/*/ways.toml"  # as pyproject.toml leaves them out
_WHEEL = f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_KEPT = ("METADATA", "entry_points.txt")


def own_wheel() -> tuple[str, bytes]:
    """Return the file name and the content of a wheel of this assistant, however it was installed.

    It is packed from the files that run, so that neither a network nor a build is needed.
    """
    package = Path(assistant.__file__).parent
    module = f"{NAME.replace('-', '_')}"
    stem = f"{module}-{assistant.__version__}"
    sources = [path for path in sorted(package.rglob("*")) if _belongs(path)]
    files = {f"{package.name}/{path.relative_to(package).as_posix()}": path.read_bytes() for path in sources}
    files[f"{module}.py"] = (package.parent / f"{module}.py").read_bytes()
    info, own = f"{stem}.dist-info", distribution(NAME)
    files |= {f"{info}/{name}": (own.read_text(name) or "").encode() for name in _KEPT}
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    rows = [f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in files.items()]
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, _DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            wheel.writestr(entry, content)
    return f"{stem}-py3-none-any.whl", packed.getvalue()


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and not path.match(_ANSWERS)


def _digest(content: bytes) -> str:
    """Return a SHA-256 as a wheel's RECORD writes it (PEP 376, PEP 427)."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
