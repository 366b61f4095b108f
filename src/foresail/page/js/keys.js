// Keys for everything, and light or dark.

import { pictures, soil } from "./drawing.js";
import { filterChanged, toggle } from "./filter.js";
import { turnImportance } from "./importance.js";
import { goTo, play } from "./moment.js";
import { readInk } from "./pen.js";
import { CLASSES, state, ui } from "./state.js";
import { select } from "./story.js";
import { $, el } from "./words.js";

// Keys, what they do in words, and the action where it is one key's.
const KEYS = [["/", "filter", () => $("words").focus()], ["j k", "next, previous trial of the table", null], ["1 2 3 4", "show or hide a class", null],
  ["[ ]", "back, forward in time", null], ["space", "play the study", null], ["n", "now", () => goTo(null)], ["t", "light or dark", () => theme(true)],
  ["i", "importance for value or speed", turnImportance], ["Esc", "close; take chosen ranges and zooms back", null], ["?", "these keys", () => $("keys").showModal()]];

export function listenToKeys() {
  $("key-list").append(...KEYS.flatMap(([key, what]) => [el("dt", {}, ...key.split(" ").flatMap((k) => [el("kbd", {}, k), " "])), el("dd", {}, what)]));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      document.activeElement.blur();
      if (!$("keys").open) escape();
      return;
    }
    if (event.target.closest("input, dialog, button") && !(event.target.id === "slider" && event.key !== " ")) return;
    const act = actionOf(event.key);
    if (!act) return;
    event.preventDefault();
    act();
  });
}
function actionOf(key) {
  const step = Math.max(1, Math.round(state.last / 100)), name = CLASSES[key - 1];
  const paired = { j: () => move(1), k: () => move(-1), "[": () => goTo((ui.until ?? state.last) - step), "]": () => ui.until !== null && goTo(ui.until + step), " ": play };
  return paired[key] ?? (name && (() => toggle(name))) ?? KEYS.find(([own]) => own === key)?.[2];
}
function move(by) {
  const rows = ui.rows, at = rows.indexOf(ui.selected), next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  if (next !== undefined) select(next);
}
function escape() {
  const zoomed = Object.values(pictures).filter((picture) => picture.zoom);
  if (!$("story").hidden) select(null);
  else if (ui.brushes.size || ui.words) {
    ui.brushes.clear();
    ui.words = $("words").value = "";
    filterChanged();
  } else {
    for (const picture of zoomed) picture.zoom = null;
    if (zoomed.length) soil(...zoomed.map((picture) => picture.id));
  }
}

export function listenToTheme() {
  theme(false);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(false));
  $("theme").addEventListener("click", () => theme(true));
}
function theme(turn) {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  if (turn) localStorage.setItem("foresail-theme", root.dataset.theme === "dark" ? "light" : "dark");
  root.dataset.theme = localStorage.getItem("foresail-theme") ?? (dark.matches ? "dark" : "light");
  readInk();
  if (state.about) soil();
}
