"""The page of the demo that checks an ONNX model: it is dropped there, read there, and no request carries any of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from accessibility import STRICT, violations
from lite_site import START_MS
from onnx import TensorProto, helper, numpy_helper
from playwright.sync_api import Page, expect

from assistant.model.record import with_words
from assistant.onnx import check_model
from assistant.onnx.targets import ordered

PHONE = {"viewport": {"width": 390, "height": 844}, "locale": "zh-CN", "color_scheme": "dark"}
# What somebody drops who drags files from a file manager: Playwright can hand files to an input only.
DROP = """([name, bytes]) => {
    const files = new DataTransfer();
    files.items.add(new File([new Uint8Array(bytes)], name));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
}"""


def detector() -> onnx.ModelProto:
    """Make a model with something to say of: open sizes, and an operator that DirectML leaves to the CPU."""
    nodes = [
        helper.make_node("Conv", ["pixels", "weights"], ["a"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Resize", ["a", "", "scales"], ["b"], "grow", mode="cubic"),
        helper.make_node("Relu", ["b"], ["boxes"], "relu"),
    ]
    weights = {"weights": np.ones((8, 3, 3, 3), np.float32), "scales": np.array([1, 1, 2, 2], np.float32)}
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
        [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 19)])


@pytest.fixture
def opened(site_visitor: Page, site_address: str) -> Callable[[], Page]:
    """Give a function that opens the page and waits until Python has started there."""

    def open_page() -> Page:
        site_visitor.goto(f"{site_address}/onnx.html")
        expect(site_visitor.get_by_role("status")).to_have_text("Ready.", timeout=START_MS)
        return site_visitor

    return open_page


@pytest.mark.heavy
def test_a_dropped_model_is_checked_and_goes_nowhere(
    opened: Callable[[], Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every request until the answer is there was made before the model came, and was a GET of the site's own files."""
    page = opened()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    file = tmp_path / "detector.onnx"
    onnx.save(detector(), file)
    page.evaluate(DROP, [file.name, list(file.read_bytes())])
    answer = page.get_by_role("region", name="detector.onnx")
    expect(answer.get_by_text("DirectML takes 2 of 3 nodes that compute")).to_be_visible()
    answer.locator("summary").filter(has_text="DirectML takes 2 of 3").click()
    expect(answer.get_by_role("row", name="Resize 1 DirectML has no cubic interpolation.")).to_be_visible()
    expect(answer.get_by_text("DirectML does not compile what has open sizes")).to_be_visible()
    expect(answer.get_by_text("assistant onnx fix-shapes detector.onnx").first).to_be_visible()
    assert [url for url in asked if not url.startswith("data:")] == []
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the answer (JSON)").click()
    assert waiting.value.suggested_filename == "detector.onnx.check.json"
    monkeypatch.chdir(tmp_path)
    expected = [with_words(check_model(file.name, target)) for target in ordered(None)]
    assert json.loads(Path(waiting.value.path()).read_text("utf-8")) == json.loads(json.dumps(expected))
    assert page.evaluate("navigator.onLine") is True  # the browser was not merely cut off


@pytest.mark.heavy
def test_a_model_with_its_weights_beside_it_is_taken_whole(opened: Callable[[], Page], tmp_path: Path) -> None:
    """Both files are chosen; without the weights the page says which file is missing, and which model it asks for."""
    page = opened()
    file = tmp_path / "apart.onnx"
    onnx.save(detector(), file, save_as_external_data=True, location="weights.bin", size_threshold=0)
    page.get_by_label("Choose a file").set_input_files(file)
    expect(page.get_by_role("alert")).to_contain_text("The weights of apart.onnx are missing: weights.bin.")
    page.get_by_label("Choose a file").set_input_files([tmp_path / "weights.bin", file])
    expect(page.get_by_role("heading", name="apart.onnx")).to_be_focused()
    expect(page.get_by_role("alert")).to_be_empty()
    page.get_by_label("Choose a file").set_input_files([file, file.with_name("weights.bin"), _copy(file)])
    expect(page.get_by_role("alert")).to_have_text("Choose one .onnx file at a time.")


def _copy(file: Path) -> Path:
    other = file.with_name("other.onnx")
    other.write_bytes(file.read_bytes())
    return other


@pytest.mark.heavy
def test_open_sizes_are_fixed_where_the_model_is(opened: Callable[[], Page], tmp_path: Path) -> None:
    """Likely sizes are proposed, one's own are taken; the new model comes as a download and uses the same weights."""
    page = opened()
    file = tmp_path / "apart.onnx"
    model = detector()
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((2**15, 3, 3, 3), np.float32), "weights"))
    onnx.save(model, file, save_as_external_data=True, location="weights.bin", size_threshold=2**20)
    page.get_by_label("Choose a file").set_input_files([tmp_path / "weights.bin", file])
    page.get_by_role("button", name="Fix the open sizes").click()
    expect(page.get_by_role("heading", name="Open sizes")).to_be_focused()
    expect(page.get_by_label("width")).to_have_value("224")
    page.get_by_label("batch").fill("2")
    page.get_by_label("height").fill("0")
    page.get_by_role("button", name="Download the model with these sizes").click()
    expect(page.get_by_label("height")).to_be_focused()  # the browser says what is wrong with it
    page.get_by_label("height").fill("128")
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    assert waiting.value.suggested_filename == "apart.fixed.onnx"
    expect(page.get_by_text("Its weights stay in their own files")).to_be_visible()
    waiting.value.save_as(tmp_path / "apart.fixed.onnx")
    fixed = onnx.load(tmp_path / "apart.fixed.onnx")
    assert [dim.dim_value for dim in fixed.graph.input[0].type.tensor_type.shape.dim] == [2, 3, 128, 224]
    assert [dim.dim_value for dim in fixed.graph.output[0].type.tensor_type.shape.dim] == [2, 2**15, 256, 448]
    page.get_by_label("Choose a file").set_input_files([tmp_path / "weights.bin", tmp_path / "apart.fixed.onnx"])
    expect(page.get_by_role("heading", name="apart.fixed.onnx")).to_be_focused()
    expect(page.get_by_role("button", name="Fix the open sizes")).to_be_hidden()


@pytest.mark.heavy
def test_a_broken_file_gets_one_sentence(opened: Callable[[], Page]) -> None:
    """It is told with the next step, and the page goes on."""
    page = opened()
    alert = page.get_by_role("alert").locator("p")
    whole = detector().SerializeToString()
    lfs = b"version https://git-lfs.github.com/spec/v1\n"
    for content, sentence in (
        (b"<!doctype html>", "model.onnx is not an ONNX model, or only a part of one."),
        (lfs, "model.onnx is only a Git LFS pointer, not the model itself."),
        (whole[:400], "model.onnx is not an ONNX model, or only a part of one."),
    ):
        page.evaluate(DROP, ["model.onnx", list(content)])
        expect(alert).to_have_count(2)
        expect(alert.first).to_have_text(sentence)
        expect(page.get_by_role("status")).to_have_text("Ready.")
    page.evaluate(DROP, ["model.onnx", list(whole)])
    expect(page.get_by_role("heading", name="model.onnx")).to_be_visible()
    expect(alert).to_have_count(0)


@pytest.mark.heavy
@pytest.mark.parametrize("site_visitor", [PHONE], indirect=True)
def test_the_page_is_in_chinese_on_a_phone(site_visitor: Page, site_address: str, tmp_path: Path) -> None:
    """The browser's language decides, nothing is wider than the screen; a switch asks Python for the other words."""
    page = site_visitor
    page.goto(f"{site_address}/onnx.html")
    file = tmp_path / "detector.onnx"
    onnx.save(detector(), file)
    page.get_by_label("选择文件").set_input_files(file)  # before Python has started
    page.locator("summary").filter(has_text="DirectML").first.click(timeout=START_MS)
    expect(page.get_by_text("DirectML 没有三次插值。").first).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
    assert violations(page, "body", STRICT) == []
    page.get_by_label("语言").select_option("English")
    expect(page.get_by_text("DirectML has no cubic interpolation.").first).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("What runs where in an ONNX model")


@pytest.mark.heavy
def test_the_page_needs_no_mouse(opened: Callable[[], Page], tmp_path: Path) -> None:
    """From the language to the file, and from the answer to its parts, by the keyboard; axe finds nothing amiss."""
    file = tmp_path / "detector.onnx"
    onnx.save(detector(), file)
    page = opened()
    page.on("filechooser", lambda asked: asked.set_files(file))
    page.keyboard.press("Tab")
    expect(page.get_by_label("Language")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Choose a file")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="detector.onnx")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Download the answer (JSON)")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Fix the open sizes")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("summary").filter(has_text="DirectML takes 2 of 3")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Operators for DirectML")).to_be_visible()
    assert violations(page, "body", STRICT) == []
