// Which hyperparameters matter, for the value or for the speed.

import { soil } from "./drawing.js";
import { panelSays } from "./panels.js";
import { fitted, ink } from "./pen.js";
import { ui } from "./state.js";
import { $, count, number } from "./words.js";

const LONGEST = 18;
const found = () => ui.panels.importance[ui.importance];
const short = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);

function frame() {
  const says = panelSays("importance", (d) => (d[ui.importance].knobs.length ? null : "at least 8 trials with a value are needed"));
  if (says) return says;
  const { knobs } = found(), longest = Math.max(...knobs.map((k) => short(k.name).length));
  return { x: { title: "share of the variance", range: [0, 1.02] }, margin: { left: Math.min(150, 26 + 7 * longest) },
    y: { title: "", range: [knobs.length - 0.5, -0.5], ticks: knobs.map((k, i) => [i, short(k.name)]), grid: false, fixed: true } };
}
function paint(pen, scale) {
  const tall = Math.min(26, Math.abs(scale.y(0) - scale.y(1)) * 0.55), left = scale.x(0);
  for (const [i, { name, alone, total }] of found().knobs.entries()) {
    const top = scale.y(i) - tall / 2;
    for (const [share, colour, alpha] of [[total, ink.none, 0.5], [alone, ink.accent, 1]]) {
      pen.globalAlpha = alpha;
      pen.fillStyle = colour;
      pen.fillRect(left, top, scale.x(share) - left, tall);
    }
    const says = [`${number(alone, 2)} by itself`, `${number(total, 2)} with its interactions`];
    this.hits.push({ title: fitted(pen, name, 300), lines: says, box: [left, top, scale.x(Math.max(total, 0.02)), top + tall] });
  }
  pen.globalAlpha = 1;
}
function note() {
  const { trials, explained } = found(), sure = explained ?? -1;
  return `of ${count(trials)} trials; dark: by itself, light: with interactions. ` +
    (sure < 0.1 ? "The hyperparameters explain next to nothing yet: do not believe this" : `Explains ${Math.round(100 * sure)} % of trials not seen`);
}
export function turnImportance() {
  ui.importance = ui.importance === "value" ? "speed" : "value";
  sayImportance();
  soil("importance");
}
export function sayImportance() {
  $("importance").querySelector("h2 small").textContent = `for the ${ui.importance} (i)`;
}
export const importance = { frame, paint, note };
