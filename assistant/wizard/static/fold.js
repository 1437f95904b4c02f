// A line that shows and hides what it holds itself; where that is nothing, the widget after it, by the style sheet.
function render({ model, el }) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "ptsa-fold-button";
  el.classList.add("ptsa-fold");
  el.append(button);
  const body = document.createElement("div");
  body.className = "widget-html-content";
  const holds = model.get("value") !== undefined;
  if (holds) {
    el.classList.add("ptsa-details");
    el.append(body);
  }
  const draw = () => {
    const open = model.get("unfolded");
    button.textContent = model.get("title");
    button.setAttribute("aria-expanded", String(open));
    el.classList.toggle("ptsa-open", open);
    body.hidden = !open;
  };
  button.addEventListener("click", () => {
    model.set("unfolded", !model.get("unfolded"));
    model.save_changes();
  });
  const fill = () => (body.innerHTML = model.get("value"));
  model.on("change:title change:unfolded", draw);
  if (holds) model.on("change:value", fill), fill();
  draw();
}

export default { render };
