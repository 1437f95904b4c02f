// Small cards in a group with a name: one of them is chosen, or each is a button of its own. Some are folded away.

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
  button.disabled = Boolean(option.off);
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

// A row of cards under a title; it is open where the chosen card is in it, and stays as the user leaves it.
function fold(title, cards, opened) {
  const box = element("details", "ptsa-chip-fold");
  const line = element("summary", "");
  const row = element("div", "ptsa-chip-row");
  line.textContent = title;
  row.append(...cards);
  box.append(line, row);
  box.open = opened.has(title) || cards.some((card) => card.querySelector("input")?.checked);
  box.addEventListener("toggle", () => (box.open ? opened.add(title) : opened.delete(title)));
  return box;
}

function render({ model, el }) {
  const name = Math.random().toString(36).slice(2);
  const group = element("fieldset", "ptsa-chips-group");
  const legend = element("legend", "");
  const row = element("div", "ptsa-chip-row");
  const folds = element("div", "");
  const opened = new Set();
  group.append(legend, row, folds);
  el.append(group);
  const draw = () => {
    legend.textContent = model.get("description");
    const made = model.get("pressed") ? press : radio;
    const cards = () => [...group.querySelectorAll(".ptsa-chip")];
    const at = cards().findIndex((node) => node.contains(document.activeElement));
    const options = model.get("options");
    const drawn = (group) => options.filter((one) => (one.group ?? "") === group).map((one) => made(model, one, name));
    const titles = [...new Set(options.map((one) => one.group ?? ""))].filter(Boolean);
    row.replaceChildren(...drawn(""));
    folds.replaceChildren(...titles.map((title) => fold(title, drawn(title), opened)));
    if (at >= 0) (cards()[at]?.querySelector("input") ?? cards()[at])?.focus({ preventScroll: true });
  };
  const show = () => {
    for (const box of group.querySelectorAll("input")) box.checked = box.value === model.get("value");
  };
  model.on("change:options change:description", draw);
  model.on("change:value", show);
  draw();
}

export default { render };
