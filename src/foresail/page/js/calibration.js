// Were the forecasts right? What was said against what came.

import { panelSays } from "./panels.js";
import { dashed, ink, line, shape } from "./pen.js";
import { ui } from "./state.js";
import { count, number } from "./words.js";

const percent = (v) => `${Math.round(100 * v)} %`;
const NAMES = ["intervals", "chances"];

function frame() {
  const says = panelSays("calibration", (d) =>
    d.coverage.length ? null : d.claims.length ? claimsText(d) : "no trial has been trained to its end yet: nothing to compare with");
  return says || { x: { title: "said", range: [0, 1.02], text: percent }, y: { title: "came true", range: [0, 1.04], text: percent } };
}
function paint(pen, scale) {
  const { coverage, reliability } = ui.panels.calibration, most = Math.max(1, ...reliability.map((b) => b.count));
  pen.strokeStyle = ink.faint;
  pen.lineWidth = 1;
  dashed(pen, [5, 4], [scale.x(0), scale.x(1)], [scale.y(0), scale.y(1)]);
  pen.strokeStyle = pen.fillStyle = ink.accent;
  pen.lineWidth = 2;
  line(pen, coverage.map((c) => scale.x(c.level)), coverage.map((c) => scale.y(c.seen)));
  for (const { level, seen } of coverage) spot(this, pen, "circle", scale.x(level), scale.y(seen), 3, `${percent(level)} intervals held ${percent(seen)}`);
  pen.fillStyle = ink.opportunistic;
  for (const { said, seen, count: n } of reliability) {
    const says = `P = ${said.toFixed(2)} came true in ${percent(seen)} of ${count(n)} forecasts`;
    spot(this, pen, "diamond", scale.x(said), scale.y(seen), 4 + 6 * Math.sqrt(n / most), says);
  }
  legend(pen, scale);
}
function spot(picture, pen, kind, x, y, r, says) {
  shape(pen, kind, x, y, r);
  pen.fill();
  picture.hits.push({ title: says, lines: [], xs: [x], ys: [y] });
}
function legend(pen, { left, top }) {
  pen.font = `11px ${ink.font}`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (const [at, [kind, colour]] of [["circle", ink.accent], ["diamond", ink.opportunistic]].entries()) {
    pen.fillStyle = colour;
    shape(pen, kind, left + 14, top + 14 + 17 * at, 4.5);
    pen.fill();
    pen.fillStyle = ink.soft;
    pen.fillText(NAMES[at], left + 24, top + 14.5 + 17 * at);
  }
}
function claimsText({ claims }) {
  const off = claims.map((c) => Math.abs(c.said - c.came)).sort((a, b) => a - b);
  return `the decisions' expectations were off by ${number(off[Math.floor(off.length / 2)], 2)} in the middle, of ${count(off.length)}`;
}
function note() {
  const d = ui.panels.calibration;
  return `${count(d.forecasts)} forecasts made again from the beginnings of finished trials; on the line is right` + (d.claims.length ? `; ${claimsText(d)}` : "");
}
export const calibration = { frame, paint, note };
