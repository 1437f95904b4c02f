"""Reads the shapes in which tools list facts into entries of keys and values, whatever the tool.

Lines `key: value`, `key = value` and `key   value`, lists with a number before each device, sections, CSV, tables with
rules or columns, Markdown, JSON. What the keys mean is told elsewhere.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator

from assistant.catalog.vocabulary import meaning, plain_key, products

MOST_LINES = 40_000  # chosen: reports are far shorter
_LONGEST_LINE = 1000  # characters; what tools list is shorter
_MOST_JSON = 40  # places where JSON may begin
_DEEPEST = 12


class Entry:
    """What a report lists of one device, or of the machine: keys (as `plain_key` spells them) and values, in order.

    `label` tells which list it stands in: entries of one label are as many devices. `numbered` ones bear a number.
    """

    def __init__(self, label: str = "", *, numbered: bool = False, indent: int = -1) -> None:
        self.label = label
        self.numbered = numbered
        self.indent = indent
        self.pairs: list[tuple[str, str, str]] = []

    def add(self, key: str, value: str, section: str = "") -> None:
        """Note a value under its key; of a key in a section (`VRAM:`, `SIZE:`) both names may be known."""
        plain, value = plain_key(key), value.strip().strip("`\"',").strip()
        joint = plain_key(section) + plain
        if value and (plain or not key) and not value.startswith("amdgcn-"):
            self.pairs.append((joint if section and _known(joint) else plain, value, key))

    def has(self, key: str) -> bool:
        """Return whether there is a value under a key already."""
        return any(known == key for known, _value, _raw in self.pairs)


def _known(plain: str) -> bool:
    return meaning("gpu", plain) is not None or meaning("machine", plain) is not None


def _names(plain: str) -> bool:
    found = meaning("gpu", plain)
    return found is not None and found[0] == "name"


# 17:21:03-277184 INFO     Torch 2.1.2+cu118
# [2024-03-27 16:40:31,776]::[InvokeAI]::INFO --> Using torch device: NVIDIA GeForce RTX 4090
# 2025-11-27T00:45:36.442878 - ** Platform:2025-11-27T00:45:36.444875 -  2025-11-27T00:45:36.444976 - Windows
_STAMP = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?(?: -)? ?|^\d\d:\d\d:\d\d[-.,]\d{3,6} "
    r"|^\[[A-Za-z]\w{1,20}\] (?=\w)"
)
_LEVEL = re.compile(r"^(?:::\[\w{1,30}\]::)?(?:INFO|DEBUG|WARNING)(?::| {1,9}(?:--> )?)? {0,9}")
_MARKUP = re.compile(r"^[ \t]{0,80}(?:(?:[-#>*+•·]{1,6}|`-{2})[ \t]{1,8}){0,3}")
# GPU 0: X    GPU: 0    GPU[0]      : Card Series: X    GPU0:    Device #0: X    Device [#0]:    Device-1: X
_KINDS = "GPUs?|Device|Card|Adapter|Graphics card|Video card|Display|Graphics|显卡|图形处理器|设备"
_NUMBERED = re.compile(
    rf"((?:{_KINDS})(?:[ ]?[\[(#-]{{0,3}}|: ?))(\d{{1,2}}(?:,\d{{1,2}}){{0,15}})\b([\])]{{0,2}}[ \t]{{0,12}}(?::(?!\d)|[ \t]{{2}}|$))(.*)$",
    re.IGNORECASE,
)
# [level_zero:gpu:0] X    [opencl:gpu][opencl:1] X    cuda:0 X
_SYCL = re.compile(r"\[(?:ext_oneapi_)?(\w{2,20}):(gpu|cpu|acc|fpga|host)(?::(\d{1,2}))?\](?:\[\w{2,20}:(\d{1,2})\])?(.*)$")
# gpustat: [0] NVIDIA GeForce RTX 3090 | 45'C,   0 % |     2 / 24576 MB |
_BARE_NUMBER = re.compile(r"\[?(\d{1,2})[\]:)][ :]{1,4}(\S.*)$")
# _XpuDeviceProperties(name='Intel(R) Arc(TM) B580 Graphics', type='gpu', total_memory=11605MB)
_PROPERTIES = re.compile(r"\b_?\w{2,20}DeviceProperties\((.{5,900}?)\)?$")
_PAIR = re.compile(r"([^:=|]{1,70}?)[\"`*]{0,3}[ \t.]{0,80}(?:[:=](?![\\/])|\|)[\"`* \t]{0,80}(.*)$")
_SPACED = re.compile(r"(\S[^\t]{0,50}?)(?: {2,80}|\t{1,9} {0,9})(\S.*)$")
_INNER = re.compile(r"[ \t](?=[A-Za-z][\w-]{0,14}(?: ID)?: )|[ \t](?=[a-z]\w{0,14}=)")
_HEADING = re.compile(r"\[?([^\W\d][\w /&.-]{1,50})\]?:?$")
# neofetch and fastfetch draw a picture on the left.
_BESIDE = re.compile(r"\s{0,40}\S.{0,80}? {2,40}((?:OS|Host|Kernel|CPU|GPU(?: \d{1,2})?|Memory|Disk[^:]{0,12}): \S.*)$")
# CUDA:0 (Tesla T4, 15102MiB)      - **Name:** cuda:0 NVIDIA GeForce RTX 4090 : cudaMallocAsync
_TORCH_DEVICE = re.compile(r"\b(cuda|xpu|hip):(\d{1,2})[ (]{1,2}(?=[A-Z])(.*)$", re.IGNORECASE)
_GPU_MODELS = re.compile(r"GPU (\d{1,2}): ([^\n]{3,80})")
_RULE = re.compile(r"[\s|+\-=:─━═┼├┤╪╞╡┌┬┐└┴┘╔╗╚╝╦╩╠╣╬]{3,}$")
_BARS = str.maketrans("│┃║", "|||")


def entries(text: str) -> list[Entry]:
    """Read every entry that a text lists, in any of the shapes."""
    found: list[Entry] = []
    rest = _json(text, found)
    reader = _Lines(found)
    for number, line in enumerate(rest.split("\n")):
        if number >= MOST_LINES:
            break
        reader.read(line[:_LONGEST_LINE].rstrip())
    reader.close()
    return found


class _Lines:
    """Reads line by line and knows which entry, section and table it is in."""

    def __init__(self, found: list[Entry]) -> None:
        self.found = found
        self.entry = Entry()
        self.numbered: dict[tuple[str, str], Entry] = {}
        self.section, self.section_indent = "", -1
        self.columns: Callable[[str], list[str] | None] | None = None
        self.header: list[str] = []
        self.rows = 0
        self.platform = ""
        self.asked = ""

    def close(self) -> None:
        """End the entry at hand."""
        if self.entry.pairs and not any(self.entry is one for one in self.found[-4:]) and not self.entry.numbered:
            self.found.append(self.entry)

    def start(self, label: str, *, number: str = "", indent: int = -1) -> None:
        """Begin an entry, or go on with that of the same list and number."""
        self.close()
        known = self.numbered.get((label, number)) if number else None
        self.entry = known or Entry(label, numbered=bool(number), indent=indent)
        if number:
            self.numbered[label, number] = self.entry
            if known is None:
                self.found.append(self.entry)

    def read(self, raw: str) -> None:
        """Read one line."""
        line = raw.translate(_BARS)
        if line.lstrip()[:1] in "[0123456789IDW" and (plain := _LEVEL.sub("", _STAMP.sub("", line.lstrip()))) != line.lstrip():
            line = plain
        if "  " in line and (beside := _BESIDE.match(line)):
            line = beside[1]
        marked = _MARKUP.match(line)
        indent = marked.end() if marked else 0
        text = line[indent:].replace("**", "").strip()
        if not text:
            self.header = []
            self.columns = None
            return
        if self.asked:  # the answer below a heading of GitHub's forms
            asked, self.asked = self.asked, ""
            self._pair(asked, text, indent)
            return
        if line.lstrip()[:1] == "#" and _known(plain_key(text)):
            self.asked = text
            return
        if device := _TORCH_DEVICE.search(text):
            before = self.entry
            self.start(f"{device[1].lower()}:#", number=device[2])
            self.entry.add("", device[3])
            self.entry = before
        if text[0] == "|" and text.count("|") == 2 and text[-1] == "|":
            text = line = text.strip("| ")
        if not text or self._table(line, text) or self._columns(line, text):
            return
        if not self._numbered(text, indent):
            self._pairs(text, indent)

    def _table(self, line: str, text: str) -> bool:
        """Read a row between bars: a key and a value, a number before them, or cells below a header."""
        if text[0] != "|" and not (self.header and "|" in text):
            return bool(_RULE.match(text)) and "-" not in text.strip(" -")[:0] and text[0] in "+|├┌└╔╚╠═"
        cells = [cell.strip().strip("`*").strip() for cell in text.strip("|").split("|")]
        if _RULE.match(text):
            return True
        if self.header and len(cells) == len(self.header):
            self._row("|" + ",".join(self.header), self.header, cells)
            return True
        keys = [plain_key(cell) for cell in cells]
        if len(cells) > 2 and sum(map(_known, keys)) >= 2 or (len(cells) == 2 and all(map(_known, keys))):
            self.header = keys
            return True
        if len(cells) >= 2:
            inner = _PAIR.match(cells[1])
            if cells[0].isdigit():
                self.start("|#|", number=cells[0])
            if inner and (cells[0].isdigit() or not cells[0]):
                self.entry.add(inner[1], inner[2])
            elif len(cells) == 2:
                self._pair(cells[0], cells[1], 0)
        return True

    def _columns(self, line: str, text: str) -> bool:
        """Read a row below a header of columns, or of CSV; a header is known by its keys."""
        if self.columns:
            cells = self.columns(line)
            if cells is not None:
                if any(cells):
                    self._row(",".join(self.header), self.header, cells)
                return True
            self.columns, self.header = None, []
        names = next(csv.reader([text]), []) if "," in text else []
        keys = [plain_key(name) for name in names]
        if len(keys) > 1 and sum(map(_known, keys)) >= max(1, len(keys) // 4) and all(len(key) < 60 for key in keys):
            if not any(character.isdigit() for character in re.sub(r"\[[^\]]{0,20}\]", "", text)) or "device" in keys:
                self.header, self.columns = names, _csv_row(len(names))
                return True
        if ":" in text or "=" in text:
            return False
        # Columns stand two blanks or more apart, but PowerShell's may stand one apart.
        for pattern, least in ((r"\S+(?: \S+)*", 2), (r"\S+", len(text.split()))):
            words = list(re.finditer(pattern, line))
            keys = [plain_key(word[0]) for word in words]
            if len(keys) > 1 and sum(map(_table_key, keys)) >= least and keys[-1] not in {"gpu", "cpu"}:
                self.header, self.columns = [word[0] for word in words], _aligned(words)
                return True
        return False

    def _row(self, label: str, header: list[str], cells: list[str]) -> None:
        self.rows += 1
        self.start(label, number=f"row {self.rows}")
        for key, cell in zip(header, cells, strict=False):
            unit = re.search(r"[\[(](MiB|MB|GiB|GB|B|bytes)[\])]", key)
            self.entry.add(key, f"{cell} {unit[1]}" if unit and cell[-1:].isdigit() else cell)
        self.close()
        self.entry = Entry()

    def _numbered(self, text: str, indent: int) -> bool:
        """Read a device of a list by the number before it."""
        head = re.match(r"(\w{3,20}): {1,12}(?=(?:Device|Card)-\d)", text)  # inxi's first line holds the section, too
        if head:
            self.section, self.section_indent = head[1], indent
            text, indent = text[head.end() :], indent + head.end()
        platform = re.match(r"Platform (?:\[?#\d{1,2}\]?): {0,4}(.*)$", text)
        if platform:
            self.close()
            self.entry, self.platform = Entry(), text
            return True
        found = _NUMBERED.match(text)
        if found and indent <= self.section_indent:
            self.section, self.section_indent = "", -1
        if found:
            numbers = found[2].split(",")
            rest = found[4].strip()
            label = f"{self.section}/{self.platform}/{found[1]}#{found[3].strip()}"
            for number in numbers:
                self.start(label, number=number, indent=indent)
                self._rest(rest, "name" if found[1][:1] in "Dd" else "GPU name")
            return True
        bare = _BARE_NUMBER.match(text)
        if bare and products().search(bare[2]):
            self.start(f"{self.section}/#", number=bare[1], indent=indent)
            self.entry.add("", bare[2])
            return True
        call = _PROPERTIES.search(text)
        if call:
            self.start("properties", indent=indent)
            for part in call[1].split(", "):
                key, _sign, value = part.partition("=")
                self.entry.add(key, value)
            self.close()
            self.entry = Entry()
            return True
        sycl = _SYCL.match(text)
        if sycl and sycl[2] == "gpu":
            self.start(f"{sycl[1]}:gpu", number=sycl[3] or sycl[4] or str(len(self.found)), indent=indent)
            self.entry.add("", sycl[5])
        elif sycl:
            self.close()
            self.entry = Entry()
        return sycl is not None

    def _rest(self, rest: str, key: str) -> None:
        pair = _PAIR.match(rest)
        if pair and _known(plain_key(pair[1])):
            self._add(pair[1], pair[2])
        elif rest:
            first, *more = _INNER.split(rest)
            self.entry.add(key, first)
            for part in more:
                inner = _PAIR.match(part)
                if inner:
                    self.entry.add(inner[1], inner[2])

    def _add(self, key: str, value: str) -> None:
        if "GPU" in value[:4] and _names(plain_key(key)) and (listed := _GPU_MODELS.findall(value)):
            before = self.entry
            for number, name in listed:
                self.start("GPU #:", number=number)
                self.entry.add("GPU name", name)
            self.entry = before
            return
        unit = re.search(r"[\[(](MiB|MB|GiB|GB|B|bytes)[\])]", key)
        section = self.section if self.section_indent > self.entry.indent else ""
        self.entry.add(key, f"{value} {unit[1]}" if unit and value[-1:].isdigit() else value, section)

    def _pairs(self, text: str, indent: int) -> None:
        """Read a key and its value, or several of one line; a line without either may be a heading or a name."""
        pair = _PAIR.match(text)
        if pair and not pair[2].strip() and _HEADING.match(pair[1].strip()):
            self.section, self.section_indent = pair[1].strip(), indent
            if indent <= self.entry.indent:
                self.close()
                self.entry = Entry()
            return
        if not pair or not _known(plain_key(pair[1])):
            spaced = _SPACED.match(text)
            if spaced and (_known(plain_key(spaced[1])) or plain_key(spaced[1]) == "platformname"):
                pair = spaced
        if indent <= self.section_indent:
            self.section, self.section_indent = "", -1
        if not pair:
            heading = re.fullmatch(r"\[(\w[\w .-]{1,40})\]", text)
            if heading:
                self.section, self.section_indent = heading[1], indent - 1
            if products().search(text):
                alone = Entry("line")
                alone.add("", text)
                self.found.append(alone)
            return
        parts = _INNER.split(pair[2])
        if len(parts) > 1:
            self._pair(pair[1], parts[0] if "=" not in parts[0] else "", indent)
            for part in parts:
                inner = _PAIR.match(part)
                if inner:
                    self._pair(inner[1], inner[2], indent + 1)
        else:
            self._pair(pair[1], pair[2], indent)

    def _pair(self, key: str, value: str, indent: int) -> None:
        """Note a pair; a key that names a device once more, or one that stands further out, begins another entry."""
        plain = plain_key(key)
        if plain == "platformname":
            self.close()
            self.entry, self.platform = Entry(), value
        if self.entry.has(plain) and meaning("gpu", plain) and value.strip():
            self.start(f"{plain}/{self.platform}", indent=-1)
        elif self.entry.numbered and indent <= self.entry.indent and _names(plain):
            self.start(plain, indent=-1)
        if not self.entry.label and _names(plain):
            self.entry.label = f"{plain}/{self.platform}"
        self._add(key, value)


def _table_key(plain: str) -> bool:
    return plain in {"gpu", "device", "id", "index", "node"} or _known(plain)


def _csv_row(count: int) -> Callable[[str], list[str] | None]:
    def row(line: str) -> list[str] | None:
        cells = next(csv.reader([line], skipinitialspace=True), [])
        return [cell.strip() for cell in cells] if len(cells) == count else None

    return row


def _aligned(heads: list[re.Match[str]]) -> Callable[[str], list[str] | None]:
    """Return what cuts a row by the columns that stand below these heads, aligned to the left or to the right."""
    spans = [head.span() for head in heads]

    def row(line: str) -> list[str] | None:
        if not re.sub(r"[-\s=─]", "", line):
            return [""] * len(spans)
        parts = re.split(r" {2,}|\t+", line.strip())
        if len(parts) == len(spans):
            return parts
        cells = [""] * len(spans)
        for word in re.finditer(r"\S+", line):
            over = next((i for i, (start, end) in enumerate(spans) if word.start() < end and word.end() > start), None)
            if over is None:
                over = max((i for i, (start, _end) in enumerate(spans) if start <= word.start()), default=0)
            cells[over] = f"{cells[over]} {word[0]}".strip()
        return cells if sum(map(bool, cells)) > 1 or len(spans) == 1 else None

    return row


def _json(text: str, found: list[Entry]) -> str:
    """Read what is JSON; return the text without it."""
    decoder, kept, at = json.JSONDecoder(), [], 0
    for tried, start in enumerate(re.finditer(r"^[ \t]{0,8}(?=[{\[][\s\"{\[])", text, re.MULTILINE)):
        if tried >= _MOST_JSON:
            break
        if start.end() < at:
            continue
        try:
            value, end = decoder.raw_decode(text, start.end())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list) and value:
            kept.append(text[at : start.end()])
            at = end
            _objects(value, found, "json")
    return "".join(kept) + text[at:] if at else text


def _objects(value: object, found: list[Entry], label: str, depth: int = 0) -> None:
    """Make an entry of each object that is one of a list or bears a number (`card0`); the others belong to theirs."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for item in value:
            _objects(item, found, label, depth + 1)
    elif isinstance(value, dict):
        entry = Entry(label, numbered=True)
        found.append(entry)
        _flatten(value, entry, found, label, "", depth)


def _flatten(values: dict[str, object], entry: Entry, found: list[Entry], label: str, path: str, depth: int) -> None:
    unit = values.get("unit")
    for key, value in values.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            if re.search(r"^(?:card|gpu|device)?_?\d{1,3}$", key) or key.startswith("SP"):
                _objects(value, found, f"{label}/{path}", depth + 1)
            elif key in {"dependencies", "packages"}:
                entry.add("packages", "\n".join(f"{name}=={version}" for name, version in value.items()))
            else:
                _flatten(value, entry, found, label, f"{path} {key}", depth + 1)
        elif isinstance(value, list):
            if all(isinstance(item, str | int) for item in value) and _names(plain_key(key)):
                for item in value:
                    one = Entry(f"{label}/{key}", numbered=True)
                    one.add(key, str(item))
                    found.append(one)
            else:
                _objects(value, found, f"{label}/{key}", depth + 1)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            told = f"{value} {unit}" if isinstance(unit, str) and key == "value" else str(value)
            models = _GPU_MODELS.findall(told) if _names(plain_key(key)) else []
            for _number, name in models:
                one = Entry(f"{label}/{key}", numbered=True)
                one.add("GPU name", name)
                found.append(one)
            if models:
                continue
            size = re.search(r"\((B|MB|MiB|GB)\)", key)
            entry.add(path if key == "value" else key, f"{told} {size[1]}" if size else told, "" if key == "value" else path)


def listed(found: Iterable[Entry]) -> Iterator[tuple[str, str, str]]:
    """Yield every key, value and key as written of all entries."""
    for entry in found:
        yield from entry.pairs
