// Takes a model, hands it to Python in a worker, and draws what comes back. No request carries anything of the model.

import { filled, language, speak } from "../words.js";
import { TEXTS } from "./texts.js";

const at = (id) => document.getElementById(id);
const FEW = 3;  // targets

let chosen = null;  // {files, model}: what was dropped or chosen last
let answers = null;  // one for each target
let proposed = null;  // {file, sizes}: what could stand in place of its open sizes
let worker = null;
let isReady = false;
let said = { key: "starting", values: {} };  // in the status line

function words(key, values = {}) {
  return filled(TEXTS[language][key], values);
}

function element(tag, name, content = "") {
  const node = document.createElement(tag);
  if (name) node.className = name;
  node.append(...[content].flat());
  return node;
}

function say(key, values = {}) {
  said = { key, values };
  at("status").textContent = words(key, values);
}

function work(isOn) {
  at("bar").hidden = at("stop").hidden = !isOn;
}

function complain(message, hint = "") {
  at("error").replaceChildren(...(message ? [element("p", "error", message)] : []), ...(hint ? [element("p", "", hint)] : []));
}

function end() {
  worker?.terminate();
  worker = null;
  isReady = false;
}

// Python: one worker, begun with the page, and anew when it was stopped or has failed.
function begin() {
  end();
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.addEventListener("message", ({ data }) => HEARD[data.kind](data));
  worker.addEventListener("error", (event) => HEARD.broken({ reason: event.message ?? "" }));
}

const HEARD = {
  ready() {
    isReady = true;
    if (!chosen) say("ready");
  },
  checking({ name, at: place, all }) {
    say("checking", { model: chosen.model, name, at: place + 1, all });
    at("bar").max = all;
    at("bar").value = place;
  },
  check({ answers: found, isOpen }) {
    work(false);
    answers = found;
    at("propose").hidden = !isOpen;
    say("done", { model: chosen.model });
    drawAnswers();
    at("model").focus();
  },
  propose({ file, sizes }) {
    work(false);
    say("done", { model: chosen.model });
    proposed = { file, sizes };
    drawSizes();
    at("sizes-title").focus();
  },
  fix({ file, note, apart, content }) {
    work(false);
    say("made", { file });
    at("note").textContent = [note, apart ? words("apart") : ""].filter(Boolean).join(" ");
    save(file, content, "application/octet-stream");
  },
  refused({ error, hint, memory }) {
    work(false);
    say(answers ? "done" : "ready", { model: chosen.model });
    complain(memory ? words("memory", { model: chosen.model }) : error, hint);
  },
  broken({ reason }) {
    const last = reason.trim().split("\n").pop();
    work(false);
    complain(words(isReady ? "broken" : "unstarted", { reason: last }));
    at("status").textContent = "";
    chosen = null;
    if (isReady) begin();
    else end();
  },
};

function ask(kind, more = {}) {
  complain("");
  at("bar").removeAttribute("value");
  if (!worker) begin();
  work(true);
  worker.postMessage({ work: kind, ...chosen, language, ...more });
}

function check() {
  answers = proposed = null;
  at("answer").hidden = at("fix").hidden = true;
  say(isReady ? "reading" : "starting", { model: chosen.model });
  ask("check");
}

function take(files) {
  if (!at("bar").hidden) begin();  // another model is in work, which is wanted no more
  const models = files.filter((file) => /\.(onnx|ort)$/i.test(file.name));
  if (models.length > 1) return complain(words("several"));
  if (!models.length && files.length !== 1) return complain(words("none"));
  chosen = { files, model: (models[0] ?? files[0]).name };
  check();
}

// A folder is among the files, too, as one that cannot be read.
function filesOf({ items }) {
  const files = [...items].filter((item) => item.kind === "file" && !item.webkitGetAsEntry()?.isDirectory);
  return files.map((item) => item.getAsFile());
}

function drawAnswers() {
  at("model").textContent = chosen.model;
  const open = [...at("targets").children].map((target) => target.open);  // what was open before stays so in other words
  at("targets").replaceChildren(...answers.map(drawTarget));
  at("targets").firstElementChild.open = answers.length <= FEW;  // of many, the verdicts are seen side by side first
  [...at("targets").children].forEach((target, place) => (target.open ||= Boolean(open[place])));
  at("answer").hidden = false;
}

function drawTarget(answer) {
  const box = element("details", `target ${answer.mark}`);
  const summary = element("summary", "", [element("strong", "", answer.name), element("span", "", answer.verdict)]);
  box.append(summary);
  if (answer.npu) box.append(element("p", "", answer.npu));
  box.append(drawTable(answer));
  if (answer.findings.length) {
    box.append(element("h3", "", words("findings")), element("ul", "findings", answer.findings.map(drawFinding)));
  }
  box.append(drawPicture(answer));
  return box;
}

function drawFinding({ severity, text, remedies }) {
  const item = element("li", severity, [element("b", "", words(severity)), " ", text]);
  const fixes = remedies.map((remedy) =>
    element("li", "", [remedy.text, ...remedy.commands.map((line) => element("code", "", line))]));
  if (fixes.length) item.append(element("ul", "remedies", fixes));
  return item;
}

// The roles are told, as the stylesheet takes the table apart on a narrow screen.
function role(node, name) {
  node.setAttribute("role", name);
  return node;
}

function drawTable({ name, headings, rows }) {
  const head = headings.map((text) => role(element("th", "", text), "columnheader"));
  const lines = rows.map(({ mark, cells }) => {
    const own = cells.map((text, column) => {
      const cell = role(element(column ? "td" : "th", "", text), column ? "cell" : "rowheader");
      cell.dataset.heading = text ? headings[column] : "";
      return cell;
    });
    return role(element("tr", mark, own), "row");
  });
  const table = role(element("table", "", [
    element("caption", "", words("table", { name })),
    role(element("thead", "", role(element("tr", "", head), "row")), "rowgroup"),
    role(element("tbody", "", lines), "rowgroup"),
  ]), "table");
  return table;
}

function drawSizes() {
  const fields = proposed.sizes.map(({ name, size, fixed, inputs, why }) => {
    const field = element("input");
    Object.assign(field, { type: "number", name, min: 1, max: 2 ** 31 - 1, step: 1, value: size, required: true });
    field.readOnly = fixed;  // the weights ask for it
    return element("li", "", [element("label", "", [element("b", "", name), field]), element("span", "quiet", `${why} (${inputs})`)]);
  });
  at("sizes").replaceChildren(...fields);
  at("note").textContent = "";
  at("fix").hidden = false;
}

function drawPicture({ name, verdict, picture }) {
  const box = element("details", "picture", element("summary", "", words("picture")));
  const image = element("img");
  image.alt = `${name}: ${verdict}`;
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture)}`;
  box.append(element("div", "scroll", image));
  return box;
}

function save(name, content, type) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);  // ms; the browser has taken it by then
}

at("files").addEventListener("change", () => {
  const files = [...at("files").files];
  at("files").value = "";  // so that the same file can be chosen again
  if (files.length) take(files);
});
at("stop").addEventListener("click", () => {
  begin();
  work(false);
  say("stopped");
});
at("propose").addEventListener("click", () => {
  say("reading", { model: chosen.model });
  ask("propose");
});
at("fix").addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = [...at("fix").querySelectorAll("input:not([readonly])")];
  say("fixing", { file: proposed.file });
  ask("fix", { sizes: Object.fromEntries(fields.map((field) => [field.name, Number(field.value)])) });
});
at("save").addEventListener("click", () => {
  const found = answers.map(({ answer }) => answer);
  save(`${chosen.model}.check.json`, JSON.stringify(found, null, 2), "application/json");
});
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind === "drop") take(filesOf(event.dataTransfer));
  });
}

speak(TEXTS, () => {
  say(said.key, said.values);
  complain("");
  if (answers) check();  // what Python says of the model is asked for anew
});
begin();
