"""From an error to its cause and a tested remedy: rules as data, matched against a log and the facts of a machine."""

from assistant.diagnose.builds import supposed_cuda
from assistant.diagnose.engine import diagnose, matches, merged
from assistant.diagnose.environments import UV_OPTIONS, interpreter_of, with_interpreter
from assistant.diagnose.hints import next_step
from assistant.diagnose.log import Log, read_log
from assistant.diagnose.remedies import find_launch, remedies_for
from assistant.diagnose.rules import PlanRequest, RuleRemedy, load_rules
