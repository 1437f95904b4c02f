// A box to tick for each option, in a group with a name.
function render({ model, el }) {
  const group = document.createElement("fieldset");
  const name = document.createElement("legend");
  group.className = "ptsa-choices";
  name.textContent = model.get("description");
  const boxes = model.get("options").map(([words, key]) => {
    const label = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", value: key });
    const title = Object.assign(document.createElement("strong"), { textContent: key });
    const text = document.createElement("span");
    text.append(title, ` ${words}`);
    label.append(box, text);
    return label;
  });
  group.append(name, ...boxes);
  el.append(group);
  const all = () => [...group.querySelectorAll("input")];
  const show = () => {
    for (const box of all()) box.checked = model.get("value").includes(box.value);
  };
  group.addEventListener("change", () => {
    model.set("value", all().filter((box) => box.checked).map((box) => box.value));
    model.save_changes();
  });
  model.on("change:value", show);
  show();
}

export default { render };
