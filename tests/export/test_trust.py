"""A configuration from somebody else is data: every value of it is of a plain form, or it is refused by name."""

import inspect
import re
import tomllib

import msgspec
import pytest
import tomli_w
from export.setups import SETUP
from tables import each

from assistant.catalog import load_catalog
from assistant.catalog.catalog import is_known_index
from assistant.export import config, read_config
from assistant.export.config import config_text
from assistant.model.errors import BadInput
from assistant.model.plan import Plan

change = msgspec.structs.replace
TEXT = config_text(SETUP)
PATH = 'path = "torch env"'
PYTHON = 'python = "bin/python"'


def with_plan(**changes: object) -> str:
    """Give the configuration with another plan in it, as somebody would write it by hand."""
    plain = tomllib.loads(TEXT)
    return tomli_w.dumps({**plain, "plan": {**plain["plan"], **changes}})


def test_what_was_exported_is_accepted():
    """The plain text reads back, with Windows line ends, too."""
    assert read_config(TEXT) == read_config(TEXT.replace("\n", "\r\n"))


def test_what_a_project_adds_to_a_plan_is_exported_and_accepted():
    """Its conditions, bounds and sources come back as they were; a folder of wheels is nobody else's."""
    pages = ("https://wheels.example/links.html",)
    plan = change(
        SETUP.plan,
        requirements=(*SETUP.plan.requirements, 'timm>=1; python_version < "3.14"'),
        asked=("timm",),
        constraints=("pillow<12",),
        overrides=('xformers; sys_platform == "never"',),
        indexes=("https://company.example/simple",),
        links=pages,
        apart=("torchcodec",),
    )
    own = change(plan, links=("/home/jane/wheels", *pages))
    assert read_config(config_text(change(SETUP, plan=own))).plan == plan


@each(
    ("place", "value"),
    [
        ("asked", ["../x"]),
        ("asked", ["NumPy"]),
        ("asked", ["-r"]),
        ("apart", ["x; id"]),
        ("links", ["/home/jane/wheels"]),
        ("links", ["https://known.example/a,https://evil.example/b"]),
    ],
)
def test_what_else_a_plan_holds_has_its_form(place, value):
    """Names are those of packages, pages are addresses."""
    with pytest.raises(BadInput, match=rf"plan\.{place}"):
        read_config(with_plan(**{place: value}))


def test_every_field_of_a_plan_is_judged():
    """A new field cannot slip by: it is judged by name, or it stands here as one that a type judges well enough."""
    by_type = {"backend", "download_mb", "reasons", "warnings"}  # an enum, a number, sentences
    judges = (config._check_names, config._check_packages, config._check_sources)
    judged = {*re.findall(r"\bplan\.(\w+)", "".join(map(inspect.getsource, judges)))}
    assert judged | by_type == {*Plan.__struct_fields__}
    assert not judged & by_type


@each("path", ["../up", "..", ".", "/etc", "a/b", "C:\\x", "C:x", "\\\\server\\share", "nul", "a\u0000", ""])
def test_a_path_that_could_lead_out_is_refused(path):
    """The environment's folder is one plain name: nothing absolute, no parent, no drive, no device of Windows."""
    with pytest.raises(BadInput, match=r"environment\.path"):
        read_config(TEXT.replace(PATH, "path = " + msgspec.json.encode(path).decode()))


@each("path", ["/bin/sh", "../../bin/sh", "bin/../../sh", "a/b/c", "C:/python.exe", "\\\\\\\\s\\\\x"])
def test_an_interpreter_outside_of_the_environment_is_refused(path):
    """The interpreter lies inside of the folder."""
    with pytest.raises(BadInput, match=r"environment\.python"):
        read_config(TEXT.replace(PYTHON, f'python = "{path}"'))


def test_a_recipe_that_nobody_knows_is_refused():
    """A known one only says which of our own lines verification runs."""
    with pytest.raises(BadInput, match=r"plan\.recipe"):
        read_config(config_text(change(SETUP, plan=change(SETUP.plan, recipe="../evil"))))
    assert read_config(config_text(change(SETUP, plan=change(SETUP.plan, recipe="whisperx")))).plan.recipe == "whisperx"


def test_a_name_for_the_launcher_is_left_out_and_refused():
    """It names the user's card, and a stranger's would be shown as ours."""
    named = change(SETUP, environment=change(SETUP.environment, display_name="PyTorch 2.6 · GeForce RTX 4090"))
    text = config_text(named)
    assert "display_name" not in text
    with pytest.raises(BadInput, match=r"environment\.display_name"):
        read_config(TEXT.replace(PYTHON, f'{PYTHON}\ndisplay_name = "Click here"'))


@each(
    "line",
    [
        "numpy; rm -rf /",
        "--index-url https://evil.example/simple",
        "-r /etc/passwd",
        "-e .",
        "numpy @ https://evil.example/numpy-1-py3-none-any.whl",
        "./local",
        "$(id)",
        "`id`",
        "numpy\nos",
        "numpy===1`id`",
        "numpy; platform_version == '\u202e'",
        "numpy; platform_version == '\\u202e'",
        "numpy; platform_version == '\\n--index-url https://evil.example/simple'",
    ],
)
@each("place", ["requirements", "constraints", "overrides"])
def test_a_requirement_with_options_addresses_or_a_shell_is_refused(place, line):
    """A requirement is a name, versions, and a condition that shows what it says, wherever it stands."""
    with pytest.raises(BadInput, match=rf"plan\.{place}"):
        read_config(with_plan(**{place: (line,)}))


@each(
    ("name", "value"),
    [
        ("LD_PRELOAD", "x.so"),
        ("PYTHONPATH", "x"),
        ("CUDA_INJECTION64_PATH", "x.so"),
        ("PIP_INDEX_URL", "x"),
        ("PATH", "x"),
    ],
)
def test_a_variable_that_no_plan_sets_is_refused(name, value):
    """Variables that load libraries, code or other indexes never reach a program."""
    with pytest.raises(BadInput, match=rf"plan\.env\.{name}"):
        read_config(TEXT.replace('CUDA_MODULE_LOADING = "LAZY"', f'{name} = "{value}"'))


@each("value", ["/lib/x.so", "$(id)", "a b", "${HOME}", "%PATH%", "'; id"])
def test_a_variable_with_a_path_or_a_shells_signs_is_refused(value):
    """Nothing is expanded, because nothing that could be is accepted."""
    with pytest.raises(BadInput, match=r"plan\.env\.CUDA_MODULE_LOADING"):
        read_config(TEXT.replace('"LAZY"', f'"{value}"'))


@each(
    "url",
    [
        "ftp://x/y",
        "javascript:alert(1)",
        "https://user:pw@x/y",
        "https://x/../y",
        "https://x/$(id)",
        "//x/y",
        "file://server/share",
        "file:////server/share",
        "file:///%2F%2Fserver/share",
        "https://x/%2e%2e/y",
        "file:///%5C%5Cserver%5Cshare",
    ],
)
@each("place", ["index_url", "indexes", "links"])
def test_an_index_of_another_form_is_refused(place, url):
    """An index is the plain address of a server or a local folder, and so is a page of wheels."""
    with pytest.raises(BadInput, match=rf"plan\.{place}"):
        read_config(with_plan(**{place: url if place == "index_url" else [url]}))


@each(
    ("old", "new", "said"),
    [
        ('variant = "cu126"', 'variant = "../../x"', r"plan\.variant"),
        ('python = "3.12"', 'python = "3.12; id"', r"plan\.python"),
        ('device = "cuda"', 'device = "cuda; id"', r"verification\.device"),
        ('kernel = "torch-cu126"', 'kernel = "../x"', r"environment\.kernel"),
        ('numpy = "2.1.0"', 'numpy = "2.1.0 --index-url x"', r"environment\.packages\.numpy"),
        ('numpy = "2.1.0"', '"../numpy" = "2.1.0"', r"environment\.packages"),
        ('numpy = "2.1.0"', '"-r" = "2.1.0"', r"environment\.packages"),
    ],
)
def test_each_other_value_has_its_form(old, new, said):
    """The place at fault is named."""
    assert old in TEXT
    with pytest.raises(BadInput, match=said) as caught:
        read_config(TEXT.replace(old, new, 1))
    assert caught.value.hint
    assert "\n" not in str(caught.value.message)


@each(
    ("row", "said"),
    [
        ('numpy = "abc"', r"hashes\.numpy"),
        (f'other = "{"0" * 64}"', r"hashes\.other"),
        ("", "announces 1 hashes but holds 0"),
    ],
)
def test_each_hash_is_one_of_a_package_and_none_is_missing(row, said):
    """A hash that is none, one of a package that is not listed, and an end that was cut off are refused."""
    with pytest.raises(BadInput, match=said):
        read_config(TEXT.replace("locked = 0", "locked = 1").replace("[hashes]", f"[hashes]\n{row}"))


@each("text", ["\x00\x01\x02", "", "[" * 10**5])
def test_other_texts_are_refused_in_one_line(text):
    """Control characters, nothing at all and deep nesting end in one sentence."""
    with pytest.raises(BadInput) as caught:
        read_config(text, "mine.toml")
    assert "mine.toml" in str(caught.value.message)
    assert str(caught.value.message).isprintable()


def test_a_refusal_cannot_steer_the_terminal():
    """Escape sequences of a configuration are written as text."""
    with pytest.raises(BadInput) as caught:
        read_config(TEXT.replace(PATH, 'path = "\\u001b[2J/x"'))
    assert "\x1b" not in str(caught.value.message)


@each(
    ("url", "known"),
    [
        ("https://download.pytorch.org/whl/cu126", True),
        ("https://download.pytorch.org/whl/nightly/cu132", True),
        ("https://repo.amd.com/rocm/whl-multi-arch/", True),
        ("https://own.example/simple/", True),
        ("http://download.pytorch.org/whl/cu126", False),
        ("https://download.pytorch.org.evil.example/whl/cu126", False),
        ("https://evil.example/whl/cu126", False),
        ("https://download.pytorch.org/other", False),
        ("https://download.pytorch.org/whl/%2e%2e/x", False),
        ("file:///tmp/wheels", False),
    ],
)
def test_only_listed_indexes_and_ones_own_are_known(url, known):
    """An index is known by server, scheme and folder, not by how it looks."""
    assert is_known_index(url, load_catalog(), ("https://own.example/simple", "")) is known
