// Lets a reader of a lesson change its lines and run them in the page, by the same Python that printed their answers.

import { filled } from "../words.js";
import { TEXTS } from "./texts.js";

// What needs neither this machine, packages that a browser lacks, nor another process.
const RUNS_HERE = /^\$ ((?:echo (?:'[^']*'|"[^"]*") \| )?assistant (?:catalog|detect|diagnose|doctor|export --list|fit|plan|recipes)\b.*)$/;

const language = document.documentElement.lang.startsWith("zh") ? "zh_CN" : "en";
const words = TEXTS[language];
let worker = null;
let isReady = false;
let reason = "";
const waiting = [];  // forms whose lines are to be answered, in the order in which they were asked

function element(name, own = {}, ...content) {
  const node = Object.assign(document.createElement(name), own);
  node.append(...content);
  return node;
}

function show(form, said, printed = "") {
  form.elements.status.value = said;
  form.nextElementSibling.hidden = !printed;
  form.nextElementSibling.textContent = printed;
}

// Python: one worker for the page, begun when a reader opens the first fold.
function begin() {
  if (worker) return;
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.addEventListener("message", ({ data }) => HEARD[data.kind](data));
  worker.addEventListener("error", (event) => HEARD.broken({ reason: event.message ?? "" }));
}

const HEARD = {
  ready() {
    isReady = true;
    for (const form of waiting) show(form, words.running);
  },
  answer({ printed }) {
    show(waiting.shift(), printed ? "" : words.nothing, printed);
  },
  broken(event) {
    reason = event.reason.trim().split("\n").pop();
    for (const form of waiting.splice(0)) show(form, filled(words.broken, { reason }));
  },
};

function ask(form) {
  if (reason) return show(form, filled(words.broken, { reason }));
  if (waiting.includes(form)) return;
  begin();
  waiting.push(form);
  show(form, isReady ? words.running : words.starting);
  worker.postMessage({ line: form.elements.line.value, language });
}

function formFor(line) {
  const form = element("form", {},
    element("input", { name: "line", value: line, ariaLabel: words.line, spellcheck: false, autocapitalize: "off", autocomplete: "off" }),
    element("button", {}, words.run),
    element("output", { name: "status" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(form);
  });
  return [form, element("pre", { hidden: true, tabIndex: 0 })];
}

for (const block of document.querySelectorAll(".highlight-console")) {
  const typed = block.textContent.split("\n").map((line) => line.match(RUNS_HERE)?.[1]).filter(Boolean);
  if (!typed.length) continue;
  const fold = element("details", { className: "try" }, element("summary", {}, words.fold), ...typed.flatMap(formFor));
  fold.addEventListener("toggle", begin);
  block.after(fold);
}
const start = element("a", { href: new URL("../index.html", import.meta.url) }, words.start);
if (document.querySelector(".try")) document.querySelector("h1").after(element("p", { className: "about-try" }, words.about, start, words.end));
