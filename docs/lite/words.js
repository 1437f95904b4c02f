// A page's own words, in the browser's language or the one that is chosen on the page; Python's come from the assistant.

const CHINESE = /^zh\b/i;

export let language = CHINESE.test(navigator.language) ? "zh_CN" : "en";

export function filled(text, values = {}) {
  return text.replace(/\{(\w+)\}/g, (_whole, name) => values[name] ?? "");
}

// Writes the page in the language and offers the other one; `changed` is called after each change, and at once.
export function speak(texts, changed) {
  const choice = document.getElementById("language");
  const write = () => {
    document.documentElement.lang = language === "en" ? "en" : "zh-CN";
    document.title = texts[language].title;
    for (const node of document.querySelectorAll("[data-text]")) node.textContent = texts[language][node.dataset.text];
    changed();
  };
  choice.value = language;
  choice.addEventListener("change", () => {
    language = choice.value;
    write();
  });
  write();
}
