"""Tells the lines that a person wrote from those that a program printed."""

from __future__ import annotations

import re
from collections.abc import Sequence

FEW = 4  # chosen: lines of a text without any program's line that are somebody's notes
LEAST_CHINESE = 4  # chosen: characters; a program's own messages in Chinese are translated before they are searched
# How programs alone begin a line: with a time, a level, an error's name, a place in a file, a bar of progress.
#   2026-11-21 10:20:30,123 INFO …   [81234.1] …   Traceback (most recent call last):   RuntimeError: …
#   /usr/lib/x.py:12: UserWarning: …   100%|████████| 7/7 [00:02<00:00,  3.10it/s]
_PROGRAM = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d|\[? ?\d{1,9}\.\d|\d\d:\d\d[:.]\d\d|File \"|Traceback|[IWEF]\d{4} "
    r"|\w+ \d+[:/]\d+ |(?:\w+\.)*\w*(?:Error|Exception|Warning)\b|(?:INFO|WARN(?:ING)?|DEBUG|ERROR|FATAL|CRITICAL)\b"
    r"|warnings\.warn"
    r"|(?:[A-Za-z]:)?[\\/~.][\w ./\\-]{2,200}:\d)|.{0,80}\b\d{1,3}%\|"
)
# How programs mostly begin one, and people at times: a prompt, a mark, a path, a name and its value, a statement.
#   >>> import torch   + torch==2.15.0   ├── …   C:\Users\…   Is CUDA available: False   Collecting torch
_PRINTED = re.compile(
    r"\s*(?:[\[>$#]|PS |[A-Za-z]:\\|[~./]+/?\w[\w./-]*/|[-=*+~_|│├└─━✓✗→•·]+(?:\s|$)|[-=*+~_]{3}"
    r"|(?:error|warning|fatal)\b|\w[\w ./()-]{0,50}[:=]\s|[\w.-]+==\S|(?:import|from|def|class|return|at) \w"
    r"|(?:Successfully|Collecting|Downloading|Installing|Requirement|Looking|Using|Building|Preparing|Found|Attempting"
    r"|Uninstalling|Resolved|Prepared|Audited|Loading|Loaded|Saving|Epoch|Step|Total|Device|Set|Got|User provided) )"
)
# Words that people use of themselves, of one another and of their trouble, and programs do not.
_PERSON = re.compile(
    r"(?<![\w/\\.\[-])(?:i|i'?m|i'?ve|i'?d|my|mine|me|our|anyone|anybody|somebody|pls|plz|thanks|thx|hi|hello|hey|btw|idk"
    r"|why (?:is|does|do|can|won)|how (?:do|can) i|what (?:did|should|am|can) i|(?:did|am|should) i|no idea|any ideas?"
    r"|got (?:a|an|this|the)|bought|doesn'?t|isn'?t|won'?t|can'?t|didn'?t|it (?:says|said|worked|works"
    r"|was|gets|wants|dies|takes|needs|crashes|stops|fails|hangs)"
    r"|says that"
    r"|complains|yesterday|somehow|weird|seems|apparently)(?![\w/\\-])",
    re.IGNORECASE,
)
_CHINESE = re.compile("[\u4e00-\u9fff]")


def prose(lines: Sequence[str]) -> list[bool]:
    """Return for each line whether a person wrote it."""
    programs = [bool(_PROGRAM.match(line)) for line in lines]
    printed = [program or bool(_PRINTED.match(line)) for line, program in zip(lines, programs, strict=True)]
    notes = sum(1 for line in lines if line.strip()) <= FEW and not any(printed)
    return [
        bool(line.strip())
        and not program
        and (notes or bool(_PERSON.search(line)) or (not mark and len(_CHINESE.findall(line)) >= LEAST_CHINESE))
        for line, program, mark in zip(lines, programs, printed, strict=True)
    ]
