// A line that shows and hides the widget after it; the style sheet hides that while this is closed.
function render({ model, el }) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "ptsa-fold-button";
  el.classList.add("ptsa-fold");
  el.append(button);
  const draw = () => {
    const open = model.get("unfolded");
    button.textContent = model.get("title");
    button.setAttribute("aria-expanded", String(open));
    el.classList.toggle("ptsa-open", open);
  };
  button.addEventListener("click", () => {
    model.set("unfolded", !model.get("unfolded"));
    model.save_changes();
  });
  model.on("change:title change:unfolded", draw);
  draw();
}

export default { render };
