// The steps, one persistent status line and one real progress bar. All text arrives through traits, already translated.
const SVG = "http://www.w3.org/2000/svg";
const SLOW_SECONDS = 10; // chosen: from then on the time is shown

function element(tag, name, attributes = {}) {
  const node = document.createElement(tag);
  node.className = name;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function icon(path) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 16 16");
  drawing.setAttribute("class", "ptsa-icon");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  drawing.append(line);
  return drawing;
}

function draw_steps(list, model) {
  const current = model.get("current");
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  list.replaceChildren(
    ...model.get("steps").map(([key, name], index) => {
      const [state, word] = model.get("phases")[index];
      const sign = model.get("words").signs[state];
      const item = element("li", `ptsa-step ptsa-step-${state}`);
      const button = element("button", "ptsa-step-button", { type: "button", "data-key": key });
      if (key === current) button.setAttribute("aria-current", "step");
      button.disabled = state === "locked";
      const mark = element("span", "ptsa-step-mark", { "aria-hidden": "true" });
      mark.append(sign ? icon(sign) : String(index + 1));
      const title = element("span", "ptsa-step-title");
      title.textContent = name;
      const phase = element("span", "ptsa-step-phase");
      phase.textContent = word;
      button.append(mark, title, phase);
      button.addEventListener("click", () => model.send({ show: key }));
      item.append(button);
      return item;
    }),
  );
  if (focused) list.querySelector(`[data-key="${focused}"]`)?.focus({ preventScroll: true });
}

function draw_progress(bar, model) {
  const { running, share, total, text, figures } = model.get("progress");
  bar.hidden = !running;
  bar.classList.toggle("ptsa-progress-unknown", !total);
  bar.firstChild.style.width = total ? `${share}%` : "";
  if (total) bar.setAttribute("aria-valuenow", String(share));
  else bar.removeAttribute("aria-valuenow");
  bar.setAttribute("aria-valuetext", [text, figures].filter(Boolean).join(" · "));
}

function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

// Ticks in the browser, so that it costs no message; said to nobody's screen reader, which would be told every second.
function draw_time(line, model) {
  const { running, since, figures } = model.get("progress");
  const { elapsed = "" } = model.get("words");
  const seconds = Date.now() / 1000 - since;
  const slow = seconds >= SLOW_SECONDS ? elapsed.replace("{time}", clock(seconds)) : "";
  line.textContent = running ? [figures, slow].filter(Boolean).join(" · ") : "";
}

function focus_heading(el) {
  const heading = el.closest(".ptsa-wizard")?.querySelector(".ptsa-heading");
  if (!heading) return;
  heading.focus({ preventScroll: true });
  const { top, bottom } = heading.getBoundingClientRect();
  if (top < 0 || bottom > window.innerHeight) el.scrollIntoView({ block: "start" });
}

// A file comes when its link is pressed or its fold is opened, to the page where that was.
function offer_files(root, model) {
  const view = Math.random().toString(36).slice(2);
  const asked = (event) => {
    const link = event.target.closest?.("a[data-file]");
    if (!link) return;
    event.preventDefault();
    event.stopPropagation();
    model.send({ file: link.dataset.file, view });
  };
  const opened = ({ target }) => {
    if (target.open && target.dataset.file) model.send({ file: target.dataset.file, view, read: true });
  };
  root.addEventListener("click", asked, true);
  root.addEventListener("toggle", opened, true);
  model.on("msg:custom", (message, buffers) => {
    if (message.view === view) (message.read ? unfold : save)(root, message, buffers);
  });
}

function unfold(root, { file }, buffers) {
  for (const fold of root.querySelectorAll("details[data-file]"))
    if (fold.dataset.file === file) fold.querySelector("pre").textContent = new TextDecoder().decode(buffers[0]);
}

function save(_root, { name }, buffers) {
  const address = URL.createObjectURL(new Blob(buffers));
  element("a", "", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function when_attached(el, then, tries = 200) {
  const root = el.closest(".ptsa-wizard");
  if (root) then(root);
  else if (tries) requestAnimationFrame(() => when_attached(el, then, tries - 1));
}

// A letter typed on a button is no command of the notebook: there, `d d` would delete the cell that holds the wizard.
function keep_letters(root) {
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
  });
}

// What can be changed waits while something runs; said here once, it costs no message for each control.
function hold_controls(root, model) {
  const hold = () => {
    const { running } = model.get("progress");
    for (const control of root.querySelectorAll("select, input, textarea, button, fieldset")) {
      if (control.closest(".ptsa-wizard") !== root || control.closest(".ptsa-stepper, .ptsa-footer")) continue;
      if (running && !control.disabled) control.dataset.held = control.disabled = true;
      else if (!running && control.dataset.held) delete control.dataset.held, (control.disabled = false);
    }
  };
  model.on("change:progress", hold);
  new MutationObserver(hold).observe(root, { childList: true, subtree: true, attributeFilter: ["disabled"] });
  hold();
}

// A node that is redrawn or disabled takes the focus away with it: the heading takes it up, until the user goes elsewhere.
function keep_focus(root, signal) {
  let inside = false;
  const leaves = (target) => target && !root.contains(target) && (inside = false);
  root.addEventListener("focusin", () => (inside = true));
  root.addEventListener("focusout", (event) => leaves(event.relatedTarget));
  document.addEventListener("pointerdown", (event) => leaves(event.target), { capture: true, signal });
  const take_up = () => inside && document.activeElement === document.body && focus_heading(root);
  const changes = { childList: true, subtree: true, attributeFilter: ["disabled"] };
  new MutationObserver(() => setTimeout(take_up)).observe(root, changes);
}

function render({ model, el }) {
  const title = element("div", "ptsa-title");
  const gone = element("div", "ptsa-gone", { role: "alert" });
  const nav = element("nav", "ptsa-stepper");
  const list = element("ol", "ptsa-steps");
  const line = element("div", "ptsa-line");
  const status = element("div", "ptsa-status", { role: "status" });
  const time = element("div", "ptsa-time", { "aria-hidden": "true" });
  const bar = element("div", "ptsa-progress", { role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100" });
  bar.append(element("div", "ptsa-progress-fill"));
  nav.append(list);
  line.append(status, time);
  el.append(gone, title, nav, line, bar);
  const steps = () => draw_steps(list, model);
  const progress = () => (draw_progress(bar, model), draw_time(time, model));
  const say = () => (status.textContent = model.get("status"));
  const words = () => {
    const texts = model.get("words");
    title.textContent = texts.title ?? "";
    gone.textContent = texts.gone ?? "";
    nav.setAttribute("aria-label", texts.steps ?? "");
    bar.setAttribute("aria-label", texts.progress ?? "");
    when_attached(el, (root) => (root.lang = model.get("language")));
  };
  model.on("change:steps change:phases", steps);
  model.on("change:progress", progress);
  model.on("change:status", say);
  model.on("change:words", words);
  model.on("change:language", words);
  model.on("change:current", () => {
    steps();
    setTimeout(() => focus_heading(el), 80); // the panel's own widgets draw in the same message burst
  });
  words();
  steps();
  progress();
  say();
  const over = new AbortController();
  when_attached(el, (root) => {
    offer_files(root, model);
    keep_letters(root);
    hold_controls(root, model);
    keep_focus(root, over.signal);
  });
  const ticking = setInterval(() => draw_time(time, model), 1000);
  return () => (clearInterval(ticking), over.abort());
}

export default { render };
