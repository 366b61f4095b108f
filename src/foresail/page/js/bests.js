// The best value over study time.

import { dashed, ink, line, shape } from "./pen.js";
import { state } from "./state.js";
import { roundUp, unitOf, valueRange } from "./values.js";
import { counted, duration, number } from "./words.js";

const textOf = ([, trial, step, value]) => (trial === null ? "taken back: it diverged" : `trial ${trial}, step ${step}: ${number(value, 5)}`);

function frame() {
  if (!state.bests.length) return "no value yet";
  const [unit, word] = unitOf(state.now_s), { goal } = state.about, values = state.bests.map((b) => b[3]).filter((v) => v !== null);
  return { x: { title: `study time, ${word}`, range: [0, roundUp(state.now_s / unit)] }, y: { title: goal.metric, ...valueRange(values) } };
}
function paint(pen, scale) {
  const [unit] = unitOf(state.now_s), { target } = state.about.goal;
  if (target !== null) {
    pen.strokeStyle = ink.accent;
    pen.lineWidth = 1.2;
    dashed(pen, [6, 4], [scale.left, scale.left + scale.width], [scale.y(target), scale.y(target)]);
  }
  pen.strokeStyle = pen.fillStyle = ink.accent;
  pen.lineWidth = 2.2;
  for (const [at, best] of state.bests.entries()) {
    if (best[3] === null) continue;
    const next = state.bests[at + 1], x = scale.x(best[0] / unit), y = scale.y(best[3]), end = scale.x((next?.[0] ?? state.now_s) / unit);
    line(pen, [x, end, ...(next && next[3] !== null ? [end] : [])], [y, y, ...(next && next[3] !== null ? [scale.y(next[3])] : [])]);
    shape(pen, "circle", x, y, 3.6);
    pen.fill();
    this.hits.push({ trial: best[1], title: `after ${duration(best[0])}`, lines: [textOf(best)], xs: [x], ys: [y] });
  }
}
function note() {
  const last = state.bests.at(-1);
  return `${counted(state.bests.length, "improvement")}; the last after ${duration(last[0])}, by trial ${last[1] ?? "–"}`;
}
export const bests = { frame, paint, note };
