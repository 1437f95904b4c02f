"""From an error to its cause and a tested way out: rules as data, matched against a log and the facts of a machine."""

from __future__ import annotations

from assistant.diagnose.engine import Match, diagnose, matches, nearest, remedy, ways_out
from assistant.diagnose.facts import merged
from assistant.diagnose.health import check_packages, check_up
from assistant.diagnose.launch import relaunched
from assistant.diagnose.log import Log, read_log
from assistant.diagnose.rules import Rule, Way, Wish, load_rules

__all__ = [
    "Log",
    "Match",
    "Rule",
    "Way",
    "Wish",
    "check_packages",
    "check_up",
    "diagnose",
    "load_rules",
    "matches",
    "merged",
    "nearest",
    "read_log",
    "relaunched",
    "remedy",
    "ways_out",
]
