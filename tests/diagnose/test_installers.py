"""Installers that fail for real at an index; what the first remedy says is done, and the package is there.

Failures of environments, tools and systems are those of test_real_failures.py.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import pytest
from stage import PYPI, TORCH, Stage

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="these failures are made on Linux"),
]
ORG = "org"
CP311 = "cp311-cp311-manylinux_2_28_x86_64"
ANY = "py3-none-any"
Wheels = tuple[tuple[str, str, str], ...]


class Failure(NamedTuple):
    """A line that fails with a cause: what stands on two indexes, and for which addresses those stand.

    `trouble` is what becomes of torch's page on the first index; `{first}` and `{second}` are the indexes' own places.
    """

    line: str
    key: str
    first: Wheels = ()
    second: Wheels = ()
    stands_for: tuple[tuple[str, str], ...] = (("{first}/simple", f"{TORCH}/cu128"), ("{second}/simple", PYPI))
    trouble: str = ""
    proof: str = 'python -c "import torch"'


TAGGED = (("torch", "2.9.0+cu128", CP311),)
PLAIN = (("torch", "2.9.0", ANY),)
FAILURES = {
    "a tag with a slip": Failure(
        f"uv pip install torch --index-url {TORCH}/cuda128",
        "index-wrong",
        TAGGED,
        stands_for=(("{first}/whl/cuda128", f"{TORCH}/cuda128"), ("{first}/simple", f"{TORCH}/cu128")),
    ),
    "a page for people": Failure(
        f"python -m pip install torch --index-url https://pypi.{ORG}/project",
        "index-wrong",
        second=PLAIN,
        stands_for=(("{first}/simple", f"https://pypi.{ORG}/project"), ("{second}/simple", PYPI)),
        trouble="page",
    ),
    "a host with a slip": Failure(
        "python -m pip install torch --index-url https://download.pytroch.org/whl/cu128",
        "index-wrong",
        TAGGED,
        stands_for=(
            ("http://127.0.0.1:9/whl/cu128", "https://download.pytroch.org/whl/cu128"),
            ("{first}/simple", f"{TORCH}/cu128"),
        ),
    ),
    "a mirror without the package": Failure(
        "python -m pip install torch --index-url https://mirror.example/simple",
        "mirror-without-files",
        second=PLAIN,
        stands_for=(("{first}/simple", "https://mirror.example/simple"), ("{second}/simple", PYPI)),
    ),
    "a mirror without the file that it lists": Failure(
        "python -m pip install torch==2.9.0 --index-url https://mirror.example/simple",
        "mirror-without-files",
        PLAIN,
        PLAIN,
        stands_for=(
            ("{second}/packages", "https://mirror.example/packages"),
            ("{first}/simple", "https://mirror.example/simple"),
            ("{second}/simple", PYPI),
        ),
        trouble="upstream",
    ),
    "a release of another index": Failure(
        f"python -m pip install torch==2.5.1 --index-url {TORCH}/cu128",
        "release-not-on-index",
        TAGGED,
        (("torch", "2.5.1+cu124", CP311),),
        stands_for=(("{first}/simple", f"{TORCH}/cu128"), ("{second}/simple", f"{TORCH}/cu124")),
    ),
    "the index that uv stops at": Failure(
        f"uv pip install numpy==2.0 --default-index {PYPI} --index {TORCH}/cu128",
        "index-not-applied",
        (("numpy", "1.0", ANY),),
        (("numpy", "2.0", ANY),),
        proof="python -c \"import numpy; assert numpy.__version__ == '2.0'\"",
    ),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_the_first_remedy_installs_it(stage: Stage, failure: Failure) -> None:
    """The index that was meant, or another that has it, is asked."""
    for index, wheels in ((stage.torch, failure.first), (stage.pypi, failure.second)):
        for name, version, tag in wheels:
            index.add(name, version, tag)
    first, second = (index.url.removesuffix("/simple") for index in (stage.torch, stage.pypi))
    stage.stands_for = {own.format(first=first, second=second): known for own, known in failure.stands_for}
    if failure.trouble == "upstream":
        stage.torch.upstream = f"{second}/packages"
    elif failure.trouble:
        stage.torch.trouble["torch"] = failure.trouble
    found = stage.fails(failure.line)
    assert found.key == failure.key
    stage.mended(found.remedies[0], failure.proof)
