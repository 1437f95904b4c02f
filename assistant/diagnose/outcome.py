"""Tells whether a program's run ended well, so that its warnings are not taken for trouble.

An installation that ended well is no such run: what it put in place may be the trouble.
"""

from __future__ import annotations

import re

from assistant.diagnose.log import Log

LAST = 12  # chosen: lines at the end that tell how a run ended
# Epoch 3/3 …    100%|████| 30/30 [00:02<00:00]    Prompt executed in 12.3 seconds
# Training complete    saved to out.png    wrote lecture04.srt    12.4 tokens/s    to see the gui go to: http://127.0.0.1:8188
_ENDED_WELL = re.compile(
    r"epoch \[?(\d{1,5}) ?/ ?\1\b|\b(\d{1,7})/\2 \[|prompt executed in \d"
    r"|(?:training|inference|generation|processing|conversion|export) (?:is )?(?:complete|done|finished|succeeded)"
    r"|\bsaved (?:to|as|in)\b|\bwritten(?: to)?: \S|^wrote \S{1,200}\.\w{2,5}$|\d tokens/s"
    r"|to see the gui go to|running on local url|\b\d{1,5} passed\b|all done"
)
_FAILED = re.compile(
    r"traceback \(most recent|\b\w{0,40}(?:error|exception)\b ?:|\bfatal\b|\bcore dumped\b|\bkilled\b|\baborted?\b"
    r"|\bcould not (?:locate|load|open|find)\b|segmentation fault|\bfailed\b|exit (?:code|status):? ?[1-9]"
    r"|\bexited with\b|^error \w+ing\b|\bnot compiled with\b"
)
# Traceback (most recent call last):
#   File "/content/Real-ESRGAN/inference_realesrgan_video.py", line 10, in <module>
_UNCAUGHT = re.compile(
    r"traceback \(most recent call last\):\nfile \"[^\n]{0,200}, in <module>\n(?:(?!traceback )[^\n]{0,400}\n){0,60}?"
    r"[\w.]{0,60}(?:error|exception)(?:: [^\n]*)?(?:\n|$)"
)
_PROMPT = re.compile(r"^(?:[$>%]|>>>|ps [a-z]:|[a-z]:\\[^\n]{0,80}>|\([\w.-]{1,30}\) ?\S{0,60}[$>])", re.MULTILINE)


def died_at(text: str) -> int:
    """Return where a text shows the end of a program that nothing was started after; -1 where it shows none.

    What is printed then is another program's, such as a script's that goes on regardless.
    """
    ends = [found.end() for found in _UNCAUGHT.finditer(text)]
    return ends[-1] if ends and not _PROMPT.search(text, ends[-1]) else -1


def ended_well(log: Log) -> bool:
    """Return whether a log ends like a run that did its work, without a failure after that."""
    lines = [line.strip() for line in log.text.split("\n")[: len(log.lines)] if line.strip()][-LAST:]
    if "exception during processing" in log.text or died_at(log.text) >= 0:  # "Prompt executed" says ComfyUI even then
        return False
    good = next((number for number, line in reversed([*enumerate(lines)]) if _ENDED_WELL.search(line)), None)
    return good is not None and not any(_FAILED.search(line) for line in lines[good:])
