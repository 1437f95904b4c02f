// The title, the ways to the other pages, and the language. All texts arrive through traits.

// The nodes stay while their words change, and so does the focus.
function draw_links(nav, nodes, model) {
  for (const [key, words] of model.get("links")) {
    if (!nodes[key]) {
      nodes[key] = element("button", "ptsa-link", { type: "button" });
      nodes[key].addEventListener("click", () => model.send({ page: key }));
      nav.append(nodes[key]);
    }
    nodes[key].textContent = words;
    if (key === model.get("page")) nodes[key].setAttribute("aria-current", "page");
    else nodes[key].removeAttribute("aria-current");
  }
}

function draw_languages(select, model) {
  const options = model.get("languages").map(([code, name]) => {
    const option = element("option", "", { value: code, lang: code.replace("_", "-") });
    option.textContent = name;
    return option;
  });
  select.replaceChildren(...options);
}

function focus_heading(root) {
  const heading = root.querySelector(".ptsa-heading");
  if (!heading) return;
  const middle = heading.closest(".ptsa-middle");
  if (middle) middle.scrollTop = 0;
  heading.focus({ preventScroll: true });
  const { top, bottom } = root.getBoundingClientRect();
  if (top < 0 || bottom > window.innerHeight) root.scrollIntoView({ block: "nearest" });
}

// A file comes when its link is pressed or its fold is opened, to the page where that was.
function offer_files(root, model) {
  const view = view_of(root);
  const asked = (event) => {
    const link = event.target.closest?.("a[data-file]");
    if (link?.closest(".ptsa-wizard") !== root) return; // a wizard within another frame answers for itself
    event.preventDefault();
    event.stopPropagation();
    model.send({ file: link.dataset.file, view });
  };
  const opened = ({ target }) => {
    if (target.open && target.dataset.file && target.closest(".ptsa-wizard") === root) model.send({ file: target.dataset.file, view, read: true });
  };
  root.addEventListener("click", asked, true);
  root.addEventListener("toggle", opened, true);
  model.on("msg:custom", (message, buffers) => {
    if (message.view === view) (message.read ? unfold : save)(root, message, buffers);
  });
}

function unfold(root, { file }, buffers) {
  for (const fold of root.querySelectorAll("details[data-file]"))
    if (fold.dataset.file === file) {
      const [place, text] = [fold.lastElementChild, new TextDecoder().decode(buffers[0])];
      place[place.tagName === "PRE" ? "textContent" : "innerHTML"] = text; // a file as it is, else what the kernel drew
    }
}

function save(_root, { name }, buffers) {
  const address = URL.createObjectURL(new Blob(buffers));
  element("a", "", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// A text to copy stands in `data-copy` of a button; the button says that it was done.
function offer_copies(root, model) {
  root.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (button?.closest(".ptsa-wizard") !== root) return;
    const done = await copied(button.dataset.copy, root);
    const place = button.querySelector(".ptsa-tile-lead") ?? button;
    const before = place.dataset.words ?? place.textContent;
    place.dataset.words = before;
    place.textContent = model.get("words")[done ? "copied" : "not_copied"];
    setTimeout(() => (place.textContent = before), 2500);
  });
}

async function copied(text, root) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages that are not served securely have no clipboard: https://developer.mozilla.org/docs/Web/API/Clipboard
    const field = element("textarea", "ptsa-offscreen");
    field.value = text;
    root.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

// A wizard may stand within another page of ours.
function outermost(root) {
  const around = root.parentElement?.closest(".ptsa-wizard");
  return around ? outermost(around) : root;
}

function when_attached(el, then, tries = 200) {
  const root = el.closest(".ptsa-wizard");
  if (root) then(root);
  else if (tries) requestAnimationFrame(() => when_attached(el, then, tries - 1));
}

// A press on a card or a button of a drawing, and a choice among cards, go to the kernel by the key that they bear.
function offer_presses(root, model) {
  const asked = (event) => {
    const kind = event.type === "click" ? "button[data-press]:not([data-copy])" : "input[data-press]";
    const node = event.target.closest?.(kind);
    if (node?.closest(".ptsa-wizard") === root) model.send({ press: node.dataset.press, view: view_of(root) });
  };
  root.addEventListener("click", asked);
  root.addEventListener("change", asked);
}

// A letter typed on a button is no command of the notebook: there, `d d` would delete the cell that holds the wizard.
function keep_letters(root) {
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
  });
}

// What can be changed waits while something is changed; said here once, it costs no message for each control.
function hold_controls(root, model) {
  const hold = () => {
    const held = model.get("held");
    for (const control of root.querySelectorAll("select, input, textarea, button, fieldset")) {
      if (control.closest(".ptsa-wizard") !== root || control.closest(".ptsa-head, .ptsa-foot, .ptsa-fold")) continue;
      if (held && !control.disabled) control.dataset.held = control.disabled = true;
      else if (!held && control.dataset.held) delete control.dataset.held, (control.disabled = false);
    }
  };
  model.on("change:held", hold);
  new MutationObserver(hold).observe(root, { childList: true, subtree: true, attributeFilter: ["disabled"] });
  hold();
}

// A node that is redrawn, hidden or disabled takes the focus away with it: the new node of that key takes it up, else the
// heading, until the user goes elsewhere.
function keep_focus(root, signal) {
  let inside = false;
  let key = "";
  const leaves = (target) => target && !root.contains(target) && (inside = false);
  root.addEventListener("focusin", ({ target }) => ([inside, key] = [true, target.dataset?.press]));
  root.addEventListener("focusout", (event) => leaves(event.relatedTarget));
  document.addEventListener("pointerdown", (event) => leaves(event.target), { capture: true, signal });
  const take_up = () => {
    if (!inside || document.activeElement !== document.body) return;
    const again = key && root.querySelector(`[data-press="${CSS.escape(key)}"]:enabled`);
    if (again) again.focus({ preventScroll: true });
    else focus_heading(root);
  };
  const changes = { childList: true, subtree: true, attributeFilter: ["disabled", "hidden"] };
  new MutationObserver(() => setTimeout(take_up)).observe(root, changes);
}

// A part of the page that is not to be seen keeps its place among the others, of which none is made anew.
function hide_parts(root, model) {
  const hide = () => {
    const parts = root.querySelectorAll(":scope > .ptsa-middle > *");
    parts.forEach((part, place) => (part.hidden = model.get("hidden").includes(place)));
  };
  model.on("change:hidden", hide);
  new MutationObserver(hide).observe(root, { childList: true, subtree: true });
  hide();
}

// What was opened in a drawing stays open when it is made anew: known by its key or words, and which of those alike.
function keep_open(root) {
  const opened = new Set();
  const inside = (node) => [node, ...(node.querySelectorAll?.("details") ?? [])].filter((one) => one.matches?.("details"));
  const folds = (nodes) => {
    const alike = {};
    return [...nodes].flatMap(inside).map((fold) => {
      const name = fold.dataset.file ?? fold.firstElementChild.textContent;
      return [fold, `${name} ${(alike[name] = (alike[name] ?? 0) + 1)}`];
    });
  };
  const drawn = ({ removedNodes, addedNodes }) => {
    for (const [fold, name] of folds(removedNodes)) opened[fold.open ? "add" : "delete"](name);
    for (const [fold, name] of folds(addedNodes)) fold.open ||= opened.has(name);
  };
  new MutationObserver((records) => records.forEach(drawn)).observe(root, { childList: true, subtree: true });
}

function render({ model, el }) {
  const gone = element("div", "ptsa-gone", { role: "alert" });
  const head = element("div", "ptsa-head");
  const title = element("h1", "ptsa-title");
  const nav = element("nav", "ptsa-nav");
  const language = element("label", "ptsa-language");
  const words = element("span", "ptsa-offscreen");
  const select = element("select", "");
  const nodes = {};
  language.append(words, select);
  head.append(title, nav, language);
  el.append(gone, head);
  select.addEventListener("change", () => model.send({ language: select.value }));
  const draw = () => {
    const texts = model.get("words");
    title.textContent = texts.title ?? "";
    gone.textContent = texts.gone ?? "";
    words.textContent = texts.language ?? "";
    nav.setAttribute("aria-label", texts.title ?? "");
    draw_links(nav, nodes, model);
    select.value = model.get("language");
    when_attached(el, (root) => (root.lang = model.get("language").replace("_", "-")));
  };
  draw_languages(select, model);
  draw();
  model.on("change:words change:links change:page change:language", draw);
  // A view that has changed takes the focus to its heading; its widgets are drawn in the same burst of messages.
  // Whoever types in it, or elsewhere in the notebook, is left where he is.
  const arrive = (root) => {
    const [at, page] = [document.activeElement, outermost(root)];
    const elsewhere = at && !at.contains(page) && !page.contains(at);
    if (!elsewhere && !root.querySelector(".ptsa-middle")?.contains(at)) focus_heading(root);
  };
  model.on("change:view", () => setTimeout(() => when_attached(el, arrive), 80));
  const over = new AbortController();
  when_attached(el, (root) => {
    offer_files(root, model);
    offer_copies(root, model);
    offer_presses(root, model);
    keep_letters(root);
    hold_controls(root, model);
    keep_focus(root, over.signal);
    keep_open(root);
    hide_parts(root, model);
  });
  return () => over.abort();
}

export default { render };
