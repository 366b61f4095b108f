// The trials as text, sortable.

import { soil } from "./drawing.js";
import { LOOKS } from "./looks.js";
import { chanceOf, CLASSES, classOf, coreTime, finalOf, isMax, speedOf, statusOf, ui } from "./state.js";
import { select } from "./story.js";
import { $, configText, count, duration, el, isNone, number } from "./words.js";

const MOST_ROWS = 100;
// Title, what is sorted by, text.
const COLUMNS = [
  ["trial", (t) => t.n, (t) => String(t.n)], ["status", statusOf, statusOf], ["class", (t) => CLASSES.indexOf(classOf(t)), null],
  ["best", (t) => t.best, (t) => number(t.best, 5)], ["at step", (t) => t.best_step, (t) => (t.best_step ? String(t.best_step) : "–")],
  ["last", (t) => t.value, (t) => number(t.value, 5)], ["step", (t) => t.step, (t) => (t.max_steps ? `${t.step}/${t.max_steps}` : String(t.step))],
  ["chance", chanceOf, (t) => number(chanceOf(t), 2)], ["expected", finalOf, (t) => number(finalOf(t), 4)],
  ["steps/s", speedOf, (t) => number(speedOf(t), 3)], ["attempts", (t) => t.attempts, (t) => String(t.attempts)],
  ["core time", coreTime, (t) => duration(coreTime(t))], ["configuration", null, null],
];
const TEXTS = ["status", "class", "configuration"];
const kind = (title) => (TEXTS.includes(title) ? "" : "number");

function sortedRows() {
  const [name, way] = ui.sort, by = COLUMNS.find(([title]) => title === name)[1], sign = way ?? (name === "best" && !isMax() ? 1 : -1);
  const order = ([a], [b]) => (isNone(a) || isNone(b) ? isNone(a) - isNone(b) : sign * (a < b ? -1 : a > b ? 1 : 0));
  return ui.shown.map((t) => [by(t), t]).sort(order).map(([, t]) => t);
}
export function drawTable() {
  const head = $("table").querySelector("thead tr"), [name, way] = ui.sort, rows = sortedRows();
  if (!head.children.length) head.append(...COLUMNS.map(([title, by]) => el("th", { scope: "col", class: kind(title), onclick: () => by && sortBy(title) }, title)));
  for (const th of head.children) th.setAttribute("aria-sort", th.textContent !== name ? "none" : (way ?? (isMax() ? -1 : 1)) < 0 ? "descending" : "ascending");
  const first = rows.slice(0, MOST_ROWS);
  ui.rows = first.map((t) => t.n);
  $("table").querySelector("tbody").replaceChildren(...first.map(rowOf));
  $("table").querySelector("h2 small").textContent = rows.length > MOST_ROWS ? `the first ${MOST_ROWS} of ${count(rows.length)}: filter or sort for others` : "";
}
function rowOf(t) {
  const name = classOf(t);
  const cells = COLUMNS.map(([title, , text]) => {
    if (title === "class") return el("td", { class: name }, el("span", { class: "mark", "aria-hidden": "true" }, LOOKS[name].glyph), name === "none" ? "–" : name);
    if (title === "configuration") return el("td", { class: "config", title: configText(t) }, configText(t));
    return el("td", { class: kind(title) }, text(t));
  });
  return el("tr", { "data-trial": t.n, "aria-selected": t.n === ui.selected, onclick: () => select(t.n) }, ...cells);
}
function sortBy(title) {
  const [name, way] = ui.sort;
  ui.sort = [title, name === title ? -(way ?? (isMax() ? -1 : 1)) : TEXTS.includes(title) || title === "trial" ? 1 : -1];
  soil("table");
}
