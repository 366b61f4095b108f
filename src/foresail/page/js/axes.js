// Axes: from a value to a pixel, ticks at round values, grid and words.
//
// An axis is { title, range: [first, last], type: "linear" | "log", ticks?: [[value, text], ...], grid?: false, fixed?: true,
// text?: (value) => string }; the range of a logarithmic one is in powers of ten.

import { ink } from "./pen.js";
import { number } from "./words.js";

const MARGIN = { left: 58, right: 14, top: 8, bottom: 40 };

export function scaleOf({ x, y, margin }, zoom, width, height) {
  const { left, right, top, bottom } = { ...MARGIN, ...margin };
  const wide = Math.max(1, width - left - right), high = Math.max(1, height - top - bottom);
  const [xRange, yRange] = [zoom?.x ?? x.range, zoom?.y ?? y.range];
  const fx = part(x, xRange), fy = part(y, yRange);
  return { left, top, width: wide, height: high, xRange, yRange,
    x: (v) => left + wide * fx(v), y: (v) => top + high * (1 - fy(v)),
    xAt: (px) => xRange[0] + ((px - left) / wide) * (xRange[1] - xRange[0]),
    yAt: (py) => yRange[0] + (1 - (py - top) / high) * (yRange[1] - yRange[0]) };
}
function part({ type }, [a, b]) {
  return type === "log" ? (v) => (Math.log10(v) - a) / (b - a) : (v) => (v - a) / (b - a);
}

// About `most` round values and their texts.
export function ticksOf(axis, range, most) {
  const low = Math.min(...range), high = Math.max(...range), within = (v) => v >= low && v <= high;
  if (axis.ticks) return axis.ticks.filter(([v]) => within(v));
  if (axis.type === "log") return logTicks(low, high, Math.min(most, 8));
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough)), step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  const digits = Math.max(1, Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / step)) + 1);
  const says = axis.text ?? ((v) => number(v, digits));
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at += 1) ticks.push([at * step, says(at * step)]);
  return ticks;
}
// Of 1, 2 and 5 times a power of ten, as many as there is room for.
function logTicks(low, high, most) {
  const at = (multiples) => {
    const ticks = [];
    for (let power = Math.floor(low); power <= high; power += 1) for (const m of multiples) ticks.push(m * 10 ** power);
    return ticks.filter((v) => Math.log10(v) >= low && Math.log10(v) <= high);
  };
  const values = [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 5], [1]].map(at).find((ticks) => ticks.length < most);
  const chosen = values ?? at([1]).filter((_, i, all) => i % Math.ceil(all.length / most) === 0);
  return chosen.map((v) => [v, number(v, 3)]);
}

export function drawAxes(pen, { x, y }, scale) {
  const { left, top, width, height } = scale, bottom = top + height;
  pen.lineWidth = 1;
  pen.font = `11px ${ink.font}`;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  for (const [value, text] of ticksOf(x, scale.xRange, Math.max(2, width / 90))) {
    const at = Math.round(scale.x(value)) + 0.5;
    if (x.grid !== false) stroke(pen, ink.grid, at, top, at, bottom);
    write(pen, text, at, bottom + 12);
  }
  pen.textAlign = "right";
  for (const [value, text] of ticksOf(y, scale.yRange, Math.max(2, height / 45))) {
    const at = Math.round(scale.y(value)) + 0.5;
    if (y.grid !== false) stroke(pen, ink.grid, left, at, left + width, at);
    write(pen, text, left - 7, at);
  }
  stroke(pen, ink.line, left, bottom + 0.5, left + width, bottom + 0.5);
  pen.textAlign = "center";
  pen.font = `12px ${ink.font}`;
  write(pen, x.title, left + width / 2, bottom + 30);
  pen.save();
  pen.translate(11, top + height / 2);
  pen.rotate(-Math.PI / 2);
  write(pen, y.title, 0, 0);
  pen.restore();
}
function stroke(pen, colour, x0, y0, x1, y1) {
  pen.strokeStyle = colour;
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}
function write(pen, text, x, y) {
  pen.fillStyle = ink.soft;
  pen.fillText(text, x, y);
}
