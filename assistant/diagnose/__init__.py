"""From an error to its cause and a tested way out: rules as data, matched against a log and the facts of a machine."""

from __future__ import annotations

from assistant.diagnose.engine import Match, diagnose, nearest
from assistant.diagnose.facts import facts_in, merged
from assistant.diagnose.log import Log, read_log
from assistant.diagnose.rules import Rule, load_rules

__all__ = ["Log", "Match", "Rule", "diagnose", "facts_in", "load_rules", "merged", "nearest", "read_log"]
