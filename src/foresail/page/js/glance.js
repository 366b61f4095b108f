// One glance: what the study is, how near its goal, what it used, who is promising.

import { LOOKS } from "./looks.js";
import { better, chanceOf, CLASSES, classOf, className, foremost, mayGoOn, MEANS, state, ui } from "./state.js";
import { select } from "./story.js";
import { $, configText, count, counted, duration, el, isNone, number, setText } from "./words.js";

const MOST_CHIPS = 8;

export function drawGlance() {
  drawHead();
  drawGoal();
  drawUse();
  drawClasses();
}
function drawHead() {
  const { about, study, driver } = state;
  document.title = `${study.best ? number(study.best[2]) + " · " : ""}${about.name} · Foresail`;
  setText("name", about.name);
  setText("goal", `${about.goal_text} · policy ${about.policy}, search ${about.search}`);
  const pill = $("state");
  pill.className = "pill " + (study.is_over ? "over" : driver ? "running" : "stalled");
  pill.title = study.is_over ? study.why : driver ?? `nobody drives it: foresail resume ${about.storage}`;
  const says = study.is_over ? `ended: ${study.end.replace("_", " ")}` : study.is_stopping ? "stopping" : driver ? "running" : "not running";
  setText("state", ui.until !== null ? "the past" : says);
}
function drawGoal() {
  const { study, about: { goal }, bests } = state;
  setText("goal-title", `best ${goal.metric} so far`);
  const best = study.best ? study.best[2] : null, first = bests.length ? bests[0][3] : null;
  setText("best", number(best, 5));
  setText("best-of", goal.target === null ? "" : `of ${number(goal.target, 5)}`);
  const reached = best !== null && goal.target !== null && !better(goal.target, best);
  fill("goal-bar", wayTo(goal.target, first, best, reached), "of the way to the target");
  $("goal-bar").classList.toggle("reached", reached);
  const parts = study.best ? [`trial ${study.best[0]}, step ${study.best[1]}`] : ["no value yet"];
  if (reached) parts.push("target reached");
  else if (goal.target !== null && best !== null) parts.push(`${number(Math.abs(goal.target - best), 3)} to go`);
  const hope = reached || study.is_over ? null : likeliest();
  if (hope) parts.push(`most likely next: trial ${hope.n}, P = ${number(chanceOf(hope), 2)}`);
  setText("goal-note", parts.join(" · "));
}
function wayTo(target, first, best, reached) {
  if (target === null) return null;
  return reached ? 1 : best === null || first === target ? 0 : (best - first) / (target - first);
}
function likeliest() {
  let found = null;
  for (const t of state.trials) if (mayGoOn(t) && chanceOf(t) > (found ? chanceOf(found) : 0)) found = t;
  return found;
}
function drawUse() {
  const { study, about: { goal }, now_s } = state, share = (used, of) => (of === null ? null : used / of);
  setText("time", duration(now_s));
  setText("time-of", goal.within_s === null ? "" : `of ${duration(goal.within_s)}`);
  setText("time-note", goal.within_s === null ? "no deadline" : study.is_over ? "" : `${duration(Math.max(0, goal.within_s - now_s))} left`);
  fill("time-bar", share(now_s, goal.within_s), "of the time");
  setText("cost", duration(study.device_s));
  setText("cost-of", goal.device_s === null ? "of cores" : `of ${duration(goal.device_s)}`);
  const busy = state.trials.reduce((sum, t) => sum + t.cores, 0), left = goal.device_s === null ? "" : `, ${duration(Math.max(0, goal.device_s - study.device_s))} left`;
  setText("cost-note", `${busy} of ${study.cores.length} cores busy${left}`);
  fill("cost-bar", share(study.device_s, goal.device_s), "of the device time");
  setText("trial-count", `${count(study.trials)}${goal.trials === null ? "" : ` of ${count(goal.trials)}`} trials, ${counted(study.points, "point")}`);
}
function fill(bar, frac, text) {
  $(bar).hidden = frac === null;
  if (frac === null) return;
  const percent = Math.round(100 * Math.min(1, Math.max(0, frac)));
  $(bar).firstElementChild.style.width = `${percent}%`;
  $(bar).setAttribute("aria-valuenow", percent);
  $(bar).setAttribute("aria-valuetext", text);
}
function drawClasses() {
  const of = Object.fromEntries(CLASSES.map((name) => [name, []])), three = CLASSES.slice(0, 3);
  for (const t of state.trials) of[classOf(t)].push(t);
  const names = of.none.length && three.every((name) => !of[name].length) ? ["none"] : three;
  $("class-bar").replaceChildren(...names.map((name) => {
    const part = el("i", { class: name });
    part.style.flexGrow = of[name].length;
    return part;
  }));
  $("classes").replaceChildren(...names.map((name) => el("div", { class: `class ${name}`, title: MEANS[name] },
    el("h3", {}, el("b", {}, count(of[name].length)), el("span", { class: "mark", "aria-hidden": "true" }, LOOKS[name].glyph), className(name)),
    el("div", { class: "chips" }, ...foremost(of[name], MOST_CHIPS).map(chip)))));
}
function chip(t) {
  const p = chanceOf(t), says = mayGoOn(t) && !isNone(p) ? `P ${p.toFixed(2)}` : number(t.best, 3);
  return el("button", { type: "button", class: "chip", title: configText(t), onclick: () => select(t.n) }, `${t.n} `, el("small", {}, says));
}
