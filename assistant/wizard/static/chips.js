// Small cards in a group with a name: one of them is chosen, or each is a button of its own.

function words_of({ title, lead }) {
  const name = element("span", "ptsa-chip-title");
  const text = element("span", "ptsa-chip-lead");
  name.textContent = title;
  text.textContent = lead ?? "";
  return [name, text];
}

function radio(model, option, group) {
  const label = element("label", "ptsa-chip");
  const button = element("input", "", { type: "radio", name: group, value: option.key });
  button.checked = option.key === model.get("value");
  button.addEventListener("change", () => {
    model.set("value", option.key);
    model.save_changes();
  });
  label.append(button, ...words_of(option));
  return label;
}

function press(model, option) {
  const button = element("button", "ptsa-chip", { type: "button" });
  if (option.copy) button.dataset.copy = option.copy;
  else button.addEventListener("click", () => model.send({ press: option.key }));
  button.append(...words_of(option));
  return button;
}

function render({ model, el }) {
  const name = Math.random().toString(36).slice(2);
  const group = element("fieldset", "ptsa-chips-group");
  const legend = element("legend", "");
  const row = element("div", "ptsa-chip-row");
  group.append(legend, row);
  el.append(group);
  const draw = () => {
    legend.textContent = model.get("description");
    const made = model.get("pressed") ? press : radio;
    const at = [...row.children].findIndex((node) => node.contains(document.activeElement));
    row.replaceChildren(...model.get("options").map((option) => made(model, option, name)));
    if (at >= 0) (row.children[at]?.querySelector("input") ?? row.children[at])?.focus({ preventScroll: true });
  };
  const show = () => {
    for (const box of row.querySelectorAll("input")) box.checked = box.value === model.get("value");
  };
  model.on("change:options change:description", draw);
  model.on("change:value", show);
  draw();
}

export default { render };
