"""From an error to its cause and a tested remedy: rules as data, matched against a log and the facts of a machine."""

from __future__ import annotations

from assistant.diagnose.builds import supposed_cuda
from assistant.diagnose.engine import as_remedy, diagnose, matches, merged, next_step, remedies_for
from assistant.diagnose.environments import UV_OPTIONS, interpreter_of, matches_near_line, with_interpreter
from assistant.diagnose.log import Log, read_log
from assistant.diagnose.remedies import corrected_launches, find_launch
from assistant.diagnose.rules import PlanRequest, RuleRemedy, check_packages, check_up, load_rules, variables
from assistant.diagnose.words import is_for_another, symptoms
