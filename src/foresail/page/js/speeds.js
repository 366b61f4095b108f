// Speed: measured, against what the other trials make one expect.

import { panelSays } from "./panels.js";
import { dashed, ink, mark } from "./pen.js";
import { classOf, isMarked, state, ui } from "./state.js";
import { configText, number } from "./words.js";

const rows = () => ui.panels.speeds.speeds.filter(([, , predicted]) => predicted !== null);

function frame() {
  const says = panelSays("speeds", () => (rows().length ? null : "at least 4 trials with a measured speed are needed"));
  if (says) return says;
  let low = Infinity, high = -Infinity;
  for (const [, measured, predicted] of rows()) {
    for (const speed of [-Math.log10(measured), -Math.log10(predicted)]) { low = Math.min(low, speed); high = Math.max(high, speed); }
  }
  const room = 0.06 * (high - low) || 0.1, axis = { type: "log", range: [low - room, high + room].map((v) => Number(v.toPrecision(3))) };
  return { x: { title: "predicted from the other trials, steps a second", ...axis }, y: { title: "measured", ...axis } };
}
function paint(pen, scale) {
  pen.strokeStyle = ink.faint;
  pen.lineWidth = 1;
  const ends = scale.xRange.map((v) => 10 ** v);
  dashed(pen, [4, 4], ends.map(scale.x), ends.map(scale.y));
  for (const [n, measured, predicted] of rows()) {
    const t = state.trials[n];
    if (!ui.shownSet.has(n)) continue;
    const x = scale.x(1 / predicted), y = scale.y(1 / measured);
    pen.fillStyle = n === ui.selected ? ink.accent : ink[classOf(t)];
    pen.globalAlpha = isMarked(t) ? 1 : 0.6;
    mark(pen, classOf(t), x, y, isMarked(t) ? 7 : 4.5);
    pen.fill();
    this.hits.push({ trial: n, xs: [x], ys: [y], lines: [`${number(1 / measured, 3)} steps a second, ${number(1 / predicted, 3)} predicted`, configText(t)] });
  }
  pen.globalAlpha = 1;
}
const note = () => `typically within a factor of ${number(ui.panels.speeds.factor, 3)}; each trial is predicted from the others`;
export const speeds = { frame, paint, note };
