"use strict";
// Sorts a table by the column whose heading is pressed, shows the rows that hold what is typed, switches the language.
const collator = new Intl.Collator(undefined, { numeric: true });
const key = (row, place) => row.cells[place].dataset.sort ?? row.cells[place].textContent;

function sort(heading) {
  const table = heading.closest("table");
  const place = heading.cellIndex;
  const turn = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", turn === 1 ? "ascending" : "descending");
  const rows = Array.from(table.tBodies[0].rows, (row) => [key(row, place), row]);
  rows.sort((one, other) => turn * collator.compare(one[0], other[0]));
  table.tBodies[0].append(...rows.map((pair) => pair[1]));
}

for (const heading of document.querySelectorAll("th")) {
  heading.firstElementChild.addEventListener("click", () => sort(heading));
}

for (const field of document.querySelectorAll("input")) {
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of field.closest("section").querySelector("tbody").rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}

function speak(code) {
  document.documentElement.lang = code;
  for (const button of document.querySelectorAll("nav button")) button.ariaPressed = String(button.lang === code);
}

for (const button of document.querySelectorAll("nav button")) {
  button.addEventListener("click", () => speak(button.lang));
}
speak(document.documentElement.lang);
