"""From an error to its cause and a tested remedy: rules as data, matched against a log and the facts of a machine."""

from __future__ import annotations

from assistant.diagnose.engine import Match, as_remedy, diagnose, matches, merged, question, remedies_for
from assistant.diagnose.health import check_packages, check_up, variables
from assistant.diagnose.interpreters import UV_OPTIONS, Interpreter, interpreter_of, near, placed
from assistant.diagnose.kits import supposed_cuda
from assistant.diagnose.launch import launched, relaunched
from assistant.diagnose.log import Log, read_log
from assistant.diagnose.own_rules import lacking, new_rules
from assistant.diagnose.rules import PlanRequest, Rule, RuleFile, RuleRemedy, load_rules, rules_folder, use_rules
from assistant.diagnose.symptoms import symptoms

__all__ = [
    "UV_OPTIONS",
    "Interpreter",
    "Log",
    "Match",
    "PlanRequest",
    "Rule",
    "RuleFile",
    "RuleRemedy",
    "as_remedy",
    "check_packages",
    "check_up",
    "diagnose",
    "interpreter_of",
    "lacking",
    "launched",
    "load_rules",
    "matches",
    "merged",
    "near",
    "new_rules",
    "placed",
    "question",
    "read_log",
    "relaunched",
    "remedies_for",
    "rules_folder",
    "supposed_cuda",
    "symptoms",
    "use_rules",
    "variables",
]
