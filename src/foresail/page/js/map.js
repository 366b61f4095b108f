// The map of both potentials: where a trial is expected to end, and how fast it goes.

import { targetLine } from "./picture.js";
import { ink, line, mark } from "./pen.js";
import { chanceOf, classOf, finalOf, forecastOf, inOrder, isLive, isMarked, isMax, mayGoOn, speedOf, state, ui } from "./state.js";
import { valueRange } from "./values.js";
import { isNone } from "./words.js";

const spots = () => ui.shown.filter((t) => speedOf(t) !== null && !isNone(finalOf(t)));
const isExpected = (trials) => ui.panels.forecasts?.spots?.length || trials.some((t) => t.final !== null);

function frame() {
  const trials = spots(), { metric } = state.about.goal;
  if (!trials.length) return "no trial has a measured speed yet";
  let low = Infinity, high = 0;
  for (const t of trials) { low = Math.min(low, speedOf(t)); high = Math.max(high, speedOf(t)); }
  const isLog = high / low > 8, by = (v) => (isLog ? Math.log10(v) : v), room = 0.1 * (by(high) - by(low)) || 0.1 * Math.abs(by(high)) || 0.1;
  const range = [by(low) - room, by(high) + room].map((v) => Number(v.toPrecision(2)));
  return { x: { title: "steps a second", range, type: isLog ? "log" : "linear" },
    y: { title: isExpected(trials) ? `expected final ${metric}` : `best ${metric}`, ...valueRange(trials.map(finalOf)) } };
}
function still(pen, scale) {
  for (const t of inOrder(spots().filter((t) => !isLive(t)))) this.hits.push(paintSpot(pen, scale, t));
}
function paint(pen, scale) {
  targetLine(pen, scale, "right");
  for (const t of inOrder(spots().filter((t) => isLive(t) || isMarked(t)))) this.hits.push(paintSpot(pen, scale, t));
}
function paintSpot(pen, scale, t) {
  const x = scale.x(speedOf(t)), y = scale.y(finalOf(t)), p = chanceOf(t), going = mayGoOn(t), marked = isMarked(t), f = forecastOf(t);
  pen.fillStyle = pen.strokeStyle = t.n === ui.selected ? ink.accent : ink[classOf(t)];
  if (f && (marked || (going && p > 0.2))) {
    pen.globalAlpha = 0.45;
    pen.lineWidth = 1.2;
    line(pen, [x, x], [scale.y(f.low), scale.y(f.high)]);
  }
  pen.globalAlpha = marked ? 1 : going ? 0.8 : 0.38;
  mark(pen, classOf(t), x, y, 3 + 10 * Math.sqrt(p ?? 0.02));
  pen.fill();
  if (isLive(t) || marked) {
    pen.globalAlpha = 1;
    pen.lineWidth = 1.6;
    pen.strokeStyle = ink.ink;
    pen.stroke();
  }
  pen.globalAlpha = 1;
  return { trial: t.n, xs: [x], ys: [y] };
}
function note() {
  const by = ui.panels.forecasts?.spots?.length ? "" : isExpected(spots()) ? "; as the last decisions had it" : "; no forecasts yet: the best value so far";
  return `right is fast, ${isMax() ? "up" : "down"} is good; size: chance of the target; outlined: running${by}`;
}
export const map = { frame, still, paint, note };
