// What is known of the study, merged from increments, and what is asked of one trial. `ui` is what the person chose.

import { LOOKS } from "./looks.js";

export const CLASSES = Object.keys(LOOKS);
export const MEANS = {
  promising: "likely enough to reach the goal: it has slots of its own",
  opportunistic: "may still surprise: it has its turns",
  poor: "would not get there",
  none: "not classified by this policy",
};
const ROW = ["n", "status", "label", "p", "final", "ert_s", "max_steps", "attempts", "device_s", "cores", "granted_s",
  "step", "value", "best", "best_step", "step_s"];
const GOES_ON = new Set(["waiting", "running", "yielding", "suspended"]);

// `settled` counts the changes of trials that hold no core, `ui.changes` those of who is shown and what is foreseen of them:
// pictures keep what they painted of settled trials until one of the two has moved.
export const state = { about: null, event: 0, last: 0, now_s: 0, study: null, driver: null, trials: [], lives: new Map(), bests: [], settled: 0 };
export const ui = { until: null, selected: null, hovered: null, off: new Set(), words: "", brushes: new Map(), panels: {}, sort: ["best", null],
  playing: null, importance: "value", shown: [], shownSet: new Set(), changes: 0, rows: [] };

export function merge(news) {
  if (news.about) state.about = news.about;
  if (news.since === 0) Object.assign(state, { trials: [], lives: new Map(), bests: [] });
  for (const [n, origin, config, unit] of news.configs ?? []) state.trials[n] = { n, origin, config, unit, steps: [], values: [] };
  for (const row of news.trials ?? []) {
    const trial = state.trials[row[0]], held = trial.cores > 0;
    for (let at = 0; at < ROW.length; at += 1) trial[ROW[at]] = row[at];
    if (!held || !trial.cores) state.settled += 1;
  }
  for (const [n, ...pairs] of news.points ?? []) {
    for (let at = 0; at < pairs.length; at += 2) put(state.trials[n], pairs[at], pairs[at + 1]);
  }
  for (const life of news.lives ?? []) state.lives.set(`${life[0]}-${life[1]}`, life);
  state.bests.push(...(news.bests ?? []));
  for (const name of ["event", "last", "now_s", "study", "driver"]) state[name] = news[name] ?? null;
}
// A step that is trained again after a crash takes the place of the old one.
function put({ steps, values }, step, value) {
  let at = steps.length;
  while (at > 0 && steps[at - 1] >= step) at -= 1;
  if (steps[at] === step) values[at] = value;
  else { steps.splice(at, 0, step); values.splice(at, 0, value); }
}

// --- a trial

// The policy's class; where it has none, that of its forecasts.
export function classOf(trial) {
  if (trial.label !== null && trial.label !== undefined) return state.about.labels[trial.label];
  return (ui.panels.forecasts?.classes_by === "forecasts" && forecastOf(trial)?.label) || "none";
}
export const className = (name) => (name === "none" ? "not classified" : name);
export const statusOf = (trial) => state.about.statuses[trial.status];
export const isLive = (trial) => trial.cores > 0;
export const mayGoOn = (trial) => GOES_ON.has(statusOf(trial));
export const isMarked = (trial) => trial.n === ui.selected || trial.n === ui.hovered;
export const hasValue = (trial) => trial.best !== null && trial.best !== undefined;
export const isMax = () => state.about.goal.mode === "max";
export const better = (a, b) => (isMax() ? a > b : a < b);
export const forecastOf = (trial) => ui.panels.forecasts?.byTrial?.get(trial.n);
export const chanceOf = (trial) => forecastOf(trial)?.p ?? trial.p;
export const finalOf = (trial) => forecastOf(trial)?.final ?? trial.final ?? trial.best;
export const speedOf = (trial) => (trial.step_s ? 1 / trial.step_s : null);
export function coreTime(trial) {
  return trial.device_s + (trial.granted_s === null ? 0 : trial.cores * Math.max(0, state.now_s - trial.granted_s));
}

// --- orders

// The best `most`: live before not, then by chance, then by value.
export function foremost(trials, most) {
  const kept = [];
  for (const t of trials) {
    const value = hasValue(t) ? (isMax() ? t.best : -t.best) : -Infinity;
    const key = [isLive(t) ? 2 : mayGoOn(t) ? 1 : 0, chanceOf(t) ?? -1, value, -t.n, t];
    if (kept.length === most && !isAbove(key, kept[most - 1])) continue;
    let at = Math.min(kept.length, most - 1);
    while (at > 0 && isAbove(key, kept[at - 1])) { kept[at] = kept[at - 1]; at -= 1; }
    kept[at] = key;
  }
  return kept.map((key) => key[4]);
}
function isAbove(a, b) {
  const at = [0, 1, 2, 3].find((i) => a[i] !== b[i]);
  return a[at] > b[at];
}
// Poor below, promising above, the one that is looked at on top.
export function inOrder(trials) {
  const ranks = Array.from({ length: 10 }, () => []);
  for (const t of trials) ranks[isMarked(t) ? 9 : 3 - CLASSES.indexOf(classOf(t)) + (mayGoOn(t) ? 4 : 0)].push(t);
  return ranks.flat();
}
