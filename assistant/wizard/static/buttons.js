// Back, the one main action, Cancel. The nodes stay while their words change, and so does the focus.
const SETTLE_MS = 400; // chosen: a second click of a double click does not press what the button says by then

function render({ model, el }) {
  const why = document.createElement("div");
  const foot = document.createElement("div");
  foot.className = "ptsa-footer";
  el.append(why, foot);
  const nodes = {};
  const draw = () => {
    why.innerHTML = model.get("why");
    for (const [name, words, able] of model.get("buttons")) {
      nodes[name] ??= added(name);
      nodes[name].textContent = words;
      nodes[name].disabled = !able;
    }
  };
  const added = (name) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = `jupyter-button widget-button ptsa-${name}`;
    button.classList.toggle("mod-primary", name === "main");
    button.addEventListener("click", () => model.send({ press: name, offer: model.get("offer") }));
    button.addEventListener("keydown", (event) => event.repeat && event.key !== "Tab" && event.preventDefault());
    foot.append(button);
    return button;
  };
  let timer = 0;
  model.on("change:buttons change:why", draw);
  model.on("change:offer", () => {
    foot.classList.add("ptsa-settling");
    clearTimeout(timer);
    timer = setTimeout(() => foot.classList.remove("ptsa-settling"), SETTLE_MS);
  });
  draw();
}

export default { render };
