// Lists the lessons and the labs that are in the site, and leads to each page in the language that is chosen.

import { filled, language, speak } from "../words.js";
import { ALL_LABS, LABS, LESSONS } from "./contents.js";
import { TEXTS } from "./texts.js";

const at = (id) => document.getElementById(id);

function place(href, title, what = "") {
  const [item, link, about] = ["li", "a", "p"].map((name) => document.createElement(name));
  Object.assign(link, { href, textContent: title });
  about.textContent = what;
  item.append(link, ...(what ? [about] : []));
  return item;
}

speak(TEXTS, () => {
  const texts = TEXTS[language];
  const docs = language === "en" ? "docs" : `docs/${language}`;
  for (const link of document.querySelectorAll("[data-doc]")) link.href = `${docs}/${link.dataset.doc}`;
  at("lesson-list").replaceChildren(...LESSONS.map((one) => place(`${docs}/lessons/${one.name}.html`, one[language])));
  at("labs-what").textContent = filled(texts.labsWhat, { here: LABS.length, all: ALL_LABS });
  at("lab-list").replaceChildren(...LABS.map((one) =>
    place(`lab/index.html?path=${one.notebook}`, one[language], filled(texts.minutes, { count: one.minutes }))));
});
