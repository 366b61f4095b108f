// Who had which cores, and when.

import { ink } from "./pen.js";
import { isMarked, state, ui } from "./state.js";
import { roundUp, unitOf } from "./values.js";
import { counted, duration } from "./words.js";

const MOST_LANES = 24, BAD = new Set(["failed", "lost", "out_of_memory"]);
const [TRIAL, NUMBER, CORES, LABEL, START, END, OUTCOME] = [0, 1, 2, 3, 4, 5, 6];

function lanes() {
  const cores = new Set(state.study.cores);
  for (const life of state.lives.values()) for (const core of life[CORES]) cores.add(core);
  return [...cores].sort((a, b) => a - b);
}
function frame() {
  if (!state.lives.size) return "no trial has had a core yet";
  const cores = lanes(), [unit, word] = unitOf(state.now_s), every = Math.ceil(cores.length / MOST_LANES);
  const ticks = cores.flatMap((core, i) => (i % every ? [] : [[i, String(core)]]));
  return { x: { title: `study time, ${word}`, range: [0, roundUp(state.now_s / unit)] },
    y: { title: "core", range: [cores.length - 0.5, -0.5], ticks, grid: false, fixed: true } };
}
function still(pen, scale) {
  paintLives(this, pen, scale, [...state.lives.values()].filter((life) => life[END] !== null), (life) => !ui.shownSet.has(life[TRIAL]) ? 0.12 : 0.6);
}
function paint(pen, scale) {
  const lives = [...state.lives.values()].filter((life) => life[END] === null || isMarked(state.trials[life[TRIAL]]));
  paintLives(this, pen, scale, lives, (life) => (isMarked(state.trials[life[TRIAL]]) ? 1 : !ui.shownSet.has(life[TRIAL]) ? 0.12 : 0.95));
  const { within_s } = state.about.goal, [unit] = unitOf(state.now_s);
  if (within_s === null) return;
  pen.fillStyle = ink.bad;
  pen.fillRect(scale.x(within_s / unit), scale.top, 1, scale.height);
}
function paintLives(picture, pen, scale, lives, alphaOf) {
  const at = new Map(lanes().map((core, i) => [core, i])), [unit] = unitOf(state.now_s);
  const tall = Math.min(44, Math.abs(scale.y(0) - scale.y(1)) * 0.78 || 44);
  pen.font = `11px ${ink.font}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (const life of lives) {
    const end = life[END] ?? state.now_s, left = scale.x(life[START] / unit), long = scale.x(end / unit) - left, wide = Math.max(long - (long > 3 ? 1 : 0), 0.8);
    for (const core of life[CORES]) {
      const top = scale.y(at.get(core)) - tall / 2, alpha = alphaOf(life);
      pen.globalAlpha = alpha;
      pen.fillStyle = colourOf(life);
      pen.fillRect(left, top, wide, tall);
      if (wide > 22 && tall > 12) {
        pen.globalAlpha = alpha < 0.2 ? 0.3 : 1;
        pen.fillStyle = ink.card;
        pen.fillText(String(life[TRIAL]), left + wide / 2, top + tall / 2 + 0.5);
      }
      picture.hits.push({ trial: life[TRIAL], box: [left, top, left + wide, top + tall], lines: linesOf(life) });
    }
  }
  pen.globalAlpha = 1;
}
function colourOf(life) {
  if (life[TRIAL] === ui.selected) return ink.accent;
  return BAD.has(life[OUTCOME]) ? ink.bad : ink[life[LABEL] === null ? "none" : state.about.labels[life[LABEL]]];
}
function linesOf(life) {
  const cores = life[CORES], until = life[END] === null ? "now" : duration(life[END]), outcome = life[OUTCOME] && `: ${life[OUTCOME].replace(/_/g, " ")}`;
  return [`attempt ${life[NUMBER]} on ${cores.length > 1 ? "cores" : "core"} ${cores.join(", ")}`, `${duration(life[START])} to ${until}${outcome}`];
}
function note() {
  let held = 0;
  for (const life of state.lives.values()) held += life[CORES].length * ((life[END] ?? state.now_s) - life[START]);
  const all = state.now_s * Math.max(1, state.study.cores.length);
  return `${counted(state.lives.size, "attempt")}; cores were busy for ${Math.round((100 * held) / (all || 1))} % of the time; colour: the class when it got them`;
}
export const gantt = { frame, still, paint, note };
