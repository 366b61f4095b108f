// The range of values that pictures show, the same rule for all of them.

import { isMax, state } from "./state.js";
import { isNone } from "./words.js";

const MOST_SORTED = 5000;

// 2 % of the worst values are left out, for one of them would press all others together; the best and the target are in.
export function valueRange(values) {
  const every = Math.ceil(values.length / MOST_SORTED), { goal } = state.about;
  const sorted = Float64Array.from(every > 1 ? values.filter((_, at) => at % every === 0) : values).sort();
  const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  const must = [goal.target, state.study.best?.[2]].filter((v) => !isNone(v));
  if (!sorted.length && !must.length) return null;
  let low = Math.min(...must, ...(sorted.length ? [at(isMax() ? 0.02 : 0)] : [])), high = Math.max(...must, ...(sorted.length ? [at(isMax() ? 1 : 0.98)] : []));
  if (low === high) [low, high] = [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  const isLog = low > 0 && high / low > 60;
  if (isLog) [low, high] = [Math.log10(low), Math.log10(high)];
  const room = 0.05 * (high - low), tidy = (v) => Number(v.toPrecision(3));
  return { type: isLog ? "log" : "linear", range: [tidy(low - room), tidy(high + room)] };
}

// Of all expected values; the last axis of the hyperparameters.
let held = null;
export function holdValues(values) {
  held = valueRange(values);
  return held;
}
export function placeOfValue(value) {
  if (!held || isNone(value) || (held.type === "log" && value <= 0)) return null;
  const v = held.type === "log" ? Math.log10(value) : value;
  return Math.min(1, Math.max(0, (v - held.range[0]) / (held.range[1] - held.range[0])));
}

// --- time axes

export const unitOf = (s) => (s > 7200 ? [3600, "hours"] : s > 180 ? [60, "minutes"] : [1, "seconds"]);
// An axis of time ends a little later, at a round time: so it need not be drawn anew with every event.
export function roundUp(value) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(value, 1e-3)) - 1);
  return Number((Math.ceil((value * 1.02) / unit) * unit).toPrecision(6));
}
