"""Two indexes of one small package; the mirror's file is not the one that its page promises."""

import hashlib
import io
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping

from assistant.labs.scene import Outcome, Scene

WHEEL = "lab_demo-1.0-py3-none-any.whl"


def breaks(scene: Scene) -> None:
    """Make both indexes, and an environment with a pip of its own."""
    genuine, altered = _wheel(42), _wheel(666)
    for place, content in (("upstream", genuine), ("mirror", altered)):
        promised = hashlib.sha256(genuine).hexdigest()
        scene.write(f"{place}/simple/lab-demo/{WHEEL}", content)
        scene.write(f"{place}/simple/lab-demo/index.html", f'<a href="{WHEEL}#sha256={promised}">{WHEEL}</a>')
    scene.venv(seed=True)


def symptom(scene: Scene) -> Outcome:
    """Install from the mirror."""
    index = (scene.folder / "mirror" / "simple").as_uri()
    pip = ("-m", "pip", "--disable-pip-version-check", "--isolated", "install", "--no-cache-dir", "--dry-run")
    return scene.call(scene.python(), *pip, "--index-url", index, "lab-demo")


def fault(scene: Scene) -> str:
    """Want the genuine package."""
    value = scene.call(scene.python(), "-c", "import lab_demo; print(lab_demo.VALUE)")
    if value.status:
        return scene.wrong("not-installed")
    return scene.wrong("other-file") if value.last != "42" or scene.altered("lab-demo") else ""


def names(scene: Scene) -> Mapping[str, str]:
    """Let a learner name the second index by its name alone."""
    return {"{upstream}": (scene.folder / "upstream" / "simple").as_uri()}


def _wheel(value: int) -> bytes:
    about = "lab_demo-1.0.dist-info"
    files = {
        "lab_demo.py": f"VALUE = {value}\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: lab-demo\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in files.items()]
    files[f"{about}/RECORD"] = "".join([*rows, f"{about}/RECORD,,\n"])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return packed.getvalue()


def _digest(text: str) -> str:
    """Return a hash as RECORD has it."""
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
