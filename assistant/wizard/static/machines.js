// Cards that are buttons: each is chosen or not, several may be. One of them is a stop of the Tab key; arrows go on.

function card_of({ key, title, chips, text, works }) {
  const card = element("button", "ptsa-machine-card", { type: "button", "data-key": key, "aria-pressed": "false" });
  const name = element("span", "ptsa-machine-name");
  const facts = element("span", "ptsa-machine-facts");
  const gets = element("span", `ptsa-machine-gets${works ? "" : " ptsa-machine-none"}`);
  name.textContent = title;
  facts.textContent = chips.join(" · ");
  gets.textContent = text;
  card.append(name, facts, gets);
  return card;
}

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

// The foot, too, should be seen at once; the frame has its height only when all of it is drawn.
function in_sight(el, tries = 60) {
  const root = el.closest(".ptsa-wizard");
  if (root?.querySelector(".ptsa-foot")) root.scrollIntoView({ block: "nearest" });
  else if (tries) requestAnimationFrame(() => in_sight(el, tries - 1));
}

function render({ model, el }) {
  const group = element("div", "ptsa-machines", { role: "group" });
  const nothing = element("p", "ptsa-lead");
  el.append(group, nothing);
  const visible = () => [...group.children].filter((card) => !card.hidden);
  const stop_at = (card) => {
    for (const other of group.children) other.tabIndex = other === card ? 0 : -1;
  };
  const mark = () => {
    const chosen = new Set(model.get("chosen"));
    for (const card of group.children) card.setAttribute("aria-pressed", String(chosen.has(card.dataset.key)));
  };
  const filter = () => {
    const shown = new Set(model.get("shown"));
    for (const card of group.children) card.hidden = !shown.has(card.dataset.key);
    nothing.textContent = shown.size ? "" : model.get("nothing");
    const first = visible().find((card) => card.tabIndex === 0) ?? visible()[0];
    if (first) stop_at(first);
  };
  const draw = () => {
    const at = document.activeElement?.dataset?.key;
    group.setAttribute("aria-label", model.get("description"));
    group.replaceChildren(...model.get("cards").map(card_of));
    mark();
    filter();
    const again = at && [...group.children].find((card) => card.dataset.key === at);
    if (again) stop_at(again), again.focus({ preventScroll: true });
  };
  group.addEventListener("click", (event) => {
    const card = event.target.closest("[data-key]");
    if (!card) return;
    const chosen = model.get("chosen").filter((key) => key !== card.dataset.key);
    if (card.getAttribute("aria-pressed") !== "true") chosen.push(card.dataset.key);
    stop_at(card);
    model.set("chosen", chosen);
    model.save_changes();
    mark();
  });
  group.addEventListener("keydown", (event) => {
    const cards = visible();
    const at = cards.indexOf(document.activeElement);
    const to = { Home: 0, End: cards.length - 1 }[event.key] ?? at + (STEPS[event.key] ?? 0);
    if (at < 0 || to === at || !cards[to]) return;
    event.preventDefault();
    stop_at(cards[to]);
    cards[to].focus();
  });
  in_sight(el);
  model.on("change:cards change:description change:nothing", draw);
  model.on("change:chosen", mark);
  model.on("change:shown", filter);
  draw();
}

export default { render };
