"""What surrounds a message: who asks, which torch and CUDA are there, whether the run went on, what pip has to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from packaging.utils import canonicalize_name

from assistant.catalog.companions import Companion, VersionRange, carried_by_torch_index, version_ranges
from assistant.diagnose.log import ERROR, Log, died_at
from assistant.diagnose.rules import NO_NAMES, Cause, plain_table
from assistant.model.machine import Machine

NEAR, FAR = 600, 3000  # characters around a message in which those who ask are looked for
# nvcc: release 12.4, V12.4.131     CUDA 12.4 in /usr/local/cuda     /usr/local/cuda-13.1/targets/…
_CUDA = re.compile(
    r"(?:nvidia-\w{3,20}-cu(?=1\d\b)|release |cuda[-_ /\\v]{1,2}(?:version:? )?|cuda toolkit )(1[0-3])\.\d"
)
_CUDA_BUILD = re.compile(r"cu(\d{1,3})(\d)$")
_FRAME = re.compile(
    r"(?:site|dist)-packages[\\/](\w{1,60}?)(?:\.cp\w{2,5}-[\w-]{1,60})?(?:\.(?:py|so|pyd|abi3)\b|[\\/])"
)
# …/vllm/_C.abi3.so     …/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so
_OF_FOLDER = re.compile(
    r"([a-z]\w{1,60})[\\/](?:lib[\\/])?_\w{1,40}[\w.-]{0,60}\.(?:so|pyd)"
    r"|(?<![\w.])([a-z]\w{1,60})\.(?:cpython|abi3|cp3)[\w.-]{0,60}\.(?:so|pyd)"
)
# What a program says that does without something, in the lines around the message that it is missing.
_DOES_WITHOUT = re.compile(
    r"instead\b|fall(?:ing|s)? back|fallback(?! failed)|proceeding|processing without|without it|continu\w{1,4}"
    r"|(?:not|n't) be enabled|disabl\w{1,4}"
    r"|\boptional(?![,\[])|skipping|ignor\w{1,4}|default(?:s|ing) to|will not work|不影响|可忽略|自动切换|会快|多少提升"
)
# Advice of what could be done instead: You can suppress this exception and fall back to eager by setting: …
_ADVISES = re.compile(r"\byou (?:can|could|may)\b[^\n.;]*")
# What shows that the run went on to its end, or well on its way; below a warning, that it has more to tell:
# warnings.warn(
# 2026-02-17 09:14:02 - whisperx.asr - INFO - No language specified …     (and more of such lines)
_SUCCESS = re.compile(
    r"warnings\.warn\([^\n]*\n(?:[^\n]{0,80}\binfo\b[^\n]*\n){2}|"
    r"\b[1-9]\d{0,2}%\||\d ?it/s\b|\ds/it\b|'loss'|\bloss[ :=]{1,3}\d|\bsaved\b|executed in \d|with status 'done'"
    r"|successfully (?!uninstalled)|startup complete"
    r"|starting server|running on (?:local url|http)|loaded (?:checkpoint|model)|model loaded"
    r"|all tests passed|works? (?:fine|anyway|well|perfectly|regardless)|runs fine"
    r"|(?:出图|运行|训练|生成|跑|用)[^\n]{0,6}(?:正常|没问题|没有问题)|一切正常|不报错"
)
# warnings.warn(
# 2026-02-17 09:14:02 - whisperx.asr - INFO - No language specified …     >>Performing transcription...
_WORKED_ON = re.compile(r"warnings\.warn\([^\n]*\n(?:(?:[^\n]{0,80}\binfo\b|>>|\[info\])[^\n]*\n){2}")


class Requester(NamedTuple):
    """Who asks for a library: its distribution, and the kind that libraries.toml gives to those who ask alike."""

    package: str
    kind: str


def requester_in(text: str) -> Requester | None:
    """Return the last of the requesters named in a text, as the nearest to what follows; None if none is named."""
    rows = plain_table("libraries.toml")["requester"]
    mentions = [(match.end(), row) for row in rows for match in re.finditer(row["words"], text)]
    row = max(mentions, key=lambda mention: mention[0])[1] if mentions else None
    return Requester(row["package"], row["kind"]) if row else None


def package_of(module: str) -> str:
    """Return the distribution of a module, by its first part: "flash_attn.bert" is of flash-attn.

    A module that the table lacks is taken for a distribution of the same name.
    """
    first = module.partition(".")[0]
    return str(plain_table("libraries.toml")["modules"].get(first, first.replace("_", "-")))


class LogContext:
    """A log and its machine, with what is around a position of the text; positions are in `Log.text`."""

    def __init__(self, log: Log, machine: Machine) -> None:
        self.log, self.machine, self.text = log, machine, log.text

    @property
    def torch(self) -> str:
        """The version of torch with its local part, such as "2.9.0+cpu"; "" if unknown."""
        version = self.machine.packages.get("torch", "")
        return version if re.match(r"\d{1,2}\.\d{1,3}", version) else ""

    @property
    def build(self) -> str:
        """The build of torch as its local version tells it, such as "cu130" or "cpu"; "" if unknown."""
        return self.torch.partition("+")[2].partition(".git")[0]

    @property
    def torch_cuda(self) -> str:
        """The CUDA that torch was built with, such as "13.0"; "" if none, and if unknown."""
        match = _CUDA_BUILD.match(self.build)
        return f"{match[1]}.{match[2]}" if match else ""

    @cached_property
    def cuda(self) -> frozenset[int]:
        """The CUDA majors in use: of the toolkit, else those in the text, else torch's; empty if unknown."""
        toolkit = self.machine.packages.get("cuda", "")
        majors = [toolkit[:2]] if toolkit[:2].isdigit() else _CUDA.findall(self.text) or [self.torch_cuda[:2]]
        return frozenset(int(major) for major in majors if major.isdigit())

    def cause(self, key: str, at: int, names: Mapping[str, str] = NO_NAMES, basis: str = "library") -> Cause:
        """Return a cause that the line of a position shows; names without a value are left out."""
        return Cause(key, basis, (self.log.index_at(at),), {name: value for name, value in names.items() if value})

    def as_spelt(self, at: int, name: str) -> str:
        """Return a name as its line in the log spells it, in capitals, too; unchanged if the line does not hold it."""
        line = self.log.lines[self.log.index_at(at)][1]
        start = line.lower().find(name)
        return line[start : start + len(name)] if start >= 0 else name

    def requester_at(self, at: int, file: str = "") -> Requester | None:
        """Return who asks for what is missing at a position; None if that is unknown.

        That is who is named by the file, its line, those before and those after, in this order.
        """
        line, end = self.line_span(at)
        before, after = self.text[max(0, line - FAR) : line], self.text[end : end + NEAR]
        return next(filter(None, map(requester_in, (file, self.text[line:end], before, after))), None)

    def line_span(self, at: int) -> tuple[int, int]:
        """Return the positions at which the line of a position begins and ends."""
        end = self.text.find("\n", at)
        return self.text.rfind("\n", 0, at) + 1, len(self.text) if end < 0 else end

    def package_at(self, at: int, file: str = "") -> str:
        """Return the distribution of the frame or compiled file in a position's line, else in `file`; "" if none is."""
        line, end = self.line_span(at)
        modules = _FRAME.findall(self.text[line:end]) or _FRAME.findall(file)
        file_match = _OF_FOLDER.search(self.text[line:end]) or _OF_FOLDER.search(file)
        module = modules[-1] if modules else next(filter(None, file_match.groups()), "") if file_match else ""
        return package_of(module) if module else ""

    def frames_above(self, at: int) -> tuple[str, ...]:
        """Return the modules of the frames above a position, the nearest last; () if there are none."""
        return tuple(_FRAME.findall(self.text[max(0, at - FAR) : at]))

    def went_on(self, at: int) -> bool:
        """Return whether the program went on without what is missing at a position."""
        line, end = self.line_span(at)
        if line < died_at(self.text) <= end + 1:
            return False
        nearby = _ADVISES.sub("", self.text[max(0, line - NEAR) : min(len(self.text), end + 160)])
        does_without = _DOES_WITHOUT.search(nearby) and not ERROR.search(self.text, end)
        succeeds_in_one_line = "\n" not in self.text.strip() and _SUCCESS.search(self.text)
        return bool(does_without or _SUCCESS.search(self.text, end) or succeeds_in_one_line)

    def only_warned(self, at: int, thing: str) -> bool:
        """Return whether a message is in a Python warning after which the program worked on.

        A later failure is another one if no line of it holds the pattern `thing`.
        """
        work_after = _WORKED_ON.search(self.text, at)
        return bool(work_after and not re.search(rf"error[^\n]*(?:{thing})", self.text[work_after.end() :]))


def range_beside(name: str, torch: str) -> VersionRange | None:
    """Return the newest versions of a companion that go with a torch; None if none are known, as with no torch."""
    public = torch.partition("+")[0]
    fitting = [versions for versions in version_ranges(name) if public and versions.goes_with(public)]
    return max(fitting, key=lambda versions: versions.least, default=None)


def pip_install(name: str, torch: str, *others: str) -> str:
    """Return the command that installs the versions of companions for a torch, from the index of torch's build.

    The index is named only if torch's version tells its build, and that index carries `name`; it counts for all.
    Companions of which no version is known to go with it are left out; "" if none is left, as with an unknown torch.
    """
    build = torch.partition("+")[2]
    found = {each: versions for each in (name, *others) if (versions := range_beside(each, torch))}
    requirements = " ".join(f'"{canonicalize_name(each)}{versions.versions}"' for each, versions in found.items())
    is_on_pypi = name in found and found[name].cuda == (11,)  # before torch's index had it
    has_index = build.startswith(("cpu", "cu", "xpu", "rocm")) and carried_by_torch_index(name, build)
    index = f" --index-url https://download.pytorch.org/whl/{build}" if has_index and not is_on_pypi else ""
    return f"python -m pip install {requirements}{index}" if requirements else ""


def torchcodec_install(context: LogContext) -> str:
    """Return the command that installs the TorchCodec for a log's torch; "" if that is unknown.

    On Windows it is PyPI's, as PyTorch's index has it for Linux alone.
    Source: https://github.com/meta-pytorch/torchcodec#installing-torchcodec, 2026-11-26.
    """
    public, _plus, _build = context.torch.partition("+")
    return pip_install("torchcodec", public if context.machine.os == "windows" else context.torch)


def pip_install_pair(torch: str) -> str:
    """Return the command that installs a torch's torchvision and torchaudio from its build's index; "" if unknown."""
    command = pip_install("torchvision", torch, "torchaudio")
    return command if " --index-url " in command else ""


def versions_for_cuda(row: Companion | None, major: int) -> str:
    """Return the specifier of a companion's newest versions whose PyPI wheel is for a CUDA major; "" if unknown."""
    ranges = [version_range for version_range in (row.ranges if row else ()) if major in version_range.cuda]
    return max(ranges, key=lambda version_range: version_range.least).versions if ranges else ""
