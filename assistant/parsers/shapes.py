"""Reads the shapes in which tools list facts into entries of keys and values, whatever the tool.

Lines `key: value`, `key = value` and `key   value`, lists with a number before each device, sections, CSV, tables with
rules or columns, Markdown, JSON. What the keys mean is told elsewhere.
"""

from __future__ import annotations

import re

from assistant.catalog.vocabulary import meaning, plain_key, products
from assistant.parsers.cards import is_card
from assistant.parsers.columns import Cut, header
from assistant.parsers.entry import Entry, known, names_gpu, with_unit
from assistant.parsers.nested import GPU_MODELS, objects

MOST_LINES = 40_000  # chosen: reports are far shorter
_LONGEST_LINE = 1000  # characters; what tools list is shorter


# 17:21:03-277184 INFO     Torch 2.1.2+cu118
# [2024-03-27 16:40:31,776]::[InvokeAI]::INFO --> Using torch device: NVIDIA GeForce RTX 4090
# 2025-11-27T00:45:36.442878 - ** Platform:2025-11-27T00:45:36.444875 -  2025-11-27T00:45:36.444976 - Windows
_STAMP = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?(?: -)? ?|^\d\d:\d\d:\d\d[-.,]\d{3,6}:? "
    r"|^\[[A-Za-z]\w{1,20}\] (?=\w)"
)
_LEVEL = re.compile(r"^(?:info|warn):(?= )|^(?:::\[\w{1,30}\]::)?(?:INFO|DEBUG|WARNING)(?::| {1,9}(?:--> )?)? {0,9}")
_MARKUP = re.compile(r"^[ \t]{0,80}(?:(?:[-#>*+•·]{1,6}|`-{2})[ \t]{1,8}){0,3}")
# GPU 0: X    GPU: 0    GPU[0]      : Card Series: X    GPU0:    Device #0: X    Device [#0]:    Device-1: X
_KINDS = "GPUs?|Device|Card|Adapter|Graphics card|Video card|Display|Graphics|显卡|图形处理器|设备"
_NUMBERED = re.compile(
    rf"((?:{_KINDS})(?:[ ]?[\[(#-]{{0,3}}|: ?))(\d{{1,2}}(?:,\d{{1,2}}){{0,15}})\b"
    r"([\])]{0,2}[ \t]{0,12}(?::(?!\d)|[ \t]{2}|$))(.*)$",
    re.IGNORECASE,
)
# [level_zero:gpu:0] X    [opencl:gpu][opencl:1] X    cuda:0 X
_SYCL = re.compile(
    r"\[(?:ext_oneapi_)?(\w{2,20}):(gpu|cpu|acc|fpga|host)(?::(\d{1,2}))?\](?:\[\w{2,20}:(\d{1,2})\])?(.*)$"
)
_IN_BRACKETS = re.compile(r" \[(\d[\d.]{4,30})\]$")  # … OpenCL 3.0 NEO  [23.17.26241.33]
# gpustat: [0] NVIDIA GeForce RTX 3090 | 45'C,   0 % |     2 / 24576 MB |
_BARE_NUMBER = re.compile(r"\[?(\d{1,2})[\]:)][ :]{1,4}(\S.*)$")
# _XpuDeviceProperties(name='Intel(R) Arc(TM) B580 Graphics', type='gpu', total_memory=11605MB)
_PROPERTIES = re.compile(r"\b_?\w{0,20}DeviceProperties\((.{5,900}?)\)?$")
_INXI = re.compile(r"(\w{3,20}): {1,12}(?=(?:Device|Card)-\d)")
_PLATFORM = re.compile(r"Platform \[?#\d{1,2}\]?:")
_PAIR = re.compile(r"([^:=|]{1,70}?)[\"`*]{0,3}[ \t.]{0,80}(?:[:=](?![\\/])|\|)[\"`* \t]{0,80}(.*)$")
_SPACED = re.compile(r"(\S[^\t]{0,50}?)(?: {2,80}|\t{1,9} {0,9})(\S.*)$")
_INNER = re.compile(r"[ \t](?!ID: )(?=[A-Za-z][\w-]{0,14}(?: ID)?: )|[ \t](?=[a-z]\w{0,14}=)")
_HEADING = re.compile(r"\[?([^\W\d][\w /&.-]{1,50})\]?:?$")
_BARE_HEADING = re.compile(r"[A-Z][\w /-]{2,40}")
# neofetch and fastfetch draw a picture on the left.
_BESIDE = re.compile(r"\s{0,40}\S.{0,80}? {2,40}((?:OS|Host|Kernel|CPU|GPU(?: \d{1,2})?|Memory|Disk[^:]{0,12}): \S.*)$")
# CUDA:0 (Tesla T4, 15102MiB)      - **Name:** cuda:0 NVIDIA GeForce RTX 4090 : cudaMallocAsync
# DirectML: creating device on adapter 1 (AMD Radeon(TM) Graphics)
# ggml_vulkan: 1 = Intel(R) Arc(tm) A380 Graphics (DG2) (Intel open-source Mesa driver) | uma: 0     CUDA0: NVIDIA …
_TORCH_DEVICE = re.compile(
    r"\b(cuda:|xpu:|hip:|adapter |ggml_vulkan: |(?:cuda|vulkan|rocm|sycl)(?=\d: ))(\d{1,2})(?::| =)?[ (]{1,2}(?=[A-Z])"
    r"([^|]*)",
    re.IGNORECASE,
)
# [AMD/1]     CL_DEVICE_BOARD_NAME_AMD                        AMD Instinct MI250X/MI250      (clinfo --raw)
_CLINFO_RAW = re.compile(r"\[(\w{1,20})/(\d{1,2})\] +CL_(?:DEVICE_)?(\w{2,60}?)(?:_AMD|_NV)? {2,}(\S.*)$")
# time=2025-03-14T16:59:15.255Z level=INFO source=types.go:130 msg="inference compute" id=0 library=rocm compute=gfx1030
# driver=0.0 name=1002:73bf total="16.0 GiB"      (ollama; `driver` is of CUDA or HIP)
_LOGFMT = re.compile(r"\blevel=[A-Z]{4,5} ")
_FIELD = re.compile(r"(?<!\S)(\w{2,20})=(\"(?:[^\"\\]|\\.){0,400}\"|\S{0,200})")
_OF_THE_LOG = {"time", "level", "source", "driver"}
_LISTED = re.compile(r", (?=[A-Z])| \+ | & | and ")  # between the names of several GPUs
_PARTS = {"size", "usage", "total"}  # keys that one device may have several of
_EITHER = {"igpu", "dgpu"}  # the two GPUs of a laptop, each on a line of its own
_RULE = re.compile(r"[\s|+\-=:─━═┼├┤╪╞╡┌┬┐└┴┘╔╗╚╝╦╩╠╣╬]{3,}$")
_BARS = str.maketrans("│┃║", "|||")


def entries(text: str) -> list[Entry]:
    """Read every entry that a text lists, in any of the shapes."""
    found: list[Entry] = []
    rest = objects(text, found)
    reader = _Lines(found)
    for number, line in enumerate(rest.split("\n")):
        if number >= MOST_LINES:
            break
        reader.read(line[:_LONGEST_LINE].rstrip())
    reader.end()
    return found


def _plain(raw: str) -> str:
    """Return a line without the bars of boxes, a log's stamp and level, or the picture on its left."""
    line = raw.translate(_BARS)
    inner = line.lstrip()
    if inner[:1] in "[0123456789IDWiw":
        plain = _LEVEL.sub("", _STAMP.sub("", inner))
        line = line if plain == inner else plain
    beside = _BESIDE.match(line) if "  " in line else None
    return beside[1] if beside else line


class _Lines:
    """Reads line by line and knows which entry, section and table it is in."""

    def __init__(self, found: list[Entry]) -> None:
        self.found = found
        self.entry = Entry()
        self.numbered: dict[tuple[str, str], Entry] = {}
        self.section, self.section_indent = "", -1
        self.columns: tuple[list[str], Cut] | None = None
        self.piped: list[str] = []
        self.rows = 0
        self.platform = ""
        self.asked = ""
        self.above, self.naming = "", ""  # the list that the line before names a GPU of, and this one

    def end(self) -> None:
        """End the entry at hand; what comes next is of none yet."""
        if self.entry.pairs and not self.entry.numbered and not any(self.entry is one for one in self.found[-4:]):
            self.found.append(self.entry)
        self.entry = Entry()

    def start(self, label: str, *, number: str = "", indent: int = -1) -> None:
        """Begin an entry, or go on with that of the same list and number."""
        self.end()
        before = self.numbered.get((label, number)) if number else None
        self.entry = before or Entry(label, numbered=bool(number), indent=indent)
        if number:
            self.numbered[label, number] = self.entry
            if before is None:
                self.found.append(self.entry)

    def read(self, raw: str) -> None:
        """Read one line."""
        line = _plain(raw)
        self.above, self.naming = self.naming, ""
        marked = _MARKUP.match(line)
        indent = marked.end() if marked else 0
        text = line[indent:].replace("**", "").strip()
        if not text:
            self.piped, self.columns = [], None
            return
        if self.asked:  # the answer below a heading of GitHub's forms
            asked, self.asked = self.asked, ""
            self._pair(asked, text, indent)
            return
        if (line.lstrip()[:1] == "#" or re.match(r"\s{0,9}\*\*[^*]{2,60}\*\*$", line)) and known(plain_key(text)):
            self.asked = text
            return
        if device := _TORCH_DEVICE.search(text):
            before = self.entry
            self.start(f"{device[1].lower()}#", number=device[2])
            self.entry.add("", device[3])
            self.entry = before
        if text[0] == "|" == text[-1] and "|" not in text[1:-1]:
            text = line = text.strip("| ")
        if not text or self._logged(text) or self._table(text) or self._columns(line):
            return
        if not self._numbered(text, indent):
            self._pairs(text, indent)

    def _logged(self, text: str) -> bool:
        """Read a line of a log in keys and values; the message tells which list it is of."""
        if not _LOGFMT.search(text):
            return False
        fields = dict(_FIELD.findall(text))
        entry = Entry(f"log/{fields.pop('msg', '')}")
        for key, value in fields.items():
            if key not in _OF_THE_LOG:
                entry.add(key, value)
        self.found.append(entry)
        return True

    def _table(self, text: str) -> bool:
        """Read a row between bars: a key and a value, a number before them, or cells below a header."""
        if _RULE.match(text):
            return text[0] in "+|├┌└╔╚╠═"
        if text[0] != "|":
            return False
        first, *others = cells = [cell.strip(" \t`*") for cell in text.strip("|").replace("||", "|").split("|")]
        keys = [plain_key(cell) for cell in cells]
        count = sum(map(known, keys))
        if len(cells) == len(self.piped):
            self._row(self.piped, cells)
        elif count > 1 and (count >= len(keys) - 1 or (any(map(names_gpu, keys)) and not re.search(r"\d", text))):
            self.piped = cells
        elif others and (not first or first.isdigit()):
            if first:
                self.start("|#|", number=first)
            if inner := _PAIR.match(others[0]):
                self.entry.add(inner[1], inner[2])
        elif len(others) == 1:
            self._pair(first, others[0], 0)
        return True

    def _columns(self, line: str) -> bool:
        """Read a row below a header of columns, or of CSV."""
        if self.columns:
            names, cut = self.columns
            cells = cut(line)
            if cells is not None:
                if any(cells):
                    self._row(names, cells)
                return True
        self.columns = header(line)
        return self.columns is not None

    def _row(self, names: list[str], cells: list[str]) -> None:
        self.rows += 1
        backend = next((found[1] for found in map(_SYCL.match, cells) if found), "")  # lists a card once more
        self.start(",".join([*names, backend]), number=f"row {self.rows}")
        for key, cell in zip(names, cells, strict=False):
            self.entry.add(key, with_unit(key, cell))
        self.end()

    def _numbered(self, text: str, indent: int) -> bool:
        """Read a device of a list by the number before it."""
        head = _INXI.match(text)  # its first line holds the section, too
        if head:
            self.section, self.section_indent = head[1], indent
            text, indent = text[head.end() :], indent + head.end()
        if _PLATFORM.match(text):
            self.end()
            self.platform = text
            return True
        found = _NUMBERED.match(text)
        if not found:
            return self._bracketed(text, indent)
        if indent <= self.section_indent:
            self.section, self.section_indent = "", -1
        label = f"{self.section}/{self.platform}/{found[1]}#{found[3].strip()}"
        for number in found[2].split(","):
            self.start(label, number=number, indent=indent)
            self._rest(found[4].strip(), "name" if found[1][:1] in "Dd" else "GPU name")
        return True

    def _bracketed(self, text: str, indent: int) -> bool:
        """Read a device behind a bare number, in sycl-ls' brackets or as torch's properties."""
        raw = _CLINFO_RAW.match(text)
        if raw:
            self.start(f"clinfo/{raw[1]}", number=raw[2])
            self.entry.add(raw[3], raw[4])
            return True
        bare, call, sycl = _BARE_NUMBER.match(text), _PROPERTIES.search(text), _SYCL.match(text)
        if bare and not call and products().search(bare[2]):
            self.start(f"{self.section}/#", number=bare[1], indent=indent)
            self.entry.add("", bare[2])
        elif call:
            self.start("properties", indent=indent)
            for part in call[1].split(", "):
                self.entry.add(*part.partition("=")[::2])
            self.end()
        elif sycl:
            self.end()
            if sycl[2] == "gpu":
                self.start(f"{sycl[1]}:gpu", number=sycl[3] or sycl[4] or str(len(self.found)), indent=indent)
                self.entry.add("", sycl[5])
                if sycl[1] == "opencl" and (version := _IN_BRACKETS.search(sycl[5])):
                    self.entry.add("driverversion", version[1])
        return bool(call or sycl) or bool(bare and self.entry.numbered and self.entry.label.endswith("/#"))

    def _rest(self, rest: str, key: str) -> None:
        pair = _PAIR.match(rest)
        if pair and known(plain_key(pair[1])):
            self._add(pair[1], pair[2])
        elif rest:
            first, *more = _INNER.split(rest)
            self.entry.add(key, first)
            for part in more:
                inner = _PAIR.match(part)
                if inner:
                    self.entry.add(inner[1], inner[2])

    def _add(self, key: str, value: str) -> None:
        listed = GPU_MODELS.findall(value) if "GPU" in value[:4] else []
        if len(names := _LISTED.split(value)) > 1 and all(map(products().match, names)):
            listed = [(str(number), name) for number, name in enumerate(names)]
        if listed and names_gpu(plain_key(key)):
            before = self.entry
            for number, name in listed:
                self.start("GPU #:", number=number)
                self.entry.add("GPU name", name)
            self.entry = before
            return
        section = self.section if self.section_indent > self.entry.indent else ""
        self.entry.add(key, with_unit(key, value), section)

    def _pairs(self, text: str, indent: int) -> None:
        """Read a key and its value, or several of one line; a line without either may be a heading or a name."""
        pair = _PAIR.match(text)
        heading = pair[1].strip() if pair and not pair[2].strip() else text[1:-1] if text[0] + text[-1] == "[]" else ""
        if heading and products().match(heading) and is_card(heading):  # DXVK: "NVIDIA GeForce GTX 1660 SUPER:"
            self.start("headed", number=str(len(self.found)), indent=indent)
            self.entry.add("", heading)
            return
        if _HEADING.match(heading):
            self.section, self.section_indent = heading, indent
            if indent <= self.entry.indent and not heading.startswith("Vk"):  # vulkaninfo's sections of a device
                self.end()
            return
        spaced = None if pair and known(plain_key(pair[1])) else _SPACED.match(text)
        if spaced and (known(plain_key(spaced[1])) or plain_key(spaced[1]) == "platformname"):
            pair = spaced
        if indent <= self.section_indent:
            self.section, self.section_indent = "", -1
        if pair:
            first, *more = _INNER.split(pair[2])
            self._pair(pair[1], first if not more or "=" not in first else "", indent)
            for inner in filter(None, map(_PAIR.match, [first, *more] if more else ())):
                self._pair(inner[1], inner[2], indent + 1)
        else:
            self._bare(text, indent)

    def _bare(self, text: str, indent: int) -> None:
        """Note a line without a key: a heading, a GPU's name, or several in a list."""
        if _BARE_HEADING.fullmatch(text) and not products().search(text):
            self.section, self.section_indent = text, indent  # nvidia-smi -q: "FB Memory Usage"
        elif products().search(text):
            # A list goes on: diffusers' "Accelerator: X" and Y below.
            # torch_directml: ['AMD Radeon RX 6600M\\x00', 'AMD Radeon(TM) Graphics\\x00']
            above = self.above if products().match(text) else ""
            keyed = _SPACED.match(text)  # AIDA64 in any language: what that key is, its value tells
            key, text = (keyed[1], keyed[2]) if keyed and products().match(keyed[2]) else ("", text)
            for name in re.findall(r"'([^']{3,80})'", text) if text[0] == "[" else [text]:
                self.found.append(Entry(above or f"line/{self.section}/{key}"))
                self.found[-1].add("", name.removesuffix("\\x00"))
            self.naming = above

    def _pair(self, key: str, value: str, indent: int) -> None:
        """Note a pair; a key that names a device once more, or one that stands further out, begins another entry."""
        plain = plain_key(key)
        if plain == "platformname":
            self.end()
            self.platform = value
        inside = self.entry.numbered and self.entry.indent < self.section_indent < indent  # amd-smi's sections
        again = self.entry.has(plain) and plain not in _PARTS and meaning("gpu", plain) is not None
        if plain in _EITHER or (again and value.strip() and not inside):
            self.start(f"{plain}/{self.platform}", indent=-1)
        elif self.entry.numbered and indent <= self.entry.indent and names_gpu(plain):
            self.start(plain, indent=-1)
        if not self.entry.label and names_gpu(plain):
            self.entry.label = f"{plain}/{self.platform}"
        if names_gpu(plain) and products().match(value.strip()):
            self.naming = self.entry.label
        self._add(key, value)
