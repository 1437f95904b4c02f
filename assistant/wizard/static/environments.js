// The environments on a machine, a row each: how it stands by sign and word, what it holds, what can be done with it.
const SIGNS = {
  good: "M3 8.5 6.5 12 13 4.5",
  warning: "M8 1.8 15 14H1zM8 6.3v3.5M8 11.6v.3",
  bad: "M4 4l8 8M12 4l-8 8",
  unknown: "M5.5 6a2.5 2.5 0 1 1 3.6 2.2C8.3 8.7 8 9.2 8 10M8 12.6v.3",
};
const SVG = "http://www.w3.org/2000/svg";

function element(tag, name, text = "") {
  const node = document.createElement(tag);
  if (name) node.className = name;
  node.textContent = text;
  return node;
}

function sign(light) {
  const picture = document.createElementNS(SVG, "svg");
  const known = { class: "ptsa-icon", viewBox: "0 0 16 16", width: 16, height: 16, fill: "none", stroke: "currentColor", "aria-hidden": "true" };
  for (const [key, value] of Object.entries(known)) picture.setAttribute(key, value);
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", SIGNS[light] ?? SIGNS.unknown);
  picture.append(path);
  return picture;
}

function light_cell({ light, word }) {
  const cell = element("td", `ptsa-light ptsa-light-${light}`);
  cell.append(sign(light), element("span", "", word));
  return cell;
}

function name_cell({ name, keeper, place }) {
  const cell = element("th", "ptsa-env-name");
  cell.scope = "row";
  cell.append(element("strong", "", name), element("span", "ptsa-env-keeper", keeper), element("span", "ptsa-env-place", place));
  return cell;
}

function holds_cell({ torch, python }) {
  const cell = element("td", "ptsa-env-holds");
  cell.append(element("span", "", torch), element("span", "ptsa-env-keeper", python));
  return cell;
}

function buttons_cell(model, row, view) {
  const cell = element("td", "ptsa-env-buttons");
  for (const [press, words] of row.buttons) {
    const button = element("button", "jupyter-button widget-button", words);
    button.type = "button";
    button.disabled = model.get("held");
    button.dataset.key = `${press} ${row.path}`;
    button.setAttribute("aria-label", `${words} ${row.name}`);
    button.addEventListener("click", () => model.send({ press, path: row.path, view }));
    cell.append(button);
  }
  return cell;
}

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  const table = element("table", "ptsa-table ptsa-environments");
  el.append(table);
  const draw = () => {
    const focused = table.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const head = element("tr", "");
    for (const words of model.get("headings")) {
      const cell = element("th", "", words);
      cell.scope = "col";
      head.append(cell);
    }
    const top = element("thead", "");
    const body = element("tbody", "");
    top.append(head);
    for (const row of model.get("rows")) {
      const line = element("tr", "");
      line.append(name_cell(row), light_cell(row), holds_cell(row), element("td", "ptsa-env-state", row.state), buttons_cell(model, row, view));
      body.append(line);
    }
    const caption = element("caption", "ptsa-env-caption", model.get("caption"));
    table.replaceChildren(caption, top, body);
    table.hidden = !model.get("rows").length;
    if (focused) [...table.querySelectorAll("button")].find((one) => one.dataset.key === focused)?.focus({ preventScroll: true });
  };
  const hold = () => {
    for (const button of table.querySelectorAll("button")) button.disabled = model.get("held");
  };
  model.on("change:rows change:headings change:caption", draw);
  model.on("change:held", hold);
  model.on("msg:custom", (message) => message.view === view && hand_on(el, model, message));
  draw();
}

export default { render };
