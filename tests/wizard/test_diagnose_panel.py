"""The page for what is wrong: the answer begins with the user's machine, one press mends, nothing is cleared unseen."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from runners import InlineRunner, watch

from assistant.diagnose import read_log
from assistant.host.base import ReplayHost
from assistant.host.live import LiveHost
from assistant.i18n import Message, render, use_language
from assistant.install import Sources
from assistant.machines import load
from assistant.model.finding import Diagnosis, Finding, Interpreter, Launch, Remedy, Severity
from assistant.model.machine import Detection, Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace
from assistant.model.report import Environment, Step
from assistant.session.actions import Begin, Choose, Edited, Failed, Mend, Paste, Show
from assistant.session.diagnosis import find_causes, log_source
from assistant.session.remediation import all_fixes, best_fix_name, headline
from assistant.session.session import Session
from assistant.session.state import Detected, Diagnosed, Installed, Outcome, Page, Pasted, Source, State, Task
from assistant.wizard.panels.answer import draw_aside, draw_causes, draw_title
from assistant.wizard.panels.diagnose import SAMPLES, WrongPage, make_footer

pytestmark = pytest.mark.process

GONE = """python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("six") is not None)'"""
PLAN = Plan(backend=Backend.ROCM, variant="rocm7.2", torch="2.14.1", python="3.12")
HERE = Machine(os="linux", wsl=False, arch="x86_64", python="3.12", gpus=(Gpu(vendor=Vendor.AMD, name="RX 7900 XTX"),))
NO_DIRECTML = "ImportError: libd3d12.so: cannot open shared object file: No such file or directory"
FORGE = f"/srv/webui-forge/launch.py\nLaunching Web UI with arguments: --directml --medvram\n{NO_DIRECTML}"
NO_MEMORY = "Starting SD.Next\nCommand line args: ['--use-directml', '--debug']\nThere is not enough GPU video memory"
ABI = """Traceback (most recent call last):
  File "/srv/app/env/lib/python3.11/site-packages/onnxruntime/capi/_pybind_state.py", line 32, in <module>
AttributeError: _ARRAY_API not found
A module that was compiled using NumPy 1.x cannot be run in NumPy 2.1"""
LOG = Pasted(text="a log")
NOWHERE = Source()


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """Make an environment with one small package."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, tmp_path / "env"], check=True)
    python = tmp_path / "env" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    subprocess.run([*uv, "pip", "install", "-q", "--python", python, "six"], check=True)
    return Environment(path=str(tmp_path / "env"), python=str(python))


@pytest.fixture
def in_chinese() -> Iterator[None]:
    """Speak Chinese."""
    use_language("zh_CN")
    yield
    use_language("en")


def state_of(
    *remedies: Remedy, environment: Environment | None = None, source: Source = NOWHERE, machine: str = ""
) -> State:
    """Give a setup whose log has one cause, with its remedies."""
    cause = Diagnosis(key="cause", title="A cause", cause="It is so.", remedies=remedies)
    return State(
        page=Page.WRONG,
        machine=machine,
        detected=Detected(detection=Detection(machine=HERE)),
        installed=Installed(environment=environment) if environment else None,
        diagnosed=Diagnosed(diagnoses=(cause,), explained=LOG, source=source),
        pasted=LOG,
    )


def page_of(session: Session) -> WrongPage:
    """Show a session's page, kept up to date."""
    page = WrongPage(session)
    watch(session, lambda _old, new: page.follow(new))
    page.follow(session.state)
    return page


def ways_of(page: WrongPage) -> str:
    """Open the fold of the other fixes, and give what it shows; "" where there are none."""
    page.others.unfolded = page.others not in page.hidden
    page.follow(page.session.state)
    return str(page.others.value) if page.others.unfolded else ""


def press(page: WrongPage) -> str:
    """Press the main button; give its words."""
    shown = page.footer(page.session.state)
    for action in shown.actions:
        page.session.dispatch(action)
    return shown.label


def on(machine: str, log: str = "", *, simulated: bool = False) -> Session:
    """Look at a recorded machine, make its plan, and find the cause of a log."""
    host = ReplayHost(load(machine))
    state = State(machine=machine if simulated else "", page=Page.WRONG)
    session = Session(host, InlineRunner(), sources=Sources(host, offline=True), state=state)
    session.begin(Task.DETECT)
    session.begin(Task.PLAN)
    if log:
        session.dispatch(Paste(log=log))
        session.begin(Task.DIAGNOSE)
    return session


def source(log: str, machine: Machine = HERE) -> tuple[Diagnosis, Source]:
    """Give the first cause of a log and what it comes from."""
    read = read_log(log)
    return find_causes(read, machine)[0], log_source(read, machine)


def test_one_press_mends_and_says_that_the_check_passed(environment: Environment) -> None:
    """The commands can be seen before; after the press the answer of the check stands at the top."""
    way = Remedy(text="Remove six.", commands=("python -m pip uninstall -y six",), check=(GONE,))
    page = page_of(Session(LiveHost(), InlineRunner(), state=state_of(way, environment=environment)))
    assert environment.python in page.answer.value
    assert "pip uninstall --python" in page.answer.value
    assert press(page) == "Mend it"
    assert page.session.state.mended["cause#1"].outcome is Outcome.FIXED
    assert "Mended, and its check passed: Remove six." in page.answer.value
    assert "is removed" in page.lines.value
    assert page.footer(page.session.state).label == "Find the cause"  # it was tried, and is not offered again


def test_a_fix_for_the_user_alone_has_no_button(environment: Environment) -> None:
    """What needs sudo is shown, to be copied."""
    way = Remedy(text="Join.", commands=("sudo usermod -aG render me",))
    page = page_of(Session(LiveHost(), InlineRunner(), state=state_of(way, environment=environment)))
    assert page.footer(page.session.state).label == "Find the cause"
    assert 'data-copy="sudo usermod -aG render me"' in page.answer.value


def test_the_other_ways_are_folded_and_can_be_pressed_too(environment: Environment) -> None:
    """The first that can be applied is the main button; the second is a button of its own, the third is read."""
    ways = (
        Remedy(text="Join.", commands=("sudo usermod -aG render me",)),
        Remedy(text="Run.", commands=("python -c pass",)),
        Remedy(text="Plan.", plan=PLAN),
    )
    page = page_of(Session(LiveHost(), InlineRunner(), state=state_of(*ways, environment=environment)))
    assert best_fix_name(page.session.state) == "cause#2"
    assert page.others.title == "Other fixes (2)"
    assert re.findall('data-press="(.*?)"', ways_of(page)) == ["fix:cause#3"]
    assert "sudo usermod" in ways_of(page)
    for action in page.pressed("fix:cause#3", page.session.state):
        page.session.dispatch(action)
    assert (page.session.state.page, page.session.state.choices.request.backend) == (Page.SETUP, Backend.ROCM)


def test_a_simulated_machine_offers_plans_alone(environment: Environment) -> None:
    """Nothing can be run for it, whatever is pressed; a plan can be made, and its button is there."""
    ways = (Remedy(text="Run.", commands=("python -c pass",)), Remedy(text="Plan.", plan=PLAN))
    state = state_of(*ways, environment=environment, machine="linux-arch-rx6700xt-directml")
    page = page_of(Session(LiveHost(), InlineRunner(), state=state))
    wish, show = page.footer(state).actions
    assert isinstance(wish, Choose)
    assert show == Show(page=Page.SETUP)
    assert "data-press" not in ways_of(page)
    session = on("linux-arch-rx6700xt-directml", NO_DIRECTML, simulated=True)
    assert page_of(session).footer(session.state).label == "Mend it"


def test_a_plan_becomes_the_wish_of_the_setup() -> None:
    """The press asks for the plan's backend and Python, and shows the setup, where it is agreed to."""
    page = page_of(Session(LiveHost(), InlineRunner(), state=state_of(Remedy(text="Build.", plan=PLAN))))
    wish, show = page.footer(page.session.state).actions
    assert isinstance(wish, Choose)
    assert (wish.request.backend, wish.request.python) == (Backend.ROCM, "3.12")
    assert show == Show(page=Page.SETUP)


def test_a_plan_goes_into_the_environment_that_the_log_names(environment: Environment) -> None:
    """Only where that one stands here and has the plan's Python; else a new one is planned."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    there = Source(interpreter=Interpreter(path=environment.python))
    state = state_of(Remedy(text="Build.", plan=replace(PLAN, python=version)), source=there)
    page = page_of(Session(LiveHost(), InlineRunner(), state=state))
    assert page.footer(state).actions[0] == Choose(target=environment.path)
    other = state_of(Remedy(text="Build.", plan=replace(PLAN, python="3.7")), source=there)
    assert not any(isinstance(action, Choose) and action.target is not None for action in page.footer(other).actions)


def test_a_log_that_nobody_knows_is_no_all_clear_and_gives_a_report_without_private_things() -> None:
    """What to find out next is asked, and the report to copy has no home folder in it."""
    session = Session(LiveHost(), InlineRunner(), state=State(detected=Detected(detection=Detection(machine=HERE))))
    page = page_of(session)
    log = "File /home/jane/app.py\nRuntimeError: HIP error: something new\ntoken=hf_abcdefghijklmnop"
    session.dispatch(Paste(log=log))
    assert press(page) == "Find the cause"
    assert session.state.diagnosed.diagnoses == ()
    assert "AMD_SERIALIZE_KERNEL=3" in page.answer.value
    assert "That does not mean that nothing is wrong." in page.answer.value
    assert "No problem was found" not in page.answer.value
    assert "HIP error: something new" in page.answer.value
    assert "Copy the report" in page.answer.value
    assert "something new" in session.state.diagnosed.markdown
    assert "jane" not in session.state.diagnosed.markdown
    assert "hf_abcdefghijklmnop" not in session.state.diagnosed.markdown


def test_a_log_from_another_system_runs_nothing_here(environment: Environment) -> None:
    """A Windows log on Linux is told what helps there, and none of it can be pressed."""
    session = Session(LiveHost(), InlineRunner(), state=state_of(environment=environment))
    page = page_of(session)
    session.dispatch(Paste(log='OSError: [WinError 126] Error loading "C:\\v\\torch\\lib\\fbgemm.dll"'))
    press(page)
    assert session.state.diagnosed.source.elsewhere
    assert "On another computer" in page.answer.value
    assert page.footer(session.state).label == "Find the cause"
    assert "data-press" not in ways_of(page)


def test_an_answer_is_of_the_text_in_the_box_or_there_is_none() -> None:
    """While the browser holds another text, and after another was set, the old cause and its button are gone."""
    page = page_of(on("linux-arch-rx6700xt-directml", NO_DIRECTML))
    session = page.session
    assert page.footer(session.state).label == "Mend it"
    for action in (Edited(), Paste(log="another text")):
        session.dispatch(action)
        assert "DirectML, which only" not in page.answer.value
        assert page.footer(session.state).label == "Find the cause"
    press(page)
    assert "No known problem" in page.answer.value
    assert page.box.shown["text"] == "another text"


def test_without_any_text_it_is_said_what_was_looked_at() -> None:
    """A healthy machine is told what was found well, and no more; one with a fault is told that, with its button."""
    page = page_of(on("linux-debian12-cpu-container"))
    assert "the hardware and the drivers are in order" in page.answer.value
    assert "none was set up here" in page.answer.value
    assert page.answer.value.count("ptsa-light-good") == 2  # the machine, and that there is a plan
    page = page_of(on("linux-arch-rx6700xt-directml"))
    assert "the hardware and the drivers are in order" not in page.answer.value
    assert "see below" in page.answer.value
    assert "torch-directml is installed" in page.answer.value
    assert page.footer(page.session.state).label == "Mend it"


def test_what_failed_here_is_shown_and_explained_without_any_text() -> None:
    """The failed step stands there at once, and the press finds its cause."""
    page = page_of(on("linux-debian12-cpu-container"))
    page.session.dispatch(Failed(step=Step.INSTALL, message="OSError: [Errno 28] No space left on device"))
    assert "No space left on device" in page.answer.value
    assert "No problem was found" not in page.answer.value
    assert press(page) == "Find the cause"
    assert page.session.state.diagnosed.diagnoses[0].key == "disk-full"
    assert "Found in the output of the step that failed." in page.answer.value


def test_whose_log_it_is_can_be_said_and_changes_the_answer() -> None:
    """A helper pastes somebody else's log: nothing of this computer may then be taken for theirs."""
    session = on("linux-ubuntu2404-rtx4090", SAMPLES["build"])
    page = page_of(session)
    assert 'data-press="whose:same" checked=""' in page.aside.value
    wizard_press(page, "whose:other")
    assert session.state.diagnosed.source.elsewhere
    assert not any(fix.offered for fix in all_fixes(session.state).values() if fix.remedy.plan)
    assert 'data-press="whose:other" checked=""' in page.aside.value
    wizard_press(page, "whose:same")
    assert not session.state.diagnosed.source.elsewhere


def wizard_press(page: WrongPage, key: str) -> None:
    """Press a card of the page."""
    for action in page.pressed(key, page.session.state):
        page.session.dispatch(action)
    page.follow(page.session.state)


@pytest.mark.parametrize("key", list(SAMPLES))
def test_who_has_no_error_at_hand_sees_an_answer_to_a_sample(key: str) -> None:
    """Each sample is explained with certainty, and is gone once there is a text."""
    page = page_of(on("linux-ubuntu2404-rtx4090"))
    assert f'data-press="sample:{key}"' in page.samples.value
    wizard_press(page, f"sample:{key}")
    assert page.session.state.diagnosed.diagnoses[0].sure
    assert page.samples.value == ""
    assert "<ol" in page.answer.value


def test_a_cause_is_not_told_twice() -> None:
    """What the log's cause says of torch-directml, no finding repeats."""
    drawn = draw_causes(on("linux-arch-rx6700xt-directml", NO_DIRECTML).state)
    assert "torch-directml is installed" not in drawn


def test_the_answer_begins_with_the_users_own_machine_and_program() -> None:
    """The card that is fine, the program and what it was started with; the line is shown by its number."""
    state = on("linux-arch-rx6700xt-directml", FORGE).state
    drawn = draw_title(state) + draw_aside(state) + draw_causes(state)
    assert "Your Radeon RX 6700 XT is fine. Stable Diffusion WebUI Forge was started with DirectML" in drawn
    assert "Found in line 3." in drawn
    assert "Install PyTorch for ROCm, the build that fits this computer." in drawn
    assert "CUDA for NVIDIA" not in drawn
    assert "<del>--directml</del>" in drawn
    assert 'data-copy="export COMMANDLINE_ARGS=&quot;--medvram&quot;"' in drawn
    assert "InvokeAI" not in drawn


def test_without_a_program_no_programs_arguments_are_told() -> None:
    """A log that names none is not answered with those of six."""
    session = on("linux-arch-rx6700xt-directml", NO_DIRECTML)
    page = page_of(session)
    assert "The program asks for DirectML" in page.answer.value
    assert not any(name in page.answer.value + ways_of(page) for name in ("InvokeAI", "SD.Next", "ComfyUI,"))


def test_settings_in_a_file_are_written_out() -> None:
    """InvokeAI's YAML is shown as what to write into which file."""
    drawn = draw_causes(on("linux-arch-rx6700xt-directml", f"invokeai starting\n{NO_DIRECTML}").state)
    assert "Put this into invokeai.yaml:" in drawn
    assert 'data-copy="device: auto"' in drawn


def test_a_better_build_for_the_card_is_named() -> None:
    """DirectML without memory on a card that ROCm supports: the answer says so, and the button plans it."""
    session = on("windows11-rx7800xt", NO_MEMORY)
    page = page_of(session)
    assert session.state.diagnosed.diagnoses[0].key == "oom"
    assert "SD.Next on your AMD Radeon RX 7800 XT: Not enough memory on the device" in page.answer.value
    assert "PyTorch for ROCm runs on the AMD Radeon RX 7800 XT and suits it better." in page.answer.value
    assert "webui.bat --debug --use-rocm" in page.answer.value
    (fix,) = (fix for fix in session.state.diagnosed.diagnoses[0].remedies if fix.plan)
    assert not fix.mends
    assert make_footer(with_remedy(session.state, fix, text="In other words.")).label == "Change to ROCm"
    assert make_footer(with_remedy(session.state, fix, mends=True)).label == "Mend it"


def with_remedy(state: State, fix: Remedy, **other: object) -> State:
    """Return the state with one remedy changed."""
    cause = state.diagnosed.diagnoses[0]
    remedies = tuple(replace(one, **other) if one is fix else one for one in cause.remedies)
    return replace(state, diagnosed=replace(state.diagnosed, diagnoses=(replace(cause, remedies=remedies),)))


def test_the_module_that_the_log_names_is_the_one_that_is_told() -> None:
    """An old ONNX Runtime is not called PyTorch; pip is that of the environment in the traceback."""
    page = page_of(on("linux-debian12-cpu-container", ABI))
    assert "onnxruntime was built for NumPy 1, and NumPy 2 is installed" in page.answer.value
    assert "PyTorch was built" not in page.answer.value
    assert "/srv/app/env/bin/python -m pip install &quot;numpy&lt;2&quot;" in page.answer.value
    assert "/srv/app/env/bin/python -m pip install --upgrade onnxruntime" in ways_of(page)


def test_what_runs_a_notebooks_cells_is_not_the_module_at_fault() -> None:
    """It stands above the module in the traceback that NumPy prints in a notebook."""
    place = '  File "/srv/app/env/lib/python3.11/site-packages/{}.py", line 1'
    frames = (place.format(name) for name in ("ipykernel_launcher", "traitlets/config", "tornado/io", "IPython/core/x"))
    *_frames, error, message = ABI.splitlines()
    log = "\n".join([message, *frames, place.format("onnxruntime/capi/_pybind_state"), error])
    assert "onnxruntime was built for NumPy 1" in render(source(log)[0].title)


@pytest.mark.parametrize(
    ("line", "python"),
    [
        ('File "/home/u/webui/venv/lib/python3.10/site-packages/torch/__init__.py"', "/home/u/webui/venv/bin/python"),
        (r'File "C:\AI\my ui\venv\Lib\site-packages\torch\x.py"', r"C:\AI\my ui\venv\Scripts\python.exe"),
        (r'File "C:\Comfy\python_embeded\Lib\site-packages\x\y.py"', r"C:\Comfy\python_embeded\python.exe"),
        (r'File "C:\Users\u\miniconda3\envs\ai\Lib\site-packages\x.py"', r"C:\Users\u\miniconda3\envs\ai\python.exe"),
        ('File "/home/u/.local/lib/python3.11/site-packages/torch/x.py"', ""),
        ('File "lab/env/lib/python3.11/site-packages/torch/x.py"', ""),
        ('File "/usr/local/lib/python3.11/site-packages/torch/x.py"', ""),
        (r'File "\\evil.example\share\venv\Lib\site-packages\torch\x.py"', ""),
    ],
)
def test_the_interpreter_is_read_from_the_paths_of_a_traceback(line: str, python: str) -> None:
    """Environments of every kind; a system's Python is nobody's environment, and no server of a stranger's is asked."""
    assert log_source(read_log(f"{line}, line 1, in <module>\n{NO_DIRECTML}"), HERE).interpreter.path == python


CASES = [
    ("oom", Source(), "Title"),
    ("oom", Source(program="SD.Next"), "SD.Next: Title"),
    ("oom", Source(gpu="RX 7600", system="Arch"), "On your RX 7600: Title"),
    ("oom", Source(system="Debian 12"), "On your computer (Debian 12): Title"),
    ("oom", Source(program="SD.Next", system="Debian 12"), "SD.Next on your computer (Debian 12): Title"),
    ("oom", Source(gpu="RX 7600", system="Arch", elsewhere=True), "On another computer (RX 7600, Arch): Title"),
    ("stale-venv", Source(gpu="RX 7600", best=Backend.ROCM), "Your RX 7600 is fine. Title"),
    ("stale-venv", Source(gpu="RX 7600", best=Backend.CPU), "On your RX 7600: Title"),
    ("stale-venv", Source(gpu="RX 7600"), "On your RX 7600: Title"),
    ("stale-venv", Source(gpu="A", best=Backend.ROCM, program="X", elsewhere=True), "computer is fine. X: Title"),
]


@pytest.mark.parametrize(("key", "origin", "said"), CASES)
def test_a_sentence_claims_no_more_than_is_known(key: str, origin: Source, said: str) -> None:
    """A card is called fine where the planner has a build for it and the cause is one of software, and only there."""
    cause = Diagnosis(key=key, title="Title", cause="Because.", confidence=0.9)
    assert render(headline(cause, origin)).endswith(said)
    assert "fine" not in render(headline(replace(cause, confidence=0.5), origin))


@pytest.mark.usefixtures("in_chinese")
def test_every_sentence_is_composed_in_chinese_too() -> None:
    """No placeholder is left over, and names keep their places."""
    for key, origin, _said in CASES:
        said = render(headline(Diagnosis(key=key, title=Message("Title"), cause="", confidence=0.9), origin))
        assert "{" not in said
        assert origin.program in said
    cause, origin = source(FORGE)
    assert "Stable Diffusion WebUI Forge" in render(headline(cause, origin))


def test_findings_keep_their_own_remedies_and_launches(environment: Environment) -> None:
    """A finding's fix is for this setup's environment, whatever a log names."""
    launch = Launch(app="SD.Next", drop=("--use-directml",), add=("--use-rocm",))
    fix = Remedy(text="Clean.", commands=("python -m pip check",), launch=(launch,))
    finding = Finding(key="mixed", severity=Severity.WARNING, text="Mixed.", remedies=(fix,))
    state = State(
        raised=(finding,),
        detected=Detected(detection=Detection(machine=HERE)),
        installed=Installed(environment=environment),
    )
    page = page_of(Session(LiveHost(), InlineRunner(), state=state))
    assert f"{environment.python} -m pip check" in page.answer.value
    assert "--use-rocm" in page.answer.value
    assert page.footer(state).actions == (Mend(way="mixed#1"), Begin(task=Task.MEND))


def test_causes_that_are_guesses_are_called_so() -> None:
    """Each with what helps, below a note that no known problem matches."""
    session = Session(LiveHost(), InlineRunner(), state=State(detected=Detected(detection=Detection(machine=HERE))))
    page = page_of(session)
    story = "Decoding took half an hour the very first time: MIOpen searches for convolution kernels at each new size."
    session.dispatch(Paste(log=story))
    press(page)
    assert "They are guesses" in page.answer.value
    assert "MIOPEN_FIND_MODE" in page.answer.value
