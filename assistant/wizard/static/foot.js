// The main action, what is to be known of it, other actions; while something works, one bar, the time and Cancel.
const SETTLE_MS = 400; // chosen: a second click of a double click does not press what the button says by then
const SLOW_SECONDS = 10; // chosen: from then on the time is shown

function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

function draw_bar(bar, model) {
  const progress = model.get("progress");
  const known = typeof progress.share === "number";
  const { share } = progress;
  bar.classList.toggle("ptsa-progress-unknown", !known);
  bar.firstChild.style.width = known ? `${share}%` : "";
  if (known) bar.setAttribute("aria-valuenow", String(share));
  else bar.removeAttribute("aria-valuenow");
  bar.setAttribute("aria-valuetext", [progress.text, progress.figures].filter(Boolean).join(" · "));
}

// Ticks in the browser, so that it costs no message; hidden from screen readers, which would read it out every second.
function draw_time(line, model) {
  const progress = model.get("progress");
  const words = model.get("words");
  const seconds = Date.now() / 1000 - progress.since;
  const slow = seconds >= SLOW_SECONDS ? (words.elapsed ?? "").replace("{time}", clock(seconds)) : "";
  const known = progress.quiet && !slow ? [] : [progress.text, progress.figures];
  line.textContent = progress.running ? [...known, slow].filter(Boolean).join(" · ") : "";
}

// The ring, the words and the squares in a drawing say what the bar says: each shows the part that it is named for.
function draw_shown(el, model) {
  const root = el.closest(".ptsa-wizard");
  const { share, text, figures, since, checks } = model.get("progress");
  const known = typeof share === "number";
  const shown = { text, figures, share: known ? `${share} %` : "…", time: clock(Date.now() / 1000 - since) };
  root?.style.setProperty("--ptsa-share", `${known ? share : 0}%`);
  for (const node of root?.querySelectorAll("[data-shows]") ?? []) node.textContent = shown[node.dataset.shows] ?? "";
  for (const row of root?.querySelectorAll(".ptsa-squares") ?? []) {
    const [done, words] = [Math.round(checks * row.children.length), model.get("words").checks ?? ""];
    [...row.children].forEach((square, place) => square.classList.toggle("ptsa-good", place < done));
    row.setAttribute("aria-label", words.replace("{done}", done).replace("{total}", row.children.length));
  }
}

function render({ model, el }) {
  const foot = element("div", "ptsa-foot");
  const row = element("div", "ptsa-buttons");
  const note = element("div", "ptsa-note-line");
  const work = element("div", "ptsa-work");
  const time = element("div", "ptsa-time", { "aria-hidden": "true" });
  const bar = element("div", "ptsa-progress", { role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100" });
  bar.append(element("div", "ptsa-progress-fill"));
  work.append(time, bar);
  const status = element("div", "ptsa-offscreen ptsa-status", { role: "status" }); // the one live line
  foot.append(work, row, note);
  el.append(foot, status);
  const nodes = {};
  // What a page holds back until then, such as a long log, is sent first; what the button says then must be the same.
  const press = async (name, button) => {
    const [before, words] = [[], button.textContent];
    el.closest(".ptsa-wizard")?.dispatchEvent(new CustomEvent("ptsa-press", { detail: { name, before } }));
    if (!before.length) return model.send({ press: name, offer: model.get("offer"), view: view_of(el) });
    const all = await Promise.allSettled(before);
    const same = button.textContent === words && !button.disabled;
    if (same && all.every(({ status }) => status === "fulfilled")) model.send({ press: name, offer: null, view: view_of(el) });
  };
  const added = (name) => {
    const button = element("button", `jupyter-button widget-button ptsa-${name}`, { type: "button" });
    button.classList.toggle("mod-primary", name === "main");
    button.addEventListener("click", () => press(name, button));
    button.addEventListener("keydown", (event) => event.repeat && event.key !== "Tab" && event.preventDefault());
    row.append(button);
    return button;
  };
  const timers = new Map();
  const settle = (button) => {
    button.classList.add("ptsa-settling");
    clearTimeout(timers.get(button));
    timers.set(button, setTimeout(() => button.classList.remove("ptsa-settling"), SETTLE_MS));
  };
  // The nodes stay while their words change, and so does the focus.
  const draw = () => {
    const shown = new Set(model.get("buttons").map(([name]) => name));
    for (const [name, node] of Object.entries(nodes)) node.hidden = !shown.has(name);
    for (const [name, words, able] of model.get("buttons")) {
      nodes[name] ??= added(name);
      if (![words, ""].includes(nodes[name].textContent)) settle(nodes[name]);
      nodes[name].textContent = words;
      nodes[name].disabled = !able;
    }
    note.innerHTML = model.get("note");
  };
  const progress = () => {
    bar.setAttribute("aria-label", model.get("words").progress ?? "");
    const { running, quiet } = model.get("progress");
    work.hidden = !running;
    work.classList.toggle("ptsa-quiet", Boolean(quiet)); // what takes seconds only moves nothing
    draw_bar(bar, model);
    draw_time(time, model);
    draw_shown(el, model);
  };
  model.on("change:buttons change:note", draw);
  model.on("change:progress change:words", progress);
  const say = () => (status.textContent = model.get("status"));
  model.on("change:status", say);
  model.on("msg:custom", (message) => message.view === view_of(el) && hand_on(el, model, message));
  model.on("change:offer", () => nodes.main && settle(nodes.main));
  draw();
  say();
  progress();
  const tick = () => model.get("progress").running && (draw_time(time, model), draw_shown(el, model));
  const ticking = setInterval(tick, 1000);
  return () => clearInterval(ticking);
}

export default { render };
