// Hyperparameters: a line a trial, through the place of each knob to the value that is expected of it. A drag along an
// axis chooses a range.

import { filterChanged } from "./filter.js";
import { fitted, ink, line } from "./pen.js";
import { classOf, finalOf, hasValue, inOrder, isLive, isMarked, state, ui } from "./state.js";
import { holdValues, placeOfValue } from "./values.js";
import { number, ordinal } from "./words.js";

const MOST_LINES = 3000, EDGE = { left: 26, right: 44, top: 34, bottom: 18 }, NEAR = 12, LEAST = 0.02;
let every = 1;

const valued = () => state.trials.filter(hasValue);
function placesOf({ width, height }) {
  const axes = state.about.axes.length, high = height - EDGE.top - EDGE.bottom;
  return { axes: axes + 1, x: (i) => EDGE.left + ((width - EDGE.left - EDGE.right) * i) / axes,
    y: (u) => (u === null ? height - 4 : EDGE.top + high * (1 - u)), high, room: ((width - EDGE.left - EDGE.right) / axes) * 0.92, width };
}
function still(pen, _, size) {
  const trials = valued(), range = holdValues(trials.map(finalOf)), places = placesOf(size);
  this.places = range && state.about.axes.length ? places : null;
  if (!this.places) return;
  const settled = trials.filter((t) => !isLive(t)), faint = Math.min(0.5, Math.max(0.06, 7 / Math.sqrt(trials.length * 3)));
  every = Math.max(1, Math.ceil(settled.length / MOST_LINES));
  for (const [at, t] of inOrder(settled).entries()) {
    if (at % every === 0 || classOf(t) === "promising") paintLine(this, pen, t, faint);
  }
  paintAxes(pen, places, range);
}
function paint(pen) {
  if (!this.places) return;
  for (const t of inOrder(valued().filter((t) => isLive(t) || isMarked(t)))) paintLine(this, pen, t, 1);
  pen.fillStyle = ink.accent;
  pen.globalAlpha = 0.3;
  for (const [i, [low, high]] of ui.brushes) pen.fillRect(this.places.x(i) - 6, this.places.y(high), 12, this.places.y(low) - this.places.y(high));
  pen.globalAlpha = 1;
}
function paintLine(picture, pen, t, faint) {
  const { x, y } = picture.places, name = classOf(t), marked = isMarked(t), shown = ui.shownSet.has(t.n), strong = name === "promising" || isLive(t);
  const ys = [...t.unit, placeOfValue(finalOf(t))].map(y), xs = ys.map((_, i) => x(i));
  pen.globalAlpha = marked ? 1 : !shown ? faint * 0.25 : strong ? 0.9 : faint;
  pen.strokeStyle = t.n === ui.selected ? ink.accent : shown ? ink[name] : ink.faint;
  pen.lineWidth = marked ? 2.8 : name === "promising" ? 1.8 : 1.1;
  line(pen, xs, ys);
  pen.globalAlpha = 1;
  if (shown) picture.hits.push({ trial: t.n, xs, ys });
}
function paintAxes(pen, { x, y, high, room, width }, { type, range: [first, end] }) {
  const valueAt = (u) => (type === "log" ? 10 ** (first + u * (end - first)) : first + u * (end - first));
  const last = { name: "expected", ticks: [0, 0.25, 0.5, 0.75, 1].map((u) => [u, number(valueAt(u), 3)]) }, axes = [...state.about.axes, last];
  for (const [i, { name, ticks }] of axes.entries()) {
    const isLast = i === axes.length - 1;
    pen.strokeStyle = ink.faint;
    pen.lineWidth = 1;
    line(pen, [x(i), x(i)], [EDGE.top, EDGE.top + high]);
    pen.textAlign = i === 0 ? "left" : isLast ? "right" : "center";
    pen.fillStyle = ink.ink;
    pen.font = `600 12px ${ink.font}`;
    pen.fillText(fitted(pen, name, room), i === 0 ? 4 : isLast ? width - 4 : x(i), 16);
    pen.font = `10.5px ${ink.font}`;
    pen.textAlign = "left";
    for (const [u, text] of ticks.filter((_, k) => k % Math.ceil(ticks.length / 8) === 0)) tick(pen, fitted(pen, text, room * 0.8), x(i), y(u));
  }
}
function tick(pen, says, x, y) {
  pen.globalAlpha = 0.8;
  pen.fillStyle = ink.card;
  pen.fillRect(x + 3, y - 7, pen.measureText(says).width + 4, 13);
  pen.globalAlpha = 1;
  pen.fillStyle = ink.soft;
  pen.fillText(says, x + 5, y + 3.5);
}
function note() {
  if (!valued().length) return "no trial has reported a value yet";
  const left = every > 1 ? `; every ${ordinal(every)} trial and all promising ones` : "";
  return `right: the value expected at the end, or the best so far; drag along an axis to choose a range${left}`;
}
export const coordinates = { still, paint, note };

export function listenToBrush(picture) {
  const { canvas } = picture;
  let held = null;
  const at = (event) => {
    const box = canvas.getBoundingClientRect(), { x, high, axes } = picture.places, px = event.clientX - box.left;
    const near = [...Array(axes).keys()].find((i) => Math.abs(x(i) - px) < NEAR);
    return [near, Math.min(1, Math.max(0, 1 - (event.clientY - box.top - EDGE.top) / high))];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!picture.places) return;
    const [axis, u] = at(event);
    if (axis === undefined) return;
    held = { axis, from: u };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (picture.places && !held) canvas.style.cursor = at(event)[0] === undefined ? "" : "ns-resize";
    if (!held) return;
    const [, u] = at(event);
    if (Math.abs(u - held.from) > LEAST) ui.brushes.set(held.axis, [Math.min(u, held.from), Math.max(u, held.from)]);
    filterChanged();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (held && Math.abs(at(event)[1] - held.from) <= LEAST && ui.brushes.delete(held.axis)) filterChanged();
    held = null;
  });
}
