"""What a guided setup knows, as one value, and which view its page shows; `session/actions.py` says how it changes.

What is known of the environments on a machine is part of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Literal, TypeVar

from assistant.i18n import Message, Text, _, ngettext, sentences
from assistant.install import Difference, LastChange, Prepared
from assistant.model.errors import BadInput, Cancelled
from assistant.model.finding import Diagnosis, Finding, Interpreter, Remedy, Severity
from assistant.model.machine import Detection
from assistant.model.plan import Backend, Plan, Planning, ProjectSummary, Request
from assistant.model.record import Record, replace
from assistant.model.report import Environment, Level, Progress, Report, Status, Step
from assistant.verify import Picture


class Light(Enum):
    """How good an environment is, by the worst of its findings; unknown where it could not be looked at."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    UNKNOWN = "unknown"

    @property
    def word(self) -> Message:
        """The light's meaning in words, such as "good"."""
        return _WORDS[self]


_WORDS = {
    Light.GOOD: _("good"),
    Light.WARNING: _("could be better"),
    Light.BAD: _("broken"),
    Light.UNKNOWN: _("unknown"),
}


class EnvironmentSummary(Record, frozen=True):
    """One environment: where and what it is, what it holds, what is wrong with it.

    `kind` and `of` tell what keeps it: "venv" or "conda", a "project" of uv or pixi, a Jupyter "kernel", an
    "application". `made` is set if the assistant made it, `own` if the assistant runs in it, `others` if this user may
    not change it.
    `checked` is when its Python was asked, "" where only files were read, and `stamp` tells whether anything was
    installed since; `size` in bytes, None until then; `device` is the one on which torch was seen to compute, and
    `keeps` the pins that later installations go by.
    """

    path: str
    name: str
    kind: str = "venv"
    of: str = ""
    python: str = ""
    torch: str = ""
    backend: Backend | None = None
    findings: tuple[Finding, ...] = ()
    kernels: tuple[str, ...] = ()
    made: bool = False
    own: bool = False
    others: bool = False
    unread: bool = False
    checked: str = ""
    stamp: tuple[int, ...] = ()
    size: int | None = None
    device: str = ""
    undo: LastChange | None = None
    keeps: tuple[str, ...] = ()

    @property
    def light(self) -> Light:
        """How good it is."""
        if self.unread:
            return Light.UNKNOWN
        found = {finding.severity for finding in self.findings}
        return Light.BAD if Severity.ERROR in found else Light.WARNING if Severity.WARNING in found else Light.GOOD

    @property
    def keeper(self) -> Text:
        """What it is, or what keeps it."""
        if self.own:
            return _("the assistant's own")
        if self.others:
            return _("another user looks after it")
        if self.made:
            return _("made by the assistant")
        kinds = {
            "kernel": _("Jupyter kernel"),
            "venv": _("virtual environment"),
            "conda": _("conda environment"),
            "project": _("{tool} project", tool=self.of),
            "application": Message("{tool}").format(tool=self.of),
        }
        return kinds[self.kind]

    @property
    def build(self) -> Text:
        """Its PyTorch, with what that is built for, such as "2.13.0, CPU"."""
        if not self.torch:
            return _("none")
        public = self.torch.partition("+")[0]
        return f"{public}, {self.backend.title}" if self.backend else self.torch

    @property
    def state(self) -> Text:
        """The worst that is wrong with it and how many problems there are beside it, or that nothing is.

        Of the assistant's own environment, and of one that could not be read, that is said instead.
        """
        order = list(Severity)
        findings = sorted(self.findings, key=lambda finding: -order.index(finding.severity))
        wrong = [finding for finding in findings if finding.wrong]
        if self.own:
            return _("The assistant runs in this environment and looks after it by itself.")
        if self.unread:
            return _("It could not be read.")
        if not wrong:
            works = _("Works: PyTorch computes on the device {device}.", device=self.device)
            return works if self.device else _("No problems found in its packages.")
        more = len(wrong) - 1
        rest = ngettext("There is {count} more problem.", "There are {count} more problems.", more) if more else ""
        return sentences((wrong[0].text, rest))


class Survey(Record, frozen=True):
    """The environments that were found, in `folders` that the user named and in the usual places.

    `cut_short` is set where the search ended before it had been everywhere; `notes` are what the last change reported.
    """

    environments: tuple[EnvironmentSummary, ...] = ()
    folders: tuple[str, ...] = ()
    cut_short: bool = False
    notes: tuple[Finding, ...] = ()

    def summary_at(self, path: str) -> EnvironmentSummary | None:
        """Return the environment at a path; None where none was found there."""
        return next((row for row in self.environments if row.path == path), None)

    def with_summary(self, summary: EnvironmentSummary) -> Survey:
        """Return the survey with one environment's summary replaced, or added at the end."""
        every = {**{row.path: row for row in self.environments}, summary.path: summary}
        return replace(self, environments=tuple(every.values()))


class Repair(Record, frozen=True):
    """A change that would mend an environment: what moves, what is mended by it, and what it leaves as it is."""

    path: str
    difference: Difference
    mends: tuple[Finding, ...] = ()
    remains: tuple[Finding, ...] = ()


def megabytes(size: int) -> float:
    """Return bytes in MB for people; any amount above nothing is at least 0.1."""
    return max(size / 1e6, 0.1) if size else 0.0


def undo_notice(change: LastChange) -> Message:
    """Return a sentence on what undoing a change takes: a folder that is kept, or fetching the old versions."""
    if change.is_replacement:
        return _("The environment as it was is kept beside it until the next change, or until you delete it.")
    return _("For that, uv fetches the old versions again.")


class Phase(Enum):
    """Where a step stands; a stale result is kept but must be confirmed again, because an earlier answer changed."""

    LOCKED = "locked"
    READY = "ready"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STALE = "stale"


class Page(Enum):
    """What the guided setup shows: the setup itself, saving it, what stands on this machine, and what is wrong."""

    SETUP = "setup"
    EXPORT = "export"
    ENVIRONMENTS = "environments"
    WRONG = "wrong"


class Task(Enum):
    """The jobs of a setup; `prepare` and `add` belong to the install step, `mend` and `addon` to diagnose.

    `prepare` only reads; `add` first works out what it would change, and does it when it is begun again; `addon` is the
    task of the add-on that was supplied with something last.
    Those from `survey` on are about the environments that stand on this machine, and belong to no step of the setup.
    """

    DETECT = "detect"
    PLAN = "plan"
    PREPARE = "prepare"
    INSTALL = "install"
    VERIFY = "verify"
    DIAGNOSE = "diagnose"
    MEND = "mend"
    EXPORT = "export"
    ADDON = "addon"
    ADD = "add"
    SURVEY = "survey"
    CHECK = "check"
    COMPARE = "compare"
    REPAIR = "repair"
    UNDO = "undo"
    FORGET = "forget"
    REMOVE = "remove"
    KEEP = "keep"

    @property
    def step(self) -> Step:
        """Name the step that shows this task."""
        if self in {Task.PREPARE, Task.ADD}:
            return Step.INSTALL
        others = self.is_about_environments or self in {Task.MEND, Task.ADDON}
        return Step.DIAGNOSE if others else Step(self.value)

    @property
    def is_about_environments(self) -> bool:
        """Whether the task is about environments that stand, whatever the setup is at."""
        about = {Task.SURVEY, Task.CHECK, Task.COMPARE, Task.REPAIR, Task.UNDO, Task.FORGET, Task.REMOVE}
        return self in about | {Task.KEEP}

    @property
    def page(self) -> Page | None:
        """Name the page on which this task is followed; None where it goes on behind any page."""
        if self in {Task.DIAGNOSE, Task.MEND, Task.ADDON}:
            return Page.WRONG
        if self.is_about_environments and self not in {Task.SURVEY, Task.KEEP}:
            return Page.ENVIRONMENTS
        return {Task.INSTALL: Page.SETUP, Task.EXPORT: Page.EXPORT}.get(self)

    @property
    def only_reads(self) -> bool:
        """Whether the task is over as soon as its result is no longer wanted, since it changes nothing."""
        return self in {Task.DETECT, Task.PLAN, Task.PREPARE, Task.SURVEY, Task.CHECK, Task.COMPARE}


class Outcome(Enum):
    """How applying a remedy ended, by its check; `done` where it has none that can be run."""

    FIXED = "fixed"
    NOT_FIXED = "not-fixed"
    DONE = "done"


class StepStatus(Record, frozen=True):
    """One step's phase, its latest progress, and why it failed; `unreachable` is where no package index answered."""

    phase: Phase = Phase.LOCKED
    progress: Progress | None = None
    message: Text = ""
    hint: Text = ""
    exit_code: int = 0
    unreachable: str = ""
    seconds: float = 0.0


WHOLE = 100_000  # characters kept with the setup; chosen: a page shows that many at once without a pause


class Pasted(Record, frozen=True):
    """A log that the user gave: all of its `text`, or, of a long one, its beginning and its `tail`.

    `size` in bytes and `lines` are those of a long one, whose whole text lies in the private file `path`; `name` is
    that of the file which it came from. `whose` is what the user says of its computer: "same", "other" or nothing.
    """

    text: str = ""
    tail: str = ""
    size: int = 0
    lines: int = 0
    name: str = ""
    path: str = ""
    whose: Literal["", "same", "other"] = ""


class Place(Record, frozen=True):
    """Where a log shows a cause: the number of the line, and that line with its neighbours by their numbers."""

    line: int
    lines: tuple[tuple[int, str], ...] = ()


class Source(Record, frozen=True):
    """What a log comes from: `program` with its arguments, the Python that it runs in, its system and its GPU.

    `os` is the system as a machine names it, `system` as people do. `best` is the backend that would be planned there;
    `elsewhere` is set for another computer than the one at hand. `facts` is what the log states of its computer.
    """

    program: str = ""
    arguments: tuple[str, ...] = ()
    interpreter: Interpreter = Interpreter()
    os: str | None = None
    system: str = ""
    gpu: str = ""
    best: Backend | None = None
    elsewhere: bool = False
    facts: str = ""


class Detected(Record, frozen=True):
    """What detection found, and the interpreters by their roles."""

    detection: Detection
    pythons: dict[str, str] = {}


class Planned(Record, frozen=True):
    """The plans, best first, and the project that they are for."""

    planning: Planning
    project: ProjectSummary | None = None


class Installed(Record, frozen=True):
    """The environment that was made, and what its installation verified; None where it was there already.

    `keeps` are the pins by which pip and uv keep its build; None where nobody has looked.
    """

    environment: Environment
    proof: Report | None = None
    keeps: tuple[str, ...] | None = None


class Verified(Record, frozen=True):
    """What the checks found when they ran by themselves."""

    report: Report


class Drawn(Record, frozen=True):
    """The picture that the environment at `path` computed; None while it does so, and if it cannot."""

    path: str
    picture: Picture | None = None


class Unexplained(Record, frozen=True):
    """What can be said of a text whose cause is not known.

    These are its symptoms, what to do or to find out next, and without that the causes that are `possible`: those that
    it is most like, the likest first.
    """

    symptoms: tuple[Finding, ...] = ()
    question: Remedy | None = None
    possible: tuple[Diagnosis, ...] = ()


class Diagnosed(Record, frozen=True):
    """The causes of what was pasted or failed; the fields of `State` of the same names tell more."""

    findings: tuple[Finding, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    places: tuple[Place | None, ...] = ()
    explained: Pasted = Pasted()
    source: Source = Source()
    unexplained: Unexplained = Unexplained()
    markdown: str = ""


class Mended(Record, frozen=True):
    """How applying the chosen remedy, whose `text` it bears, ended.

    `raised` is what is wrong with the setup's environment now; None where another one was changed. `summary` is what
    the list of environments says of it from now on, None where there is no list.
    """

    way: str
    outcome: Outcome
    text: Text = ""
    raised: tuple[Finding, ...] | None = None
    summary: EnvironmentSummary | None = None


class Exported(Record, frozen=True):
    """The files that were written."""

    files: tuple[str, ...] = ()


class Extra(Record, frozen=True):
    """What an add-on keeps while the setup is open: its own record as `value`, and how far its task is."""

    value: Any = None
    status: StepStatus = StepStatus()


class Adding(Record, frozen=True):
    """Packages to be added to the environment: `prepared` says what would change, `installed` what is there then."""

    requirements: tuple[str, ...]
    prepared: Prepared | None = None
    installed: Installed | None = None
    status: StepStatus = StepStatus()

    @property
    def changed(self) -> bool:
        """Whether the environment was changed: it is done, and not all was there already."""
        return self.installed is not None and self.prepared is not None and self.prepared.ready is None


class Surveyed(Record, frozen=True):
    """The environments as they are known now, and the change that is offered for one of them."""

    survey: Survey
    repair: Repair | None = None


StepResult = Detected | Planned | Prepared | Installed | Verified | Diagnosed | Mended | Exported | Extra | Adding
Result = StepResult | Surveyed


class Choices(Record, frozen=True):
    """What the user has set for each step; "" leaves a folder or a device to the plan.

    `overrides` are facts of the machine set by hand, and `plan` is the place of the plan that was chosen. `keep` lets
    an installation stand whose verification failed, and `overwrite` lets the next export replace others' files.
    """

    overrides: dict[str, str] = {}
    request: Request = Request()
    plan: int = 0
    target: str = ""
    keep: bool = False
    device: str = ""
    level: Level = "quick"
    folder: str = ""
    formats: tuple[str, ...] = ()
    purpose: str = ""
    overwrite: bool = False


class Environments(Record, frozen=True):
    """The environments that are on this machine, and how far the task about them is, or how it ended.

    `picked` is the path of the one that is looked into, `repair` the change that is offered for it.
    """

    survey: Survey | None = None
    picked: str = ""
    repair: Repair | None = None
    status: StepStatus = StepStatus()


def finding_identity(finding: Finding) -> tuple[str, str]:
    """Return a finding's key and text, by which it counts as equal to another."""
    return finding.key, str(finding.text)


def unique(*groups: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings of several groups, one for each key and text: in the first's place, the last one."""
    return tuple({finding_identity(finding): finding for group in groups for finding in group}.values())


class State(Record, frozen=True):
    """Everything that a setup knows: what was chosen, what each step has found, and what is going on.

    `machine` names a recorded machine that is looked at ("" is the machine at hand), and `aside` is the real setup
    meanwhile. `stopping` is set from a request to stop until the task has taken back what it began; `question` waits
    for the user's answer. `log_file` keeps every line of the `log`. `raised` is what is wrong with the setup's
    environment, and `reported` what the running task has found so far.

    `pasted` is a log that the user gave to be diagnosed, and `edited` says that the page holds another one that was not
    sent yet. `way` names the remedy that was chosen, by the cause's key and its number as in "oom#1"; `mended` says how
    applying those that were chosen ended, by their names. `failed_cell` is set where the user asks about a notebook's
    cell: `pasted` is then what it printed, and the environment that of its kernel. `drawn` is what the environment was
    asked to draw last.

    `adding` are packages that the user wants beside those of the plan. `extras` are what add-ons keep here, each by its
    own name, and `addon` is the one whose task runs or ran last; no step rests on them.
    """

    schema: Literal[1] = 1
    page: Page = Page.SETUP
    statuses: dict[Step, StepStatus] = {}
    running: Task | None = None
    stopping: bool = False
    question: Text = ""
    log: tuple[Text, ...] = ()
    log_file: str = ""
    machine: str = ""
    aside: State | None = None
    choices: Choices = Choices()
    detected: Detected | None = None
    planned: Planned | None = None
    preview: Prepared | None = None
    installed: Installed | None = None
    verified: Verified | None = None
    drawn: Drawn | None = None
    diagnosed: Diagnosed = Diagnosed()
    exported: Exported = Exported()
    raised: tuple[Finding, ...] = ()
    reported: tuple[Finding, ...] = ()
    pasted: Pasted = Pasted()
    edited: bool = False
    way: str = ""
    mended: dict[str, Mended] = {}
    failed_cell: bool = False
    adding: Adding | None = None
    environments: Environments = Environments()
    addon: str = ""
    extras: dict[str, Extra] = {}

    @property
    def detection(self) -> Detection | None:
        """What was found of the machine."""
        return self.detected.detection if self.detected else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is worth knowing of the machine and of the setup's environment; nothing is said twice."""
        return unique(self.detection.findings if self.detection else (), self.raised, self.reported)

    @property
    def planning(self) -> Planning | None:
        """The plans for the machine."""
        return self.planned.planning if self.planned else None

    @property
    def survey(self) -> Survey:
        """The environments on this machine, as far as anybody has looked for them."""
        return self.environments.survey or Survey()

    @property
    def environment(self) -> Environment | None:
        """The environment that was made."""
        return self.installed.environment if self.installed else None

    @property
    def is_kept(self) -> bool | None:
        """Whether pip and uv keep the build of the environment that was made; None while that is not known."""
        row = self.survey.summary_at(self.environment.path) if self.environment else None
        keeps = row.keeps if row and not row.unread else self.installed.keeps if self.installed else None
        return None if keeps is None else bool(keeps)

    @property
    def report(self) -> Report | None:
        """What the checks of the environment found: by themselves, else those of its installation."""
        proof = self.installed.proof if self.installed else None
        return self.verified.report if self.verified else proof

    def with_choices(self, **changed: Any) -> State:  # noqa: ANN401 - fields of `Choices`
        """Return the state with other choices of the user's."""
        return replace(self, choices=replace(self.choices, **changed))

    def with_environments(self, **changed: Any) -> State:  # noqa: ANN401 - fields of `Environments`
        """Return the state with something else known of the environments on this machine."""
        return replace(self, environments=replace(self.environments, **changed))

    def with_extra(self, extra: Extra) -> State:
        """Return the state with what the add-on that is at work has come to."""
        return replace(self, extras={**self.extras, self.addon: extra})

    def with_status(self, of: Task | Step, status: StepStatus) -> State:
        """Return the state with another status of a step or a task; a few tasks have one beside that of their step."""
        if isinstance(of, Step):
            return replace(self, statuses={**self.statuses, of: status})
        if of.is_about_environments:
            return self.with_environments(status=status)
        if of is Task.ADDON:
            return self.with_extra(replace(self.extras[self.addon], status=status))
        if of is Task.ADD and self.adding:
            return replace(self, adding=replace(self.adding, status=status))
        return self.with_status(of.step, status)

    def status_of(self, task: Task) -> StepStatus:
        """Return how far a task is, or how it ended."""
        if task.is_about_environments:
            return self.environments.status
        if task is Task.ADDON:
            return self.extras[self.addon].status
        return self.adding.status if task is Task.ADD and self.adding else self.status(task.step)

    @property
    def progress(self) -> Progress | None:
        """How far the running task is; None while it has said nothing, and where nothing runs."""
        return self.status_of(self.running).progress if self.running else None

    def status(self, step: Step) -> StepStatus:
        """Give a step's status; the first is ready from the start, any other that was never reached is locked."""
        return self.statuses.get(step, StepStatus(phase=Phase.READY if step is Step.DETECT else Phase.LOCKED))

    @property
    def plan(self) -> Plan | None:
        """The plan that the user chose, the first one unless said otherwise."""
        plans = self.planning.plans if self.planning else ()
        return plans[self.choices.plan] if 0 <= self.choices.plan < len(plans) else None

    @property
    def held(self) -> bool:
        """Whether a task runs that does more than read, so that nothing can be chosen until it is over."""
        return bool(self.running and not self.running.only_reads)

    @property
    def failures(self) -> list[Text]:
        """What there is to diagnose: messages of failed steps with, if any, the log; then details of failed checks."""
        steps = {step: status for step, status in self.statuses.items() if step is not Step.DIAGNOSE}
        messages = [status.message for status in steps.values() if status.phase is Phase.FAILED]
        checks = self.report.checks if self.report else ()
        details = [check.detail for check in checks if check.status not in {Status.PASSED, Status.SKIPPED}]
        return [*messages, *(self.log if messages else ()), *details]


T = TypeVar("T")


def required(value: T | None) -> T:
    """Return a value that `blockers` has made sure of; raise `BadInput` where an earlier step has no result."""
    if value is None:
        raise BadInput(_("An earlier step has no result yet."), hint=_("Go back and run that step first."))
    return value


class Stage(Enum):
    """The five views of the setup's page."""

    LOOKING = "looking"
    READY = "ready"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"


def find_stage(state: State) -> Stage:
    """Return which view the setup's page shows; a plan whose packages could not be resolved still counts as ready."""
    if state.running in {Task.INSTALL, Task.VERIFY}:
        return Stage.WORKING
    if failed_step(state) and not is_unresolved(state):
        return Stage.FAILED
    if state.status(Step.INSTALL).phase is Phase.DONE and state.report:
        return Stage.DONE
    return Stage.LOOKING if state.plan is None or state.detection is None else Stage.READY


def failed_step(state: State) -> Step | None:
    """Return the first that failed of detecting, planning, installing and verifying; None if none of them did."""
    steps = (Step.DETECT, Step.PLAN, Step.INSTALL, Step.VERIFY)
    return next((step for step in steps if state.status(step).phase is Phase.FAILED), None)


def has_no_plan(state: State) -> bool:
    """Return whether planning failed, so that no setup is possible unless something else is chosen."""
    return failed_step(state) is Step.PLAN


def is_unresolved(state: State) -> bool:
    """Return whether the packages of the plan could not be worked out, before anybody asked to install them."""
    return failed_step(state) is Step.INSTALL and state.preview is None


def is_cancelled(state: State) -> bool:
    """Return whether the step that failed did so because the user stopped it."""
    step = failed_step(state)
    return step is not None and state.status(step).exit_code == Cancelled.exit_code


def task_to_repeat(state: State) -> Task:
    """Return the task of the step that failed: resolving, if installing could not begin; detecting, if none failed."""
    return Task.PREPARE if is_unresolved(state) else Task((failed_step(state) or Step.DETECT).value)
