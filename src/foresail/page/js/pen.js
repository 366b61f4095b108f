// Shapes on a canvas, and the colours of the theme.

import { CLASSES } from "./state.js";
import { LOOKS } from "./looks.js";

export const ink = { theme: "", font: "" };
export function readInk() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "soft", "faint", "line", "grid", "card", "accent", "bad", ...CLASSES]) ink[name] = style.getPropertyValue(`--${name}`).trim();
  ink.theme = document.documentElement.dataset.theme;
  ink.font = getComputedStyle(document.body).fontFamily;
}

export function line(pen, xs, ys) {
  pen.beginPath();
  pen.moveTo(xs[0], ys[0]);
  for (let at = 1; at < xs.length; at += 1) pen.lineTo(xs[at], ys[at]);
  pen.stroke();
}
export function dashed(pen, dashes, xs, ys) {
  pen.setLineDash(dashes);
  line(pen, xs, ys);
  pen.setLineDash([]);
}
export function area(pen, xs, low, high) {
  pen.beginPath();
  xs.forEach((x, at) => (at ? pen.lineTo(x, high[at]) : pen.moveTo(x, high[at])));
  for (let at = xs.length - 1; at >= 0; at -= 1) pen.lineTo(xs[at], low[at]);
  pen.fill();
}
const SHAPES = {
  "triangle-up": (x, y, r) => [[x, y - r], [x + r, y + 0.8 * r], [x - r, y + 0.8 * r]],
  "triangle-down": (x, y, r) => [[x, y + r], [x + r, y - 0.8 * r], [x - r, y - 0.8 * r]],
  diamond: (x, y, r) => [[x, y - r], [x + r, y], [x, y + r], [x - r, y]],
};
// A symbol as a path that is to be filled or stroked.
export function shape(pen, kind, x, y, r) {
  pen.beginPath();
  if (kind === "circle") pen.arc(x, y, 0.9 * r, 0, 7);
  else for (const [px, py] of SHAPES[kind](x, y, r)) pen.lineTo(px, py);
  pen.closePath();
}
// That of a class.
export const mark = (pen, name, x, y, r) => shape(pen, LOOKS[name].symbol, x, y, r);
// A text as long as there is room for.
export function fitted(pen, text, width) {
  let says = String(text);
  while (says.length > 2 && pen.measureText(says).width > width) says = `${says.slice(0, -2).replace(/…$/, "")}…`;
  return says;
}
