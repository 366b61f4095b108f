// Which trials are shown: by class, by words and comparisons, by ranges of the hyperparameters.

import { chanceOf, className, classOf, CLASSES, finalOf, speedOf, state, statusOf, ui } from "./state.js";
import { LOOKS } from "./looks.js";
import { soil } from "./drawing.js";
import { placeOfValue } from "./values.js";
import { $, count, el, setText } from "./words.js";

const FIELDS = { trial: (t) => t.n, best: (t) => t.best, last: (t) => t.value, step: (t) => t.step, steps: (t) => t.step, p: chanceOf,
  final: finalOf, speed: speedOf, attempts: (t) => t.attempts };
const COMPARE = { "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b, "=": (a, b) => a === b };

function testsOf(words) {
  return words.trim().split(/\s+/).filter(Boolean).map((word) => {
    const [, name, sign, text] = word.match(/^([^<>=]+)(<=|>=|<|>|=)(.+)$/) ?? [];
    const wanted = Number(text);
    if (name && !Number.isNaN(wanted)) {
      return (t) => {
        const value = FIELDS[name] ? FIELDS[name](t) : t.config.find(([knob]) => knob === name)?.[1];
        return typeof value === "number" && COMPARE[sign](value, wanted);
      };
    }
    return (t) => searchText(t).includes(word.toLowerCase());
  });
}
const searchText = (t) => `trial ${t.n} ${statusOf(t)} ${classOf(t)} ${t.origin} ${t.config.map(([k, v]) => `${k}=${v}`).join(" ")}`.toLowerCase();

function isInRanges(t) {
  const knobs = state.about.axes.length;
  return [...ui.brushes].every(([axis, [low, high]]) => {
    const at = axis < knobs ? t.unit[axis] : placeOfValue(finalOf(t));
    return at !== null && at !== undefined && at >= low && at <= high;
  });
}

// Find anew who is shown.
export function refilter() {
  const tests = testsOf(ui.words);
  const all = !tests.length && !ui.off.size && !ui.brushes.size;
  const was = ui.shown;
  ui.shown = all ? state.trials : state.trials.filter((t) => !ui.off.has(classOf(t)) && tests.every((test) => test(t)) && isInRanges(t));
  if (all && was === ui.shown && ui.shownSet.size === ui.shown.length) return;
  const known = ui.shownSet;
  ui.shownSet = new Set(ui.shown.map((t) => t.n));
  if (known.size !== ui.shownSet.size || [...ui.shownSet].some((n) => !known.has(n))) ui.changes += 1;
}
export function filterChanged() {
  if (!state.about) return;
  refilter();
  drawFilter();
  soil("curves", "map", "gantt", "coordinates", "speeds", "table");
}

export function drawFilter() {
  const counts = Object.fromEntries(CLASSES.map((name) => [name, 0]));
  for (const t of state.trials) counts[classOf(t)] += 1;
  const names = CLASSES.filter((name) => counts[name] || (name !== "none" && counts.none < state.trials.length));
  const group = $("class-filter"), key = names.join();
  if (group.dataset.key !== key) {
    group.dataset.key = key;
    group.replaceChildren(...names.map((name) => el("button", { type: "button", class: name, "data-class": name, onclick: () => toggle(name) },
      el("span", { class: "mark", "aria-hidden": "true" }, LOOKS[name].glyph), className(name))));
  }
  for (const button of group.children) button.setAttribute("aria-pressed", !ui.off.has(button.dataset.class));
  const all = ui.shown.length === state.trials.length, brushed = ui.brushes.size ? " · ranges chosen, Esc takes them back" : "";
  setText("shown", all && !brushed ? "" : `${count(ui.shown.length)} of ${count(state.trials.length)} trials${brushed}`);
}
export function toggle(name) {
  if (!ui.off.delete(name)) ui.off.add(name);
  filterChanged();
}
