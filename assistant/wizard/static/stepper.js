// The steps, one persistent status line and one real progress bar. All text arrives through traits, already translated.
function element(tag, name, attributes = {}) {
  const node = document.createElement(tag);
  node.className = name;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function draw_steps(list, model) {
  const current = model.get("current");
  list.replaceChildren(
    ...model.get("steps").map((step, index) => {
      const item = element("li", `ptsa-step ptsa-step-${step.phase}`);
      const button = element("button", "ptsa-step-button", { type: "button" });
      if (step.key === current) button.setAttribute("aria-current", "step");
      button.disabled = step.phase === "locked";
      const mark = element("span", "ptsa-step-mark", { "aria-hidden": "true" });
      mark.textContent = { done: "✓", failed: "✗", stale: "↻" }[step.phase] ?? String(index + 1);
      const title = element("span", "ptsa-step-title");
      title.textContent = step.title;
      const phase = element("span", "ptsa-step-phase");
      phase.textContent = step.word;
      button.append(mark, title, phase);
      button.addEventListener("click", () => model.send({ show: step.key }));
      item.append(button);
      return item;
    }),
  );
}

function draw_progress(bar, model) {
  const { running, done, total, text } = model.get("progress");
  bar.hidden = !running;
  bar.classList.toggle("ptsa-progress-unknown", !total);
  const share = total ? Math.min(100, Math.round((100 * done) / total)) : 0;
  bar.firstChild.style.width = total ? `${share}%` : "";
  if (total) bar.setAttribute("aria-valuenow", String(share));
  else bar.removeAttribute("aria-valuenow");
  bar.setAttribute("aria-valuetext", text || "");
}

function focus_heading(el) {
  const heading = el.closest(".ptsa-wizard")?.querySelector(".ptsa-heading");
  if (!heading) return;
  heading.focus({ preventScroll: true });
  const { top, bottom } = heading.getBoundingClientRect();
  if (top < 0 || bottom > window.innerHeight) el.scrollIntoView({ block: "start" });
}

function render({ model, el }) {
  const nav = element("nav", "ptsa-stepper", { "aria-label": model.get("label") });
  const list = element("ol", "ptsa-steps");
  const status = element("div", "ptsa-status", { role: "status" });
  const bar = element("div", "ptsa-progress", {
    role: "progressbar",
    "aria-valuemin": "0",
    "aria-valuemax": "100",
    "aria-label": model.get("progress_label"),
  });
  bar.append(element("div", "ptsa-progress-fill"));
  nav.append(list);
  el.append(nav, status, bar);
  const steps = () => draw_steps(list, model);
  const progress = () => draw_progress(bar, model);
  const say = () => (status.textContent = model.get("status"));
  model.on("change:steps", steps);
  model.on("change:progress", progress);
  model.on("change:status", say);
  model.on("change:current", () => {
    steps();
    setTimeout(() => focus_heading(el), 80); // the panel's own widgets draw in the same message burst
  });
  steps();
  progress();
  say();
}

export default { render };
