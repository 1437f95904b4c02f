"""What is wrong, as HTML: the cause said of the user's machine, where it shows, what helps, and what was looked at."""

from __future__ import annotations

import re
from collections.abc import Iterable

from assistant.diagnose import with_interpreter
from assistant.host.files import is_own_environment
from assistant.i18n import Text, as_typed, ngettext, render, say, sentences
from assistant.model.finding import Diagnosis, Finding, Interpreter, Launch, Remedy, Severity
from assistant.model.report import Status, Step, check_title, verdict
from assistant.model.shell import command_line, quote, settings, shell_of
from assistant.model.visible import Markup, joined, tag, visible
from assistant.session.remediation import all_fixes, headline, help_for_first_cause, is_diagnosis_current
from assistant.session.state import Outcome, Phase, Place, State
from assistant.views import plan_title
from assistant.wizard import html
from assistant.wizard.panels.base import failure
from assistant.wizard.panels.choice import draw_card

CAUSES = 3  # chosen, as in the terminal: how many causes of one log are shown, likeliest first


WHOSE, LOOK = "whose", "look"  # begin the keys of whose log it is, and of what the doctor's list offers

# Cell In[3], line 2      File "/home/ada/train.py", line 12, in <module>      as IPython and Python write a frame
FRAME = re.compile(r'[ \t]*(?:Cell In ?\[\d+\]|File "[^"]+"), line (\d+)')
# … and of what imports modules.
OF_LIBRARY = re.compile(r'"<(?:frozen |__)|[\\/](?:lib(?:64)?[\\/]python3[\d.]*t?|Lib|(?:site|dist)-packages)[\\/]')


def draw_title(state: State) -> Markup:
    """Return the heading: the likeliest cause of a log, or that its own code fails; before it is known, a question."""
    causes = state.diagnosed.diagnoses if is_diagnosis_current(state) else ()
    if _is_own_mistake(state):
        line = _own_line(state.pasted.text)
        where = say("The code itself fails, in line {line}", line=line) if line else say("The code itself fails")
        return tag("div", html.heading(where), class_="ptsa-cause")
    if not causes:
        return html.heading(say("Is anything wrong?"))
    doubt = html.NOTHING if causes[0].sure else html.lead_line(say("It may be this:"))
    title = html.heading(headline(causes[0], state.diagnosed.source))
    return tag("div", _draw_facts(state), doubt, title, class_="ptsa-cause")


def _is_own_mistake(state: State) -> bool:
    """Return whether what was examined failed by a mistake in the user's own code, which nobody else can mend."""
    return is_diagnosis_current(state) and any(
        one.key.startswith("own-") for one in state.diagnosed.unexplained.symptoms
    )


def _own_line(text: str) -> str:
    """Return the number of the line at which the user's own code fails, "" if its traceback has no such frame."""
    frames = [FRAME.match(line) for line in text.splitlines() if not OF_LIBRARY.search(line)]
    return next((frame[1] for frame in reversed(frames) if frame), "")


def draw_aside(state: State) -> Markup:
    """Return what stands beside the answer: the log's line that shows the cause, and whose it is; else the machine."""
    causes = state.diagnosed.diagnoses if is_diagnosis_current(state) else ()
    if not (causes and state.pasted.text):
        return draw_card(state)
    place = state.diagnosed.places[0] if state.diagnosed.places else None
    seen = html.lead_line(say("Found in line {line}.", line=f"{place.line:,}")) if place else html.NOTHING
    return tag(
        "section", seen, _draw_place(place) if place else "", _draw_whose(state), class_="ptsa-card ptsa-log-card"
    )


def _draw_whose(state: State) -> Markup:
    """Return cards that say whose log it is, by which the answer goes, and by which that can be changed."""
    source = state.diagnosed.source
    if state.failed_cell or state.detection is None:
        return html.NOTHING
    here = ", ".join(gpu.label for gpu in state.detection.machine.gpus) or say("no GPU")
    there = ", ".join(filter(None, (source.gpu, source.system))) if source.elsewhere else ""
    options = [
        html.Tile(f"{WHOSE}:same", say("This computer's"), here, "chip"),
        html.Tile(f"{WHOSE}:other", say("Somebody else's"), there or say("only what the log says counts"), "person"),
    ]
    chosen = "other" if source.elsewhere else "same"
    return html.tiles(say("Whose log is it?"), options, f"{WHOSE}:{chosen}")


def draw_looked_at(state: State) -> Markup:
    """Return what was looked at already: the machine, the plan and the environment, each with a light and a button."""
    wrong = [finding for finding in state.findings if finding.wrong]
    rows = [
        _machine_row(state, wrong),
        (
            "good" if state.plan else "unknown",
            say("A PyTorch for it"),
            plan_title(state.plan) if state.plan else say("not chosen yet"),
            html.button(say("See the plan"), f"{LOOK}:plan"),
        ),
        _environment_row(state),
    ]
    items = [
        tag("li", html.light(light, ""), tag("span", tag("strong", title), " ", words), button)
        for light, title, words, button in rows
    ]
    return tag("ul", *items, class_="ptsa-doctor")


Row = tuple[str, str, Text, Markup]


def _machine_row(state: State, wrong: list[Finding]) -> Row:
    """Return the row of the machine: how many problems there are, which stand below, or that there is none.

    If nothing has been detected yet, it says so.
    """
    again = html.button(say("Look again"), f"{LOOK}:machine")
    if state.detection is None:
        return "unknown", say("This computer"), say("not looked at yet"), again
    if not wrong:
        return "good", say("This computer"), say("the hardware and the drivers are in order"), again
    grave = any(finding.severity is Severity.ERROR for finding in wrong)
    count = ngettext("{count} problem, see below", "{count} problems, see below", len(wrong))
    return "bad" if grave else "warning", say("This computer"), count, again


def _environment_row(state: State) -> Row:
    """Return the row of the setup's environment: what its checks found, or that there is none."""
    others = html.button(say("See all"), f"{LOOK}:environment")
    report = state.report if state.environment else None
    if report is None:
        words = say("not checked yet") if state.environment else say("none was set up here")
        return "unknown", say("Your environment"), words, others
    return "good" if report.usable else "bad", say("Your environment"), verdict(report), others


def draw_causes(state: State) -> Markup:
    """Return how applied fixes ended, the likeliest cause with its first fix, up to two others, and other problems.

    Without a cause it is what failed here, or that no known problem matches; if the text was
    changed since it was examined, that a press examines it. Before any text it is what was looked at.
    """
    causes = state.diagnosed.diagnoses if is_diagnosis_current(state) else ()
    keys = {cause.key for cause in causes}
    wrong = [finding for finding in state.findings if finding.wrong and finding.key not in keys]
    notes = joined(
        html.note(
            finding.severity,
            finding.text,
            joined(draw_remedy(fix, f"{finding.key}#{n}", state) for n, fix in enumerate(finding.remedies, 1)),
        )
        for finding in wrong
    )
    also = render(
        ngettext("Another problem on this computer ({count})", "Other problems on this computer ({count})", len(wrong))
    )
    outdated = bool(state.edited or state.diagnosed.explained != state.pasted)
    failed = html.NOTHING if causes or outdated else _draw_failures(state)
    unknown = not causes and not outdated and state.pasted.text and state.diagnosed.markdown
    parts = [
        html.NOTHING if causes or state.pasted.text or state.failed_cell else draw_looked_at(state),
        failure(state, Step.DIAGNOSE),
        _draw_own(state),
        _draw_tried(state),
        html.lead_line(say("Press “Find the cause” to have this text examined."))
        if outdated and state.running is None
        else html.NOTHING,
        _draw_answer(causes[0], state) if causes else html.NOTHING,
        _draw_others(causes[1:CAUSES], state),
        _draw_unknown(state) if unknown else html.NOTHING,
        failed,
        html.details(also, notes) if causes or state.pasted.text else notes,
    ]
    return joined(parts)


def _draw_own(state: State) -> Markup:
    """Return the advice to make another environment if a failed cell ran in the assistant's own; else nothing."""
    made = state.environment
    if not (made and state.failed_cell and is_own_environment(made.path)) or _is_own_mistake(state):
        return html.NOTHING
    text = say("This notebook runs in the assistant's own environment, which the next update replaces.")
    then = say("Under “The setup” you can make one of your own; then choose its kernel for the notebook.")
    return html.note(Severity.INFO, sentences((text, then)))


def _draw_answer(cause: Diagnosis, state: State) -> Markup:
    """Return why the likeliest cause is so, and as numbered steps the first fix, what to start with, and to try again.

    How sure that is, and the report to copy, come below.
    """
    place = state.diagnosed.places[0] if state.diagnosed.places else None
    shown = help_for_first_cause(state)
    seen = html.NOTHING
    if place and not state.pasted.text:
        seen = html.lead_line(say("Found in the output of the step that failed.")) + _draw_place(place)
    steps = [draw_remedy(all_fixes(state)[shown.first].remedy, shown.first, state)] if shown.first else []
    steps += [_draw_launch(launch, state.diagnosed.source.arguments) for launch in shown.launches]
    last = (
        say("Run the cell again. If an error is left, ask again.")
        if state.failed_cell
        else say("Start the program again. If an error is left, paste the new output here.")
    )
    listed = tag("ol", *(tag("li", step) for step in (*steps, last)), class_="ptsa-steps") if steps else html.NOTHING
    body = [
        seen,
        html.paragraph(cause.cause),
        tag("section", tag("h3", say("What helps")), listed, class_="ptsa-fix") if listed else "",
        html.NOTHING if cause.sure else _draw_question(state),
        _draw_evidence(cause),
        _draw_report(state),
    ]
    return tag("section", *body, class_="ptsa-answer")


def _draw_facts(state: State) -> Markup:
    """Return a line with what a pasted log states of its computer; nothing if it states nothing."""
    facts = state.diagnosed.source.facts if state.pasted.text else ""
    return html.lead_line(say("Read in this text: {facts}", facts=visible(facts))) if facts else html.NOTHING


def _draw_place(place: Place) -> Markup:
    """Return the line of the log, marked, with its neighbours and their numbers; nothing if none were kept."""
    width = len(str(place.lines[-1][0])) if place.lines else 1
    lines = [
        tag("mark" if number == place.line else "span", f"{number:>{width}}  {visible(text)}") + "\n"
        for number, text in place.lines
    ]
    return tag("pre", *lines, class_="ptsa-code ptsa-place", tabindex=0) if lines else html.NOTHING


def _draw_evidence(cause: Diagnosis) -> Markup:
    """Return a fold with how sure the answer is, on what it rests, and links to its sources."""
    text = (
        say("Lines like these are typical of this cause.")
        if cause.sure
        else say("This is a likely cause, but lines like these can have other causes, too.")
    )
    evidence = html.code("\n".join(map(render, cause.evidence))) if cause.evidence else html.NOTHING
    sources = [tag("a", source, href=source, target="_blank", rel="noreferrer") for source in cause.sources]
    summary = say("How sure is this? {percent} %", percent=f"{100 * cause.confidence:.0f}")
    return html.details(summary, joined([html.paragraph(text), evidence, html.bullets(sources)]))


def _draw_report(state: State) -> Markup:
    """Return a button that copies the report, and a fold that shows it; nothing if there is none."""
    report = state.diagnosed.markdown
    if not report:
        return html.NOTHING
    held = html.details(say("What is copied: a report without private information"), html.code(report))
    return tag("div", html.copy_button(report, say("Copy the report")), held, class_="ptsa-report")


def _draw_others(causes: Iterable[Diagnosis], state: State) -> Markup:
    """Return a fold with these causes, each with all of its fixes; nothing if there are none."""
    found = list(causes)
    text = ngettext("Another possible cause ({count})", "Other possible causes ({count})", len(found))
    return html.details(render(text), _draw_each(found, state)) if found else html.NOTHING


def _draw_each(causes: Iterable[Diagnosis], state: State) -> Markup:
    """Return a note for each cause, with all of its fixes."""
    return joined(
        html.note(
            Severity.INFO,
            cause.title,
            html.paragraph(cause.cause)
            + joined(draw_remedy(fix, f"{cause.key}#{number}", state) for number, fix in enumerate(cause.remedies, 1)),
        )
        for cause in causes
    )


def _draw_question(state: State) -> Markup:
    """Return what to find out next about the text; nothing if nothing is left to ask."""
    question = state.diagnosed.unexplained.question
    return draw_remedy(question, "question", state) if question else html.NOTHING


def _draw_unknown(state: State) -> Markup:
    """Return a note that no known problem matches this log, with what it tells, what to do or try, and the report."""
    answer = state.diagnosed.unexplained
    text = (
        say("Nothing in this text shows its cause for certain.")
        if answer.possible
        else say("No known problem matches this text. That does not mean that nothing is wrong.")
    )
    if _is_own_mistake(state):
        *_before, error = state.pasted.text.strip().splitlines()
        number = _own_line(state.pasted.text)
        lines = [line for line in state.pasted.text.splitlines() if number and re.match(rf"-+> ?{number}\b", line)]
        return html.code("\n".join((*lines[-1:], error))) + html.bullets(one.text for one in answer.symptoms)
    symptoms = (
        html.paragraph(say("What it tells:")) + html.bullets(one.text for one in answer.symptoms)
        if answer.symptoms
        else html.NOTHING
    )
    guesses = (
        html.paragraph(say("It resembles these causes most. They are guesses; start with the first:"))
        + _draw_each(answer.possible, state)
        if answer.possible
        else html.NOTHING
    )
    asked = html.paragraph(
        say("The program's authors can help: copy the report, and open an issue with it in their project.")
    )
    return html.note(
        Severity.INFO,
        text,
        joined([_draw_facts(state), symptoms, _draw_question(state), guesses, asked, _draw_report(state)]),
    )


def _draw_failures(state: State) -> Markup:
    """Return the messages of failed steps, and the checks that went wrong; nothing if a log was given."""
    if state.pasted.text:
        return html.NOTHING
    steps = (step for step in Step if step is not Step.DIAGNOSE and state.status(step).phase is Phase.FAILED)
    bad = [check for check in (state.report.wrong if state.report else ()) if check.status is not Status.UNSUPPORTED]
    checked = (html.note(Severity.ERROR, check_title(check.key), _draw_detail(check.detail)) for check in bad)
    return joined([*(failure(state, step) for step in steps), *checked])


def _draw_detail(detail: Text) -> Markup:
    """Return the first line of what a check printed; the rest, such as the frames of a stack, is folded away."""
    first, _newline, rest = visible(render(detail)).partition("\n")
    return html.paragraph(first) + (html.details(say("What it printed"), html.code(rest)) if rest else html.NOTHING)


def _draw_tried(state: State) -> Markup:
    """Return how each fix that was applied ended; for a failed cell also that its kernel has to be restarted."""
    words = {
        Outcome.FIXED: (Severity.OK, say("Mended, and its check passed: {way}")),
        Outcome.NOT_FIXED: (Severity.WARNING, say("Applied, but the problem remains: {way}")),
        Outcome.DONE: (Severity.INFO, say("Applied; whether it helped cannot be checked here: {way}")),
    }
    done = ((*words[done.outcome], done.text) for done in state.mended.values())
    notes = joined(html.note(severity, text.format(way=render(way))) for severity, text, way in done)
    again = say("Restart the kernel of the notebook, then run the cell again.")
    return notes + html.paragraph(again, "next") if notes and state.failed_cell else notes


def folder_name(path: str) -> str:
    """Return the last part of a path of any system."""
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]


def draw_remedy(fix: Remedy, name: str, state: State) -> Markup:
    """Return a fix: its sentence, its plan's title, what to set and to type, and how to start an application.

    `name` is its key in `all_fixes`, such as "oom#1". Commands name the log's interpreter if the fix is for its
    cause and the log names one or is of another computer, else for this setup's. If it can be applied here, the exact
    commands are folded away below. Of several applications none is shown, unless the log names its program.
    """
    source, made = state.diagnosed.source, state.environment
    of_cause = name.partition("#")[0] in {cause.key for cause in state.diagnosed.diagnoses}
    python = Interpreter(python=quote(made.python if made else "python"))  # this setup's, unless the log names one
    logs = of_cause and (source.elsewhere or source.interpreter != Interpreter())
    there, shell = with_interpreter(fix, source.interpreter if logs else python), shell_of(source.os)
    typed = [as_typed(command) for command in there.commands]
    title = say("PyTorch {torch} for {backend}, Python {python}")
    plan = html.NOTHING
    if fix.plan:
        words = title.format(torch=fix.plan.torch, backend=fix.plan.backend.title, python=fix.plan.python)
        plan = html.paragraph(words, "next")
    one = source.program or len(fix.launch) == 1  # else it would be a list of all
    launches = fix.launch if one else ()
    here = all_fixes(state).get(name)
    run = here.commands if here and here.offered else ()
    exact = html.code("\n".join(command_line(words) for words in run)) if run else html.NOTHING
    return joined(
        [
            html.paragraph(as_typed(there.text)),
            plan,
            *(
                (html.NOTHING if one is shell else html.paragraph(f"{one.value}:")) + html.copyable("\n".join(lines))
                for one, lines in (settings(fix.env, shell) if fix.env else ())  # named, as it may be one of two shells
            ),
            html.copyable("\n".join(typed)) if typed else html.NOTHING,
            *(_draw_launch(launch, source.arguments) for launch in launches),
            html.details(say("The same in a terminal"), exact),
        ]
    )


def _draw_launch(launch: Launch, arguments: tuple[str, ...]) -> Markup:
    """Return the line to start an application with, below its `arguments` till now, those to take out struck through.

    If no such line is known, return what to take out and what to add.
    """
    where = ", ".join(filter(None, (launch.app, launch.file)))
    rows = []
    if arguments and launch.line:
        before = [tag("del" if word in launch.drop else "span", word) + " " for word in arguments]
        rows.append((say("It was started with"), tag("code", *before)))
    elif launch.drop:
        rows.append((say("Take out"), tag("code", " ".join(launch.drop))))
    if launch.add and not launch.line:
        rows.append((say("Add"), tag("code", " ".join(launch.add))))
    lines = [tag("tr", tag("th", words, scope="row"), tag("td", value)) for words, value in rows]
    table = tag("table", tag("tbody", "", *lines), class_="ptsa-table") if lines else html.NOTHING
    title = say("Put this into {file}:", file=launch.file) if launch.file else say("Start it with:")
    whole = html.paragraph(title) + html.copyable(launch.line) if launch.line else html.NOTHING
    return tag("div", tag("h5", where), table, whole, class_="ptsa-launch")
