// Learning curves, with where they may go.

import { targetLine } from "./picture.js";
import { area, dashed, ink, line, mark } from "./pen.js";
import { chanceOf, classOf, foremost, inOrder, isLive, isMarked, mayGoOn, state, ui } from "./state.js";
import { valueRange } from "./values.js";
import { count, counted, ordinal } from "./words.js";

const MOST_CURVES = 2000, MOST_SINGLE = 300, BANDED = 3;
const drawable = () => ui.shown.filter((t) => t.steps.length);
const isBest = (t) => state.study.best?.[0] === t.n;

function frame() {
  const drawn = drawable();
  if (!drawn.length) return state.trials.length ? (ui.shown.length ? "no trial has reported a value yet" : "no trial passes the filter") : "no trial yet";
  const values = [];
  let end = 0;
  for (const t of drawn) {
    for (const v of t.values) if (v !== null) values.push(v);
    end = Math.max(end, t.step, t.max_steps ?? 0);
  }
  const y = valueRange(values);
  return { x: { title: "step", range: [0, end * 1.02] }, y: { title: state.about.goal.metric, ...y } };
}
// Of very many, the best by themselves and the others together.
function parted(trials) {
  if (trials.length <= MOST_CURVES) return [trials, []];
  const single = new Set(foremost(trials, MOST_SINGLE));
  return [[...single], trials.filter((t) => !single.has(t))];
}
function still(pen, scale) {
  const [single, rest] = parted(drawable().filter((t) => !isLive(t)));
  if (rest.length) paintTogether(pen, scale, rest);
  const faint = Math.min(0.55, Math.max(0.09, 12 / Math.sqrt(single.length * 4)));
  for (const t of inOrder(single)) this.hits.push(paintCurve(pen, scale, t, faint));
}
function paint(pen, scale) {
  paintBands(pen, scale);
  targetLine(pen, scale);
  for (const t of inOrder(drawable().filter((t) => isLive(t) || isBest(t) || isMarked(t)))) this.hits.push(paintCurve(pen, scale, t, 1));
}
function paintCurve(pen, scale, t, faint) {
  const name = classOf(t), bold = isLive(t) || isBest(t), marked = isMarked(t);
  const xs = t.steps.map(scale.x), ys = t.values.map((v) => (v === null ? NaN : scale.y(v)));
  if (t.step > t.steps.at(-1) && t.value !== null) { xs.push(scale.x(t.step)); ys.push(scale.y(t.value)); }
  pen.strokeStyle = pen.fillStyle = t.n === ui.selected ? ink.accent : ink[name];
  pen.globalAlpha = marked ? 1 : bold || name === "promising" ? 0.95 : mayGoOn(t) ? Math.max(0.3, faint) : faint;
  pen.lineWidth = marked ? 2.6 : bold || name === "promising" ? 1.7 : 1;
  line(pen, xs, ys);
  if (bold || marked || xs.length === 1) { mark(pen, name, xs.at(-1), ys.at(-1), marked ? 5 : bold ? 4 : 2); pen.fill(); }
  pen.globalAlpha = 1;
  return { trial: t.n, xs, ys };
}
function banded() {
  const bands = ui.panels.forecasts?.bandOf ?? new Map();
  const chosen = [...bands.keys()].filter((n) => ui.shownSet.has(n) && mayGoOn(state.trials[n]));
  const best = chosen.sort((a, b) => chanceOf(state.trials[b]) - chanceOf(state.trials[a])).slice(0, BANDED);
  return [...new Set([...best, ...[ui.selected].filter((n) => bands.has(n))])];
}
function paintBands(pen, scale) {
  for (const n of banded()) {
    const [steps, low, innerLow, middle, innerHigh, high] = ui.panels.forecasts.bandOf.get(n), y = (values) => values.map(scale.y);
    const xs = steps.map(scale.x);
    pen.fillStyle = pen.strokeStyle = n === ui.selected ? ink.accent : ink[classOf(state.trials[n])];
    pen.globalAlpha = 0.1;
    area(pen, xs, y(low), y(high));
    pen.globalAlpha = 0.16;
    area(pen, xs, y(innerLow), y(innerHigh));
    pen.globalAlpha = 0.9;
    pen.lineWidth = 1.4;
    dashed(pen, [2, 3], xs, y(middle));
    pen.globalAlpha = 1;
  }
}
// Too many to tell apart: at each step that is drawn, what holds 90 % and half of them, and the median.
function paintTogether(pen, scale, trials) {
  const at = new Map();
  for (const t of trials) t.steps.forEach((step, i) => {
    if (t.values[i] === null) return;
    if (!at.has(step)) at.set(step, []);
    at.get(step).push(t.values[i]);
  });
  const steps = [...at.keys()].filter((step) => at.get(step).length > 20).sort((a, b) => a - b), xs = steps.map(scale.x);
  if (steps.length < 2) return;
  const sorted = steps.map((step) => Float64Array.from(at.get(step)).sort());
  const level = (q) => sorted.map((values) => scale.y(values[Math.floor(q * (values.length - 1))]));
  pen.fillStyle = pen.strokeStyle = ink.poor;
  for (const [q, alpha] of [[0.05, 0.18], [0.25, 0.28]]) {
    pen.globalAlpha = alpha;
    area(pen, xs, level(q), level(1 - q));
  }
  pen.globalAlpha = 0.9;
  line(pen, xs, level(0.5));
  pen.globalAlpha = 1;
}
function note() {
  const { every } = state.about, n = drawable().length, parts = [counted(n, "curve")];
  if (n > MOST_CURVES) parts[0] = `the ${MOST_SINGLE} best of ${count(n)} curves; the others together, as bands that hold 90 % and half of them, and their median`;
  if (every > 1) parts.push(`every ${ordinal(every)} step is drawn`);
  const trials = banded();
  if (trials.length) parts.push(`bands: where trial${trials.length > 1 ? "s" : ""} ${trials.join(", ")} will go, 90 % and half`);
  else if (!state.study.is_over && ui.panels.forecasts === undefined) parts.push("forecasting …");
  return parts.join("; ");
}
export const curves = { frame, still, paint, note };
