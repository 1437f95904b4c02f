// A line that shows and hides HTML of its own, if it holds any; the kernel brings the widgets that it stands for.
function render({ model, el }) {
  const button = document.createElement("button");
  const body = document.createElement("div");
  button.type = "button";
  button.className = "ptsa-fold-button";
  el.className += " ptsa-fold";
  el.append(button, body);
  const draw = () => {
    button.textContent = model.get("title");
    button.setAttribute("aria-expanded", model.get("unfolded"));
    body.hidden = !model.get("unfolded");
    body.innerHTML = model.get("value") ?? "";
  };
  button.addEventListener("click", () => {
    model.set("unfolded", !model.get("unfolded"));
    model.save_changes();
  });
  model.on("change", draw);
  draw();
}

export default { render };
