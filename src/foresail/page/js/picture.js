// A picture on a canvas: axes and what has settled, kept as an image, and over it what changes with every event.
//
// `frame()` gives the axes ({ x, y, margin }, see axes.js), or a sentence where there is nothing to draw. `still` and
// `paint` draw through (pen, scale, size) and note in `hits` what can be pointed at: { trial?, title?, lines?, box } or
// { ..., xs, ys }, in pixels. `note()` is the line below, and what a screen reader says.

import { drawAxes, scaleOf } from "./axes.js";
import { pictures, soil, watch } from "./drawing.js";
import { refreshPanels } from "./panels.js";
import { ink, line } from "./pen.js";
import { chanceOf, classOf, finalOf, hasValue, state, statusOf, ui } from "./state.js";
import { select } from "./story.js";
import { $, configText, el, isNone, number } from "./words.js";

const REACH = 16, CLICK = 4;
const isCoarse = () => matchMedia("(pointer: coarse), (max-width: 700px)").matches;

export class Picture {
  constructor(id, { frame = null, still = null, paint = () => {}, note }) {
    this.id = id;
    this.place = $(id).querySelector(".plot");
    this.canvas = el("canvas");
    this.layer = document.createElement("canvas");
    this.empty = el("div", { class: "empty", hidden: "" });
    Object.assign(this, { frame, still, paint, note, zoom: null, drag: null, stillKey: "", stillHits: [], hits: [], shape: null });
    this.place.append(this.canvas, this.empty);
    this.place.setAttribute("role", "img");
    this.listen();
    watch(this, $(id), refreshPanels);
    new ResizeObserver(() => soil(id)).observe(this.place);
  }

  draw() {
    const shape = this.frame ? this.frame() : {}, problem = typeof shape === "string" ? shape : "";
    this.shape = problem ? null : shape;
    this.repaint();
    this.empty.hidden = !problem;
    this.empty.textContent = problem;
    const says = problem ? "" : this.note();
    $(this.id).querySelector(".note").textContent = says;
    this.place.setAttribute("aria-label", says || problem);
  }
  repaint() {
    const size = { width: this.place.clientWidth, height: this.place.clientHeight }, ratio = Math.min(2, devicePixelRatio || 1);
    const pen = cleared(this.canvas, size, ratio);
    this.hits = [];
    if (!this.shape) return;
    this.scale = this.frame ? scaleOf(this.shape, this.zoom, size.width, size.height) : null;
    this.keepStill(size, ratio);
    this.hits = [...this.stillHits];
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.drawImage(this.layer, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.clipped(pen, size, this.paint);
    if (this.drag?.box) drawBox(pen, this.drag.box);
  }
  keepStill(size, ratio) {
    const key = JSON.stringify([size, ratio, this.shape, this.zoom, ink.theme, this.still && [state.settled, ui.changes]]);
    if (key === this.stillKey) return;
    this.stillKey = key;
    const pen = cleared(this.layer, size, ratio);
    if (this.scale) drawAxes(pen, this.shape, this.scale);
    this.hits = [];
    if (this.still) this.clipped(pen, size, this.still);
    this.stillHits = this.hits;
  }
  clipped(pen, size, paint) {
    pen.save();
    if (this.scale) {
      pen.beginPath();
      pen.rect(this.scale.left, this.scale.top, this.scale.width, this.scale.height);
      pen.clip();
    }
    paint.call(this, pen, this.scale, size);
    pen.restore();
  }

  // --- pointing, choosing, zooming

  listen() {
    this.place.addEventListener("pointermove", (event) => (this.drag ? this.pull(event) : this.hover(event)));
    this.place.addEventListener("pointerleave", () => hoverOver(null));
    this.place.addEventListener("pointerdown", (event) => { this.drag = { from: this.at(event), box: null }; });
    this.place.addEventListener("dblclick", () => { this.zoom = null; soil(this.id); });
    window.addEventListener("pointerup", (event) => this.drag && this.release(event));
    window.addEventListener("pointercancel", () => { this.drag = null; });
  }
  at(event) {
    const box = this.place.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
  pull(event) {
    if (!this.scale || isCoarse()) return;
    hoverOver(null);
    this.drag.box = boxOf(this.drag.from, this.at(event), this.scale, this.shape);
    this.repaint();
  }
  release(event) {
    const { from, box } = this.drag, to = this.at(event), moved = Math.hypot(to[0] - from[0], to[1] - from[1]);
    this.drag = null;
    if (moved < CLICK) {
      const found = this.nearest(event);
      if (!isNone(found?.trial)) select(found.trial);
    } else if (box) {
      const { xAt, yAt, xRange, yRange } = this.scale, [left, top, right, bottom] = box.edges;
      this.zoom = { x: box.x ? [xAt(left), xAt(right)] : xRange, y: box.y ? [yAt(bottom), yAt(top)] : yRange };
      soil(this.id);
    }
  }
  nearest(event) {
    const [x, y] = this.at(event);
    let best = null, least = REACH * REACH;
    for (const hit of this.hits) {
      const d = distance2(hit, x, y);
      if (d <= least) [best, least] = [hit, d];
    }
    return best;
  }
  hover(event) {
    const found = event.buttons ? null : this.nearest(event);
    this.place.classList.toggle("picks", !isNone(found?.trial));
    hoverOver(found, event);
  }
}

function cleared(canvas, { width, height }, ratio) {
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}
// What a drag chooses: along one axis where it is far longer than wide, else along both. Null while it is no drag yet.
function boxOf([x0, y0], [x1, y1], scale, { x, y }) {
  const wide = Math.abs(x1 - x0), high = Math.abs(y1 - y0), within = (v, low, long) => Math.min(low + long, Math.max(low, v));
  const alongX = !x.fixed && wide > CLICK && (y.fixed || wide * 5 > high), alongY = !y.fixed && high > CLICK && (x.fixed || high * 5 > wide);
  if (!alongX && !alongY) return null;
  const xs = [x0, x1].map((v) => within(v, scale.left, scale.width)).sort((a, b) => a - b);
  const ys = [y0, y1].map((v) => within(v, scale.top, scale.height)).sort((a, b) => a - b);
  const [left, right] = alongX ? xs : [scale.left, scale.left + scale.width], [top, bottom] = alongY ? ys : [scale.top, scale.top + scale.height];
  return right - left < 1 || bottom - top < 1 ? null : { x: alongX, y: alongY, edges: [left, top, right, bottom] };
}
function drawBox(pen, { edges: [left, top, right, bottom] }) {
  pen.fillStyle = pen.strokeStyle = ink.accent;
  pen.globalAlpha = 0.12;
  pen.fillRect(left, top, right - left, bottom - top);
  pen.globalAlpha = 1;
  pen.lineWidth = 1;
  line(pen, [left, right, right, left, left], [top, top, bottom, bottom, top]);
}
// Squared distance in pixels to a rectangle, or to a line through points.
function distance2(hit, x, y) {
  if (hit.box) {
    const [left, top, right, bottom] = hit.box;
    return Math.max(left - x, 0, x - right) ** 2 + Math.max(top - y, 0, y - bottom) ** 2;
  }
  const { xs, ys } = hit;
  let least = (xs[0] - x) ** 2 + (ys[0] - y) ** 2;
  for (let at = 1; at < xs.length; at += 1) {
    const dx = xs[at] - xs[at - 1], dy = ys[at] - ys[at - 1], long = dx * dx + dy * dy;
    const t = long ? Math.min(1, Math.max(0, ((x - xs[at - 1]) * dx + (y - ys[at - 1]) * dy) / long)) : 0;
    least = Math.min(least, (xs[at - 1] + t * dx - x) ** 2 + (ys[at - 1] + t * dy - y) ** 2);
  }
  return least;
}

// --- what is pointed at

function hoverOver(hit, event) {
  const tip = $("tip"), trial = isNone(hit?.trial) ? null : state.trials[hit.trial];
  tip.hidden = !hit;
  if (hit) {
    const lines = hit.lines ?? tipLines(trial);
    tip.replaceChildren(el("b", {}, hit.title ?? titleOf(trial)), ...lines.flatMap((text) => [text, el("br")]));
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 16 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 16}px`;
  }
  const hovered = trial ? trial.n : null;
  if (hovered === ui.hovered) return;
  ui.hovered = hovered;
  for (const picture of Object.values(pictures)) if (picture.seen && picture.hits?.length) picture.repaint();
}
const titleOf = (t) => `trial ${t.n} · ${[classOf(t) === "none" ? "" : classOf(t), statusOf(t)].filter(Boolean).join(", ")}`;
function tipLines(t) {
  const lines = [hasValue(t) ? `best ${number(t.best)} at step ${t.best_step}, now ${number(t.value)} at ${t.step}` : "no value yet"];
  const p = chanceOf(t);
  if (!isNone(p)) lines.push(`P = ${p.toFixed(3)}, ${number(finalOf(t))} expected at the end`);
  lines.push(configText(t));
  return lines;
}

// --- what several pictures have

export function targetLine(pen, scale, align = "left") {
  const { target } = state.about.goal;
  if (target === null) return;
  const y = scale.y(target), right = scale.left + scale.width;
  pen.strokeStyle = pen.fillStyle = ink.accent;
  pen.lineWidth = 1.2;
  pen.setLineDash([6, 4]);
  line(pen, [scale.left, right], [y, y]);
  pen.setLineDash([]);
  pen.font = `11px ${ink.font}`;
  pen.textAlign = align;
  pen.fillText(`target ${number(target, 5)}`, align === "left" ? scale.left + 6 : right - 6, y + (y - scale.top < 16 ? 13 : -5));
}
