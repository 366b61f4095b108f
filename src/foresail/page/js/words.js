// Numbers, durations and elements. Text from the study is only ever set as text, never as HTML.

export const $ = (id) => document.getElementById(id);
export const isNone = (value) => value === null || value === undefined;

export function number(value, digits = 4) {
  return isNone(value) ? "–" : String(Number(value.toPrecision(digits)));
}
export function duration(seconds) {
  if (isNone(seconds)) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  for (const [unit_s, unit, part_s, part] of [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]]) {
    if (whole < unit_s) continue;
    const rest = Math.floor((whole % unit_s) / part_s);
    return `${Math.floor(whole / unit_s)} ${unit}` + (rest ? ` ${rest} ${part}` : "");
  }
  return `${whole} s`;
}
const grouped = new Intl.NumberFormat("en-US");
export const count = (n) => grouped.format(n);
export const counted = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
export function ordinal(n) {
  const teen = n % 100 > 10 && n % 100 < 14;
  return `${n}${(!teen && ["th", "st", "nd", "rd"][n % 10]) || "th"}`;
}
export const scalar = (value) => (typeof value === "number" ? number(value, 4) : String(value));
export const configText = (trial) => trial.config.map(([name, value]) => `${name}=${scalar(value)}`).join("  ");

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
export function setText(id, text) {
  const element = $(id);
  if (element.textContent !== text) element.textContent = text;
}
// A table of terms and texts.
export const list = (rows) => el("dl", {}, ...rows.flatMap(([term, text]) => [el("dt", {}, term), el("dd", {}, text)]));
