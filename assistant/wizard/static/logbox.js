// A place for a log of any size: pasted, dropped or chosen. It stays in the browser until the page's main button is
// pressed; then it is sent in pieces, each after the one before has arrived, so that no limit of a message is met.
const WHOLE = 100_000; // characters that a text area lays out without a pause; of a longer text both ends are shown
const SHOWN = 20_000; // characters of either end
// Bytes read or sent at a time: far below the 10 MiB of a message that tornado takes (its websocket_max_message_size),
// and so few that the page answers in between; measured on two busy cores, JupyterLab took up to 94 ms to send 1 MiB.
const PIECE = 2 ** 18;
const MOST = 500 * 2 ** 20; // bytes; chosen: more than any log that was seen

// Lets the browser draw and answer between two pieces of work.
const breath = () => new Promise((done) => setTimeout(done));

function lines_in(text) {
  return text.match(/\r\n?|\n/g)?.length ?? 0;
}

// PowerShell writes UTF-16, Chinese Windows GB 18030; the kernel looks closer, this is for the eye alone.
async function encoding_of(file) {
  const head = new Uint8Array(await file.slice(0, 4096).arrayBuffer());
  if (head[0] === 0xff && head[1] === 0xfe) return "utf-16le";
  if (head[0] === 0xfe && head[1] === 0xff) return "utf-16be";
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true });
    return "utf-8";
  } catch {
    return "gb18030";
  }
}

// Each task of the browser handles one piece, as all else of the page waits for it.
async function file_read(file) {
  const encoding = await encoding_of(file);
  const decoder = new TextDecoder(encoding);
  let [head, tail, lines, whole] = ["", "", 0, ""];
  for (let start = 0; start < file.size; start += PIECE) {
    const bytes = await file.slice(start, start + PIECE).arrayBuffer();
    const text = decoder.decode(bytes, { stream: start + PIECE < file.size });
    if (file.size <= WHOLE) whole += text;
    if (head.length < SHOWN) head = (head + text).slice(0, SHOWN);
    tail = (tail + text).slice(-SHOWN);
    lines += lines_in(text);
    await breath();
  }
  lines += tail && !"\r\n".includes(tail.at(-1)) ? 1 : 0;
  if (file.size <= WHOLE) return { text: whole, name: file.name, data: file };
  return { text: head, tail, size: file.size, lines, name: file.name, data: file };
}

async function text_read(text) {
  const encoder = new TextEncoder();
  const parts = [];
  let lines = "\r\n".includes(text.at(-1)) ? 0 : 1;
  for (let start = 0, end; start < text.length; start = end) {
    end = Math.min(text.length, start + PIECE);
    if (/[\ud800-\udbff]/.test(text[end - 1])) end -= 1; // the two halves of a sign stay together
    const piece = text.slice(start, end);
    parts.push(encoder.encode(piece));
    lines += lines_in(piece);
    await breath();
  }
  const data = new Blob(parts);
  return { text: text.slice(0, SHOWN), tail: text.slice(-SHOWN), size: data.size, lines, name: "", data };
}

function amount(size) {
  return size < 1e6 ? `${Math.ceil(size / 1e3)} kB` : `${Math.round(size / 1e6)} MB`;
}

// What stands in the box: all of a short log, both ends of a long one.
function shown_of({ text = "", tail = "" }, words) {
  if (!tail) return text;
  const before = text.slice(0, text.lastIndexOf("\n") + 1 || undefined);
  return `${before}\n⋯ ${words.gap ?? ""} ⋯\n\n${tail.slice(tail.indexOf("\n") + 1)}`;
}

function filled(sentence, values) {
  return (sentence ?? "").replace(/\{(\w+)\}/g, (_whole, name) => values[name] ?? "");
}

// One for each model: what was given and not sent yet outlives the views, which come and go with the page.
export default () => {
  const draft = { given: null, reading: null, views: new Set() };

  const redraw = () => draft.views.forEach((view) => view.draw());

  function changed(model, given) {
    if (!draft.given) model.send({ edited: true });
    draft.given = given;
    redraw();
  }

  // A long text or a file is read bit by bit; a press waits for it.
  function read(model, reading, name) {
    changed(model, { text: "", name, reading: true });
    const now = (draft.reading = reading.then(
      (given) => draft.reading === now && ((draft.given = given), redraw()),
      (error) => draft.reading === now && ((draft.given = { text: "", name, fault: String(error), unread: true }), redraw()),
    ));
  }

  function take_file(model, file) {
    if (file.size > MOST) changed(model, { text: "", name: file.name, fault: model.get("words").too_large, unread: true });
    else read(model, file_read(file), file.name);
  }

  function ask(model, message, buffer) {
    return new Promise((done) => {
      const answered = (answer) => {
        if (answer.id !== message.id || answer.piece !== message.piece) return;
        model.off("msg:custom", answered);
        done(answer);
      };
      model.on("msg:custom", answered);
      model.send(message, undefined, [buffer]);
    });
  }

  async function send(model, tell) {
    await draft.reading;
    const given = draft.given;
    if (!given) return; // the kernel has what is shown
    if (given.unread) throw new Error(given.fault);
    const data = given.data ?? new Blob([given.text]);
    const id = Math.random().toString(36).slice(2);
    for (let piece = 0; piece === 0 || piece * PIECE < data.size; piece += 1) {
      const end = Math.min(data.size, (piece + 1) * PIECE);
      const buffer = await data.slice(piece * PIECE, end).arrayBuffer();
      const message = { id, piece, last: end === data.size, name: given.name ?? "" };
      const { fault } = await ask(model, message, buffer);
      if (fault) {
        draft.given = { ...given, fault };
        redraw();
        throw new Error(fault);
      }
      tell(filled(model.get("words").sent, { done: amount(end), size: amount(data.size) }));
    }
    if (draft.given === given) draft.given = null;
    redraw();
  }

  function render({ model, el }) {
    const box = element("div", "ptsa-logdrop");
    const label = element("label", "ptsa-loglabel");
    const words = element("span", "");
    const about = Math.random().toString(36).slice(2);
    const area = element("textarea", "ptsa-logtext", { rows: 6, spellcheck: "false", "aria-describedby": about });
    const row = element("div", "ptsa-logrow");
    const choose = element("button", "jupyter-button widget-button ptsa-choose", { type: "button" });
    const clear = element("button", "jupyter-button widget-button", { type: "button" });
    const picker = element("input", "", { type: "file", hidden: "", tabindex: "-1", "aria-hidden": "true" });
    const state = element("span", "ptsa-logstate", { id: about });
    let sending = "";
    label.append(words, area);
    row.append(choose, clear, picker, state);
    box.append(label, row);
    el.append(box);

    const view = {
      draw() {
        const texts = model.get("words");
        const given = draft.given ?? model.get("shown");
        const text = given.reading ? "" : shown_of(given, texts);
        words.textContent = texts.label ?? "";
        choose.textContent = texts.choose ?? "";
        clear.textContent = texts.clear ?? "";
        if (area.value !== text) area.value = text;
        const held = Boolean(sending || given.reading || model.get("busy"));
        area.readOnly = Boolean(given.tail) || held;
        clear.hidden = !text && !given.name;
        choose.disabled = clear.disabled = held;
        const count = given.lines?.toLocaleString(model.get("language"));
        const ends = given.tail && filled(texts[given.lines > 1 ? "ends" : "one"], { size: amount(given.size), lines: count });
        const says = given.fault || sending || (given.reading && texts.reading) || ends || "";
        state.textContent = [given.name, says].filter(Boolean).join(" · ");
        state.classList.toggle("ptsa-logfault", Boolean(given.fault));
      },
    };
    draft.views.add(view);

    area.addEventListener("input", () => changed(model, { text: area.value }));
    // The browser would lay out all of a long text before it answers again.
    area.addEventListener("paste", (event) => {
      const [file] = event.clipboardData.files;
      const text = file ? "" : event.clipboardData.getData("text/plain");
      const long = Boolean((draft.given ?? model.get("shown")).tail);
      if (model.get("busy") || sending) return event.preventDefault();
      if (!file && !long && text.length + area.value.length <= WHOLE) return;
      event.preventDefault();
      if (file) return take_file(model, file);
      const [before, after] = long ? ["", ""] : [area.value.slice(0, area.selectionStart), area.value.slice(area.selectionEnd)];
      const all = before + text + after;
      if (all.length <= WHOLE) changed(model, { text: all });
      else read(model, breath().then(() => text_read(all)), "");
    });
    area.addEventListener("keydown", (event) => event.stopPropagation());
    choose.addEventListener("click", () => picker.click());
    picker.addEventListener("change", () => {
      const [file] = picker.files;
      picker.value = "";
      if (file) take_file(model, file);
    });
    clear.addEventListener("click", () => {
      draft.reading = null;
      changed(model, { text: "" });
      area.focus();
    });

    const over = new AbortController();
    const at_root = (root) => {
      const { signal } = over;
      const drop_here = (event) => {
        if (![...event.dataTransfer.types].includes("Files")) return;
        event.preventDefault(); // else the browser leaves the page for the file
        box.classList.toggle("ptsa-over", event.type === "dragover");
        const [file] = event.dataTransfer.files;
        if (event.type === "drop" && file && !model.get("busy") && !sending) take_file(model, file);
      };
      for (const name of ["dragover", "drop"]) root.addEventListener(name, drop_here, { signal });
      root.addEventListener("dragleave", () => box.classList.remove("ptsa-over"), { signal });
      root.addEventListener(
        "ptsa-press",
        ({ detail }) => {
          if (detail.name !== "main" || !draft.given || sending) return;
          const tell = (text) => ((sending = text), view.draw());
          tell(model.get("words").sending ?? "…");
          detail.before.push(send(model, tell).finally(() => tell("")));
        },
        { signal },
      );
    };
    const attach = (tries) => {
      const root = el.closest(".ptsa-wizard");
      if (root) at_root(root);
      else if (tries) requestAnimationFrame(() => attach(tries - 1));
    };
    attach(200);

    model.on("change:words change:busy change:language", view.draw);
    model.on("change:shown", () => ((draft.given = null), view.draw()));
    view.draw();
    return () => (over.abort(), draft.views.delete(view));
  }

  return { render };
};
