// The page. It asks the server what changed since the last event that it knows, merges that into `state`, and draws what
// can be seen. Text from the study is only ever set as text (`textContent`, canvas), never as HTML.
"use strict";

const POLL_MS = 1000, PANEL_MS = 4000, MOST_CURVES = 2000, MOST_SINGLE = 300, MOST_ROWS = 100, MOST_CHIPS = 8;
const CLASSES = ["promising", "opportunistic", "poor", "none"];
const MARKS = { promising: "▲", opportunistic: "●", poor: "▼", none: "◆" };
const MEANS = {
  promising: "likely enough to reach the goal: it has slots of its own",
  opportunistic: "may still surprise: it has its turns",
  poor: "would not get there",
  none: "not classified by this policy",
};
const ROW = ["n", "status", "label", "p", "final", "ert_s", "max_steps", "attempts", "device_s", "cores", "granted_s",
  "step", "value", "best", "best_step", "step_s"];
const $ = (id) => document.getElementById(id);

// --- words and numbers ------------------------------------------------------------------------------------------

function number(value, digits = 4) {
  return value === null || value === undefined ? "–" : String(Number(value.toPrecision(digits)));
}
function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
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
const count = (n) => grouped.format(n);
const counted = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
const scalar = (value) => (typeof value === "number" ? number(value, 4) : String(value));
const configText = (trial) => trial.config.map(([name, value]) => `${name}=${scalar(value)}`).join("  ");
// Plotly reads a few tags in its texts; what comes from the study shall be none.
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
function setText(id, text) {
  const element = $(id);
  if (element.textContent !== text) element.textContent = text;
}

// --- state: merged from increments --------------------------------------------------------------------------------

const state = { about: null, event: 0, last: 0, now_s: 0, study: null, driver: null, trials: [], lives: new Map(), bests: [] };
const ui = { until: null, selected: null, hovered: null, off: new Set(), words: "", brushes: new Map(), panels: {}, sort: ["best", null],
  received: 0, playing: null, importance: "value" };

function merge(into, news) {
  if (news.about) Object.assign(into, { about: news.about });
  if (news.since === 0) Object.assign(into, { trials: [], lives: new Map(), bests: [] });
  for (const [n, origin, config, unit] of news.configs ?? []) into.trials[n] = { n, origin, config, unit, steps: [], values: [] };
  for (const row of news.trials ?? []) ROW.forEach((name, at) => { into.trials[row[0]][name] = row[at]; });
  for (const [n, ...pairs] of news.points ?? []) {
    for (let at = 0; at < pairs.length; at += 2) put(into.trials[n], pairs[at], pairs[at + 1]);
  }
  for (const life of news.lives ?? []) into.lives.set(`${life[0]}-${life[1]}`, life);
  into.bests.push(...(news.bests ?? []));
  for (const name of ["event", "last", "now_s", "study", "driver"]) into[name] = news[name] ?? null;
  return into;
}
// A step that is trained again after a crash takes the place of the old one.
function put(trial, step, value) {
  const { steps, values } = trial;
  let at = steps.length;
  while (at > 0 && steps[at - 1] >= step) at -= 1;
  if (steps[at] === step) values[at] = value;
  else { steps.splice(at, 0, step); values.splice(at, 0, value); }
}

// The policy's class; where it has none, that of its forecasts.
function classOf(trial) {
  if (trial.label !== null && trial.label !== undefined) return state.about.labels[trial.label];
  return (ui.panels.forecasts?.classes_by === "forecasts" && forecastOf(trial)?.label) || "none";
}
const statusOf = (trial) => state.about.statuses[trial.status];
const isLive = (trial) => trial.cores > 0;
const mayGoOn = (trial) => ["waiting", "running", "yielding", "suspended"].includes(statusOf(trial));
const isMax = () => state.about.goal.mode === "max";
const better = (a, b) => (isMax() ? a > b : a < b);
const forecastOf = (trial) => ui.panels.forecasts?.byTrial?.get(trial.n);
const chanceOf = (trial) => forecastOf(trial)?.p ?? trial.p;
const finalOf = (trial) => forecastOf(trial)?.final ?? trial.final ?? trial.best;
const speedOf = (trial) => (trial.step_s ? 1 / trial.step_s : null);

// --- which trials are shown ---------------------------------------------------------------------------------------

const FIELDS = { trial: (t) => t.n, best: (t) => t.best, last: (t) => t.value, step: (t) => t.step, steps: (t) => t.step, p: chanceOf,
  final: finalOf, speed: speedOf, attempts: (t) => t.attempts };
const COMPARE = { "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b, "=": (a, b) => a === b };

function testsOf(words) {
  return words.trim().split(/\s+/).filter(Boolean).map((word) => {
    const [, name, sign, text] = word.match(/^([^<>=]+)(<=|>=|<|>|=)(.+)$/) ?? [];
    const wanted = Number(text);
    if (name && !Number.isNaN(wanted)) {
      return (t) => {
        const value = FIELDS[name] ? FIELDS[name](t) : t.config.find(([knob]) => knob === name)?.[1];
        return typeof value === "number" && COMPARE[sign](value, wanted);
      };
    }
    return (t) => searchText(t).includes(word.toLowerCase());
  });
}
const searchText = (t) => `trial ${t.n} ${statusOf(t)} ${classOf(t)} ${t.origin} ${t.config.map(([k, v]) => `${k}=${v}`).join(" ")}`.toLowerCase();

function shownTrials() {
  const tests = testsOf(ui.words), knobs = state.about.axes.length;
  return state.trials.filter((t) => !ui.off.has(classOf(t)) && tests.every((test) => test(t)) &&
    [...ui.brushes].every(([axis, [low, high]]) => {
      const at = axis < knobs ? t.unit[axis] : placeOfValue(finalOf(t));
      return at !== null && at !== undefined && at >= low && at <= high;
    }));
}
let shownNow = [];

// --- asking -------------------------------------------------------------------------------------------------------

async function ask(path) {
  const response = await fetch(path, { headers: { Accept: "application/json" } });
  if (response.status === 401) throw new Error("this address is no longer valid: open the one that foresail serve printed last");
  const data = await response.json();
  if (!response.ok) throw new Error([data.error.what, data.error.do].filter(Boolean).join(": "));
  return data;
}
let asking = null, again = false, timer = 0;
function follow() {
  clearTimeout(timer);
  if (asking) { again = true; return asking; }
  asking = update().finally(() => {
    asking = null;
    const wait = again ? 0 : state.study?.is_over ? 5 * POLL_MS : POLL_MS;
    again = false;
    if (!document.hidden && (ui.until === null || wait === 0)) timer = setTimeout(follow, wait);
  });
  return asking;
}
async function update() {
  const until = ui.until, since = until !== null && until < state.event ? 0 : state.event;
  const every = since && state.about ? `&every=${state.about.every}` : "";
  try {
    const news = await ask(`/changes?since=${since}${every}` + (until === null ? "" : `&until=${until}`));
    trouble("");
    if (!news.about && !state.about) { setText("goal-note", "no study yet: waiting for its first event"); return; }
    const start = performance.now(), changed = news.since === 0 || news.event !== state.event || news.driver !== state.driver;
    merge(state, news);
    ui.received = start;
    if (changed) changedAll(); else drawSlider();
  } catch (error) {
    trouble(error instanceof TypeError ? "the server of this page is gone; start it again: foresail serve" : error.message);
    await new Promise((done) => setTimeout(done, 2000));
  }
}
function trouble(text) {
  $("trouble").hidden = !text;
  setText("trouble", text);
}

// What has to be computed is asked for while its picture is in sight, and not too often.
const PANEL_OF = { forecasts: ["curves", "map", "coordinates", "table"], importance: ["importance"], speeds: ["speeds"], calibration: ["calibration"] };
const fetching = {};
async function refreshPanels() {
  if (!state.about || !state.trials.length) return;
  for (const [name, places] of Object.entries(PANEL_OF)) {
    const held = ui.panels[name], seen = places.some((id) => pictures[id].seen);
    const wanted = held?.asked !== state.event || (name === "forecasts" && ui.selected !== null && held.trial !== ui.selected);
    const rested = !held || performance.now() - held.at > PANEL_MS || ui.until !== null || held.trial !== ui.selected;
    if (!seen || !wanted || !rested || fetching[name]) continue;
    fetching[name] = true;
    fetchPanel(name, places).finally(() => { fetching[name] = false; });
  }
}
async function fetchPanel(name, places) {
  const asked = state.event, trial = name === "forecasts" ? ui.selected : null, until = ui.until;
  const query = [until === null ? "" : `until=${asked}`, trial === null ? "" : `trial=${trial}`].filter(Boolean).join("&");
  let data;
  try { data = await ask(`/panel/${name}?${query}`); } catch (error) { data = { problem: error.message }; }
  if (until !== ui.until) return;
  if (name === "forecasts") {
    data.byTrial = new Map((data.spots ?? []).map(([n, final, low, high, speed, p, label]) => [n, { final, low, high, speed, p, label }]));
    data.bandOf = new Map((data.bands ?? []).map(([n, ...band]) => [n, band]));
  }
  ui.panels[name] = { ...data, asked, trial: ui.selected, at: performance.now() };
  if (name === "forecasts") { shownNow = shownTrials(); drawGlance(); drawFilter(); }
  places.forEach((id) => { $(id).dataset.computed = asked; });
  soil(...places);
}
setInterval(() => { if (!document.hidden) refreshPanels(); }, 500);

// --- drawing what can be seen ---------------------------------------------------------------------------------------

const pictures = {};
let drawing = 0;
function soil(...ids) {
  for (const id of ids.length ? ids : Object.keys(pictures)) pictures[id].dirty = true;
  if (!drawing) drawing = requestAnimationFrame(drawSome);
}
function drawSome() {
  drawing = 0;
  if (!state.about) return;
  const start = performance.now();
  for (const picture of Object.values(pictures)) {
    if (!picture.dirty || !picture.seen || (picture.needsPlotly && !window.Plotly)) continue;
    picture.dirty = false;
    picture.draw();
    $(picture.id).dataset.drawn = state.event;
    // One long task would make the page stutter: the rest is drawn in the next frame.
    if (performance.now() - start > 30) { drawing = requestAnimationFrame(drawSome); return; }
  }
  performance.clearMarks("drawn");
  if (window.Plotly) performance.mark("drawn", { detail: { event: state.event, ms: performance.now() - ui.received } });
  document.documentElement.dataset.drawn = window.Plotly ? state.event : "";
}
function changedAll() {
  shownNow = shownTrials();
  document.title = `${state.study.best ? number(state.study.best[2]) + " · " : ""}${state.about.name} · Foresail`;
  drawHead();
  drawGlance();
  drawFilter();
  drawSlider();
  if (!performance.getEntriesByName("glance").length) performance.mark("glance");
  soil();
  loadPlotly();
}
// Once the glance is written: Plotly's script takes a while to be read. It has been fetched meanwhile.
function loadPlotly() {
  if ($("plotly").tagName === "SCRIPT") return;
  const script = el("script", { id: "plotly" });
  script.addEventListener("load", () => soil());
  const { href } = $("plotly");
  $("plotly").replaceWith(script);
  requestAnimationFrame(() => setTimeout(() => { script.src = href; }));
}
function filterChanged() {
  if (!state.about) return;
  shownNow = shownTrials();
  drawFilter();
  soil("curves", "map", "gantt", "coordinates", "speeds", "table");
}

function drawHead() {
  const { about, study, driver } = state;
  setText("name", about.name);
  setText("goal", `${about.goal_text} · policy ${about.policy}, search ${about.search}`);
  const pill = $("state");
  pill.className = "pill " + (study.is_over ? "over" : driver ? "running" : "stalled");
  pill.title = study.is_over ? study.why : driver ?? `nobody drives it: foresail resume ${about.storage}`;
  const says = study.is_over ? `ended: ${study.end.replace("_", " ")}` : study.is_stopping ? "stopping" : driver ? "running" : "not running";
  pill.textContent = ui.until !== null ? "the past" : says;
}

function fill(bar, frac, text) {
  $(bar).hidden = frac === null;
  if (frac === null) return;
  const percent = Math.round(100 * Math.min(1, Math.max(0, frac)));
  $(bar).firstElementChild.style.width = `${percent}%`;
  $(bar).setAttribute("aria-valuenow", percent);
  $(bar).setAttribute("aria-valuetext", text);
}
function drawGlance() {
  drawGoal();
  const { study, about: { goal }, now_s } = state;
  const share = (used, of) => (of === null ? null : used / of);
  setText("time", duration(now_s));
  setText("time-of", goal.within_s === null ? "" : `of ${duration(goal.within_s)}`);
  setText("time-note", goal.within_s === null ? "no deadline" : study.is_over ? "" : `${duration(Math.max(0, goal.within_s - now_s))} left`);
  fill("time-bar", share(now_s, goal.within_s), "of the time");
  setText("cost", duration(study.device_s));
  setText("cost-of", goal.device_s === null ? "of cores" : `of ${duration(goal.device_s)}`);
  const busy = state.trials.reduce((sum, t) => sum + t.cores, 0);
  setText("cost-note", `${busy} of ${study.cores.length} cores busy` + (goal.device_s === null ? "" : `, ${duration(Math.max(0, goal.device_s - study.device_s))} left`));
  fill("cost-bar", share(study.device_s, goal.device_s), "of the device time");
  setText("trial-count", `${count(study.trials)}${goal.trials === null ? "" : ` of ${count(goal.trials)}`} trials, ${counted(study.points, "point")}`);
  drawClasses();
}
function drawGoal() {
  const { study, about: { goal }, bests } = state;
  setText("goal-title", `best ${goal.metric} so far`);
  const best = study.best ? study.best[2] : null;
  setText("best", number(best, 5));
  setText("best-of", goal.target === null ? "" : `of ${number(goal.target, 5)}`);
  const start = bests.length ? bests[0][3] : null;
  const reached = best !== null && goal.target !== null && !better(goal.target, best);
  const way = goal.target === null || best === null ? (goal.target === null ? null : 0) : reached ? 1 : start === goal.target ? 0 : (best - start) / (goal.target - start);
  fill("goal-bar", way, "of the way to the target");
  $("goal-bar").classList.toggle("reached", reached);
  const hope = state.trials.filter(mayGoOn).reduce((a, b) => (chanceOf(b) > (a ? chanceOf(a) : 0) ? b : a), null);
  const parts = study.best ? [`trial ${study.best[0]}, step ${study.best[1]}`] : ["no value yet"];
  if (reached) parts.push("target reached");
  else if (goal.target !== null && best !== null) parts.push(`${number(Math.abs(goal.target - best), 3)} to go`);
  if (!reached && hope && !study.is_over) parts.push(`most likely next: trial ${hope.n}, P = ${number(chanceOf(hope), 2)}`);
  setText("goal-note", parts.join(" · "));
}
function drawClasses() {
  const of = Object.fromEntries(CLASSES.map((name) => [name, []]));
  for (const t of state.trials) of[classOf(t)].push(t);
  const names = of.none.length && CLASSES.slice(0, 3).every((name) => !of[name].length) ? ["none"] : CLASSES.slice(0, 3);
  $("class-bar").replaceChildren(...names.map((name) => {
    const part = el("i", { class: name });
    part.style.flexGrow = of[name].length;
    return part;
  }));
  $("classes").replaceChildren(...names.map((name) => el("div", { class: `class ${name}`, title: MEANS[name] },
    el("h3", {}, el("b", {}, count(of[name].length)), el("span", { class: "mark", "aria-hidden": "true" }, MARKS[name]), name === "none" ? "not classified" : name),
    el("div", { class: "chips" }, ...ranked(of[name]).slice(0, MOST_CHIPS).map(chip)))));
}
// Live before not, then by chance, then by value.
function ranked(trials) {
  const rank = (t) => [isLive(t) ? 0 : mayGoOn(t) ? 1 : 2, -(chanceOf(t) ?? -1), t.best === null || t.best === undefined ? Infinity : isMax() ? -t.best : t.best];
  const keyed = trials.map((t) => [rank(t), t]);
  return keyed.sort(([a], [b]) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]).map(([, t]) => t);
}
function chip(t) {
  const p = chanceOf(t), says = mayGoOn(t) && p !== null && p !== undefined ? `P ${p.toFixed(2)}` : number(t.best, 3);
  return el("button", { type: "button", class: "chip", title: configText(t), onclick: () => select(t.n) }, `${t.n} `, el("small", {}, says));
}

function drawFilter() {
  const counts = Object.fromEntries(CLASSES.map((name) => [name, 0]));
  for (const t of state.trials) counts[classOf(t)] += 1;
  const names = CLASSES.filter((name) => counts[name] || (name !== "none" && counts.none < state.trials.length));
  const group = $("class-filter"), key = names.join();
  if (group.dataset.key !== key) {
    group.dataset.key = key;
    group.replaceChildren(...names.map((name) => el("button", { type: "button", class: name, "data-class": name, onclick: () => toggle(name) },
      el("span", { class: "mark", "aria-hidden": "true" }, MARKS[name]), name === "none" ? "not classified" : name)));
  }
  for (const button of group.children) button.setAttribute("aria-pressed", !ui.off.has(button.dataset.class));
  const all = shownNow.length === state.trials.length, brushed = ui.brushes.size ? " · ranges chosen, Esc takes them back" : "";
  setText("shown", all && !brushed ? "" : `${count(shownNow.length)} of ${count(state.trials.length)} trials${brushed}`);
}
function toggle(name) {
  if (!ui.off.delete(name)) ui.off.add(name);
  filterChanged();
}

function drawSlider() {
  const slider = $("slider");
  slider.max = state.last;
  if (ui.until === null) slider.value = state.last;
  const words = `${duration(state.now_s)} · event ${count(state.event)}`;
  setText("when", ui.until === null ? words : `${words} of ${count(state.last)}`);
  slider.setAttribute("aria-valuetext", words);
  $("now").hidden = ui.until === null;
  document.body.classList.toggle("past", ui.until !== null);
}
function goTo(event) {
  const until = event === null || event >= state.last ? null : Math.max(1, Math.round(event));
  if (until === ui.until) return;
  ui.until = until;
  ui.panels = {};
  if (until !== null) $("slider").value = until;
  follow();
}
function play() {
  const stop = ui.playing !== null;
  clearInterval(ui.playing);
  ui.playing = null;
  $("play").textContent = stop ? "▶" : "❚❚";
  if (stop) return;
  const step = Math.max(1, Math.round(state.last / 150));
  if (ui.until === null) goTo(1);
  ui.playing = setInterval(() => {
    if (ui.until === null) play();
    else if (!asking) goTo(ui.until + step);
  }, 100);
}

// --- pictures -------------------------------------------------------------------------------------------------------

const ink = {};
function readInk() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ink", "soft", "faint", "line", "grid", "card", "accent", "bad", ...CLASSES]) ink[name] = style.getPropertyValue(`--${name}`).trim();
}
const CONFIG = { displayModeBar: false, responsive: false, doubleClick: "reset", showTips: false };
const isCoarse = () => matchMedia("(pointer: coarse), (max-width: 700px)").matches;
function axis(title, range, more = {}) {
  if (more.type === "log") more = { ...more, ...logTicks(range) };
  return { title: { text: plain(title), standoff: 6 }, range, gridcolor: ink.grid, linecolor: ink.line, zeroline: false, tickfont: { size: 11 },
    fixedrange: isCoarse(), ...more };
}
// At most about seven, of 1, 2 and 5 times a power of ten: Plotly writes 2, 3, 4 ... without their power.
function logTicks([low, high]) {
  const at = (multiples) => {
    const ticks = [];
    for (let power = Math.floor(low); power <= high; power += 1) for (const m of multiples) ticks.push(m * 10 ** power);
    return ticks.filter((v) => Math.log10(v) >= low && Math.log10(v) <= high);
  };
  const tickvals = [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 5], [1]].map(at).find((ticks) => ticks.length < 8) ?? at([1]).filter((_, i) => i % 2 === 0);
  return { tickvals, ticktext: tickvals.map((v) => number(v, 3)) };
}
function layoutOf(xaxis, yaxis, more = {}) {
  return { xaxis, yaxis, margin: { l: 58, r: 14, t: 8, b: 40 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent", showlegend: false,
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink.soft }, hovermode: false, dragmode: isCoarse() ? false : "zoom",
    uirevision: "kept", ...more };
}
const GHOST = [{ x: [null], y: [null], hoverinfo: "skip" }];

// Axes and zooming are Plotly's. What there may be a thousand of is painted on a canvas over them: that takes
// milliseconds, where Plotly's own lines and markers would take a second.
class Picture {
  constructor(id, { frame = null, paint = null, note = null, traces = null }) {
    this.id = id;
    this.place = $(id).querySelector(".plot");
    Object.assign(this, { frame, paint, traces, dirty: true, seen: false, needsPlotly: frame !== null, key: "", hits: [] });
    this.note = note;
    this.box = el("div", { class: "frame" });
    this.empty = el("div", { class: "empty", hidden: "" });
    this.place.append(this.box, this.empty);
    this.place.setAttribute("role", "img");
    if (paint) {
      this.canvas = el("canvas", { class: "front" });
      this.place.append(this.canvas);
      this.listen();
    }
    pictures[id] = this;
    new IntersectionObserver((entries) => {
      this.seen = entries.at(-1).isIntersecting;
      if (this.seen) { soil(id); refreshPanels(); }
    }, { rootMargin: "80px" }).observe($(id));
    new ResizeObserver(() => { this.key = ""; soil(id); }).observe(this.place);
  }
  draw() {
    const layout = this.frame ? this.frame() : null, problem = typeof layout === "string" ? layout : "";
    this.empty.hidden = !problem;
    this.empty.textContent = problem;
    this.box.hidden = !!problem;
    if (this.note) {
      const text = problem ? "" : this.note();
      $(this.id).querySelector(".note").textContent = text;
      this.place.setAttribute("aria-label", text || problem);
    }
    if (this.frame && !problem) this.react(layout);
    if (this.paint) this.repaint(problem);
  }
  react(layout) {
    const traces = this.traces ? this.traces() : GHOST;
    const key = JSON.stringify([layout, this.traces && traces, this.place.clientWidth]);
    if (key === this.key) return;
    this.key = key;
    window.Plotly.react(this.box, traces, { ...layout, width: this.place.clientWidth, height: this.place.clientHeight }, CONFIG);
    if (!this.bound) {
      this.bound = true;
      for (const name of ["plotly_relayout", "plotly_relayouting"]) this.box.on(name, () => this.paint && this.repaint(""));
    }
  }
  repaint(problem) {
    const width = this.place.clientWidth, height = this.place.clientHeight, ratio = Math.min(2, devicePixelRatio || 1);
    if (this.canvas.width !== width * ratio || this.canvas.height !== height * ratio) [this.canvas.width, this.canvas.height] = [width * ratio, height * ratio];
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.hits = [];
    if (problem) return;
    pen.save();
    if (this.frame) {
      this.scale = scaleOf(this.box);
      pen.beginPath();
      pen.rect(this.scale.left, this.scale.top, this.scale.width, this.scale.height);
      pen.clip();
    }
    this.paint(pen, this.scale, { width, height });
    pen.restore();
  }
  listen() {
    let down = null;
    this.place.addEventListener("pointermove", (event) => this.hover(event));
    this.place.addEventListener("pointerleave", () => hoverOver(null));
    this.place.addEventListener("pointerdown", (event) => { down = [event.clientX, event.clientY]; }, true);
    window.addEventListener("pointerup", (event) => {
      if (down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) < 4) {
        const found = this.nearest(event);
        if (found) select(found.trial);
      }
      down = null;
    });
  }
  nearest(event) {
    const box = this.place.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, least = 16 * 16;
    for (const hit of this.hits) {
      const d = distance2(hit, x, y);
      if (d <= least) [best, least] = [hit, d];
    }
    return best;
  }
  hover(event) {
    const found = event.buttons ? null : this.nearest(event);
    this.place.classList.toggle("picks", !!found);
    hoverOver(found, event);
  }
}
function scaleOf(box) {
  const { xaxis, yaxis } = box._fullLayout, at = (ax) => {
    const [a, b] = ax.range.map(Number), isLog = ax.type === "log";
    return (v) => ((isLog ? Math.log10(v) : v) - a) / (b - a);
  };
  const fx = at(xaxis), fy = at(yaxis);
  return { left: xaxis._offset, top: yaxis._offset, width: xaxis._length, height: yaxis._length,
    x: (v) => xaxis._offset + xaxis._length * fx(v), y: (v) => yaxis._offset + yaxis._length * (1 - fy(v)) };
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
function hoverOver(hit, event) {
  const tip = $("tip"), trial = hit ? state.trials[hit.trial] : null;
  tip.hidden = !trial;
  if (trial) {
    tip.replaceChildren(el("b", {}, `trial ${trial.n} · ${[classOf(trial) === "none" ? "" : classOf(trial), statusOf(trial)].filter(Boolean).join(", ")}`),
      ...(hit.lines ?? tipLines(trial)).flatMap((line) => [line, el("br")]));
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 16 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 16}px`;
  }
  const hovered = trial ? trial.n : null;
  if (hovered !== ui.hovered) {
    ui.hovered = hovered;
    for (const picture of Object.values(pictures)) if (picture.seen && picture.paint && picture.hits.length) picture.repaint("");
  }
}
function tipLines(t) {
  const lines = [t.best === null || t.best === undefined ? "no value yet" : `best ${number(t.best)} at step ${t.best_step}, now ${number(t.value)} at ${t.step}`];
  const p = chanceOf(t);
  if (p !== null && p !== undefined) lines.push(`P = ${p.toFixed(3)}, ${number(finalOf(t))} expected at the end`);
  lines.push(configText(t));
  return lines;
}

// The values that a picture has to show: 1 % to 99 % of them, the best and the target always.
function valueRange(values) {
  const sorted = Float64Array.from(values).sort(), { goal } = state.about, at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  const must = [goal.target, state.study.best?.[2]].filter((v) => v !== null && v !== undefined);
  if (!sorted.length && !must.length) return null;
  let low = Math.min(...must, ...(sorted.length ? [at(isMax() ? 0.02 : 0)] : [])), high = Math.max(...must, ...(sorted.length ? [at(isMax() ? 1 : 0.98)] : []));
  if (low === high) [low, high] = [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  const isLog = low > 0 && high / low > 60;
  if (isLog) [low, high] = [Math.log10(low), Math.log10(high)];
  const room = 0.05 * (high - low), tidy = (v) => Number(v.toPrecision(3));
  return { type: isLog ? "log" : "linear", range: [tidy(low - room), tidy(high + room)] };
}
function placeOfValue(value) {
  const held = state.valueAxis;
  if (!held || value === null || value === undefined || (held.type === "log" && value <= 0)) return null;
  const v = held.type === "log" ? Math.log10(value) : value;
  return Math.min(1, Math.max(0, (v - held.range[0]) / (held.range[1] - held.range[0])));
}
function targetLine(pen, scale, align = "left") {
  const { target } = state.about.goal;
  if (target === null) return;
  const y = scale.y(target);
  pen.strokeStyle = ink.accent;
  pen.fillStyle = ink.accent;
  pen.lineWidth = 1.2;
  pen.setLineDash([6, 4]);
  line(pen, [scale.left, scale.left + scale.width], [y, y]);
  pen.setLineDash([]);
  pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  pen.textAlign = align;
  pen.fillText(`target ${number(target, 5)}`, align === "left" ? scale.left + 6 : scale.left + scale.width - 6, y + (y - scale.top < 16 ? 13 : -5));
}
function line(pen, xs, ys) {
  pen.beginPath();
  pen.moveTo(xs[0], ys[0]);
  for (let at = 1; at < xs.length; at += 1) pen.lineTo(xs[at], ys[at]);
  pen.stroke();
}
function area(pen, xs, low, high) {
  pen.beginPath();
  xs.forEach((x, at) => (at ? pen.lineTo(x, high[at]) : pen.moveTo(x, high[at])));
  for (let at = xs.length - 1; at >= 0; at -= 1) pen.lineTo(xs[at], low[at]);
  pen.fill();
}
function mark(pen, name, x, y, r) {
  pen.beginPath();
  if (name === "promising") { pen.moveTo(x, y - r); pen.lineTo(x + r, y + 0.8 * r); pen.lineTo(x - r, y + 0.8 * r); }
  else if (name === "poor") { pen.moveTo(x, y + r); pen.lineTo(x + r, y - 0.8 * r); pen.lineTo(x - r, y - 0.8 * r); }
  else if (name === "none") { pen.moveTo(x, y - r); pen.lineTo(x + r, y); pen.lineTo(x, y + r); pen.lineTo(x - r, y); }
  else pen.arc(x, y, 0.9 * r, 0, 7);
  pen.closePath();
}
const isMarked = (t) => t.n === ui.selected || t.n === ui.hovered;
// Poor below, promising above, the one that is looked at on top.
function inOrder(trials) {
  const rank = (t) => (isMarked(t) ? 9 : 3 - CLASSES.indexOf(classOf(t)) + (mayGoOn(t) ? 4 : 0));
  const ranks = [[], [], [], [], [], [], [], [], [], []];
  for (const t of trials) ranks[rank(t)].push(t);
  return ranks.flat();
}

// --- learning curves

function curvesFrame() {
  const drawn = shownNow.filter((t) => t.steps.length);
  if (!drawn.length) return state.trials.length ? (shownNow.length ? "no trial has reported a value yet" : "no trial passes the filter") : "no trial yet";
  const values = [];
  for (const t of drawn) for (const v of t.values) if (v !== null) values.push(v);
  const y = valueRange(values), end = Math.max(...drawn.map((t) => Math.max(t.steps.at(-1), t.max_steps ?? 0)));
  return layoutOf(axis("step", [0, end * 1.02]), axis(state.about.goal.metric, y.range, { type: y.type }));
}
function curvesPaint(pen, scale) {
  const all = shownNow.filter((t) => t.steps.length), many = all.length > MOST_CURVES;
  const single = many ? new Set(ranked(all).slice(0, MOST_SINGLE)) : null, rest = many ? all.filter((t) => !single.has(t)) : [];
  if (many) paintTogether(pen, scale, rest);
  const trials = inOrder(many ? all.filter((t) => single.has(t) || isMarked(t)) : all);
  paintBands(pen, scale);
  targetLine(pen, scale);
  const faint = Math.min(0.55, Math.max(0.09, 12 / Math.sqrt(trials.length * 4)));
  for (const t of trials) this.hits.push(paintCurve(pen, scale, t, faint));
}
function paintCurve(pen, scale, t, faint) {
  const name = classOf(t), live = isLive(t) || state.study.best?.[0] === t.n, xs = t.steps.map(scale.x), ys = t.values.map((v) => (v === null ? NaN : scale.y(v)));
  if (t.step > t.steps.at(-1) && t.value !== null) { xs.push(scale.x(t.step)); ys.push(scale.y(t.value)); }
  pen.strokeStyle = pen.fillStyle = t.n === ui.selected ? ink.accent : ink[name];
  pen.globalAlpha = isMarked(t) ? 1 : live || name === "promising" ? 0.95 : mayGoOn(t) ? Math.max(0.3, faint) : faint;
  pen.lineWidth = isMarked(t) ? 2.6 : live || name === "promising" ? 1.7 : 1;
  line(pen, xs, ys);
  if (live || xs.length === 1 || isMarked(t)) { mark(pen, name, xs.at(-1), ys.at(-1), isMarked(t) ? 5 : live ? 4 : 2); pen.fill(); }
  pen.globalAlpha = 1;
  return { trial: t.n, xs, ys };
}
function bandTrials() {
  const bands = ui.panels.forecasts?.bandOf ?? new Map(), shown = new Set(shownNow.map((t) => t.n));
  const chosen = [...bands.keys()].filter((n) => shown.has(n) && mayGoOn(state.trials[n]));
  const best = chosen.sort((a, b) => chanceOf(state.trials[b]) - chanceOf(state.trials[a])).slice(0, 3);
  return [...new Set([...best, ...[ui.selected].filter((n) => bands.has(n))])];
}
function paintBands(pen, scale) {
  for (const n of bandTrials()) {
    const [steps, low, innerLow, middle, innerHigh, high] = ui.panels.forecasts.bandOf.get(n), y = (line) => line.map(scale.y);
    const xs = steps.map(scale.x), t = state.trials[n];
    pen.fillStyle = pen.strokeStyle = n === ui.selected ? ink.accent : ink[classOf(t)];
    pen.globalAlpha = 0.1;
    area(pen, xs, y(low), y(high));
    pen.globalAlpha = 0.16;
    area(pen, xs, y(innerLow), y(innerHigh));
    pen.globalAlpha = 0.9;
    pen.lineWidth = 1.4;
    pen.setLineDash([2, 3]);
    line(pen, xs, y(middle));
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }
}
// Too many to tell apart: at each step that is drawn, what holds 90 % and half of them.
function paintTogether(pen, scale, trials) {
  const at = new Map();
  for (const t of trials) t.steps.forEach((step, i) => {
    if (t.values[i] === null) return;
    if (!at.has(step)) at.set(step, []);
    at.get(step).push(t.values[i]);
  });
  const steps = [...at.keys()].filter((step) => at.get(step).length > 20).sort((a, b) => a - b), xs = steps.map(scale.x);
  const sorted = steps.map((step) => Float64Array.from(at.get(step)).sort());
  const line_ = (q) => sorted.map((values) => scale.y(values[Math.floor(q * (values.length - 1))]));
  pen.fillStyle = pen.strokeStyle = ink.poor;
  for (const [q, alpha] of [[0.05, 0.18], [0.25, 0.28]]) {
    pen.globalAlpha = alpha;
    if (steps.length > 1) area(pen, xs, line_(q), line_(1 - q));
  }
  pen.globalAlpha = 0.9;
  if (steps.length > 1) line(pen, xs, line_(0.5));
  pen.globalAlpha = 1;
}
function curvesNote() {
  const every = state.about.every, n = shownNow.filter((t) => t.steps.length).length, parts = [counted(n, "curve")];
  if (n > MOST_CURVES) parts[0] = `the ${MOST_SINGLE} best of ${count(n)} curves; the others together, as bands that hold 90 % and half of them, and their median`;
  if (every > 1) parts.push(`every ${every}${["th", "st", "nd", "rd"][every % 100 > 10 && every % 100 < 14 ? 0 : every % 10] ?? "th"} step is drawn`);
  const banded = bandTrials();
  if (banded.length) parts.push(`bands: where trial${banded.length > 1 ? "s" : ""} ${banded.join(", ")} will go, 90 % and half`);
  else if (!state.study.is_over && ui.panels.forecasts === undefined) parts.push("forecasting …");
  return parts.join("; ");
}

// --- the map of both potentials

const onMap = () => shownNow.filter((t) => speedOf(t) !== null && finalOf(t) !== null && finalOf(t) !== undefined);
function mapFrame() {
  const spots = onMap();
  if (!spots.length) return "no trial has a measured speed yet";
  const y = valueRange(spots.map(finalOf)), speeds = spots.map(speedOf), low = Math.min(...speeds), high = Math.max(...speeds);
  const isLog = high / low > 8, by = (v) => (isLog ? Math.log10(v) : v), room = 0.1 * (by(high) - by(low)) || 0.1 * Math.abs(by(high)) || 0.1;
  const range = [Number((by(low) - room).toPrecision(3)), Number((by(high) + room).toPrecision(3))];
  const what = ui.panels.forecasts?.spots?.length || spots.some((t) => t.final !== null) ? `expected final ${state.about.goal.metric}` : `best ${state.about.goal.metric}`;
  return layoutOf(axis("steps a second", range, { type: isLog ? "log" : "linear" }), axis(what, y.range, { type: y.type }));
}
function mapPaint(pen, scale) {
  targetLine(pen, scale, "right");
  for (const t of inOrder(onMap())) {
    const x = scale.x(speedOf(t)), y = scale.y(finalOf(t)), p = chanceOf(t), r = 3 + 10 * Math.sqrt(p ?? 0.02), going = mayGoOn(t), f = forecastOf(t);
    pen.fillStyle = pen.strokeStyle = t.n === ui.selected ? ink.accent : ink[classOf(t)];
    if (f && (isMarked(t) || (going && p > 0.2))) {
      pen.globalAlpha = 0.45;
      pen.lineWidth = 1.2;
      line(pen, [x, x], [scale.y(f.low), scale.y(f.high)]);
    }
    pen.globalAlpha = isMarked(t) ? 1 : going ? 0.8 : 0.38;
    mark(pen, classOf(t), x, y, r);
    pen.fill();
    if (isLive(t) || isMarked(t)) { pen.globalAlpha = 1; pen.lineWidth = 1.6; pen.strokeStyle = ink.ink; pen.stroke(); }
    pen.globalAlpha = 1;
    this.hits.push({ trial: t.n, xs: [x], ys: [y] });
  }
}
function mapNote() {
  const held = ui.panels.forecasts;
  const by = held?.spots?.length ? "" : onMap().some((t) => t.final !== null) ? "; as the last decisions had it" : "; no forecasts yet: the best value so far";
  return `right is fast, ${isMax() ? "up" : "down"} is good; size: chance of the target; outlined: running${by}`;
}

// --- who had which cores

function lanes() {
  const cores = new Set(state.study.cores);
  for (const life of state.lives.values()) for (const core of life[2]) cores.add(core);
  return [...cores].sort((a, b) => a - b);
}
function ganttFrame() {
  if (!state.lives.size) return "no trial has had a core yet";
  const cores = lanes(), { within_s } = state.about.goal, [unit, word] = unitOf(state.now_s);
  const show = cores.length <= 24 ? cores : cores.filter((_, i) => i % Math.ceil(cores.length / 24) === 0);
  return layoutOf(axis(`study time, ${word}`, [0, roundUp(state.now_s / unit)]),
    axis("core", [cores.length - 0.5, -0.5], { tickvals: show.map((core) => cores.indexOf(core)), ticktext: show.map(String), showgrid: false, fixedrange: true }),
    within_s !== null && within_s < state.now_s * 1.03 ? { shapes: [deadline(within_s / unit)] } : {});
}
const deadline = (x) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: ink.bad, width: 1, dash: "dot" } });
// An axis of time ends a little later, at a round time: so it need not be drawn anew with every event.
function roundUp(value) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(value, 1e-3)) - 1);
  return Number((Math.ceil((value * 1.02) / unit) * unit).toPrecision(6));
}
const unitOf = (s) => (s > 7200 ? [3600, "hours"] : s > 180 ? [60, "minutes"] : [1, "seconds"]);
function ganttPaint(pen, scale) {
  const at = new Map(lanes().map((core, i) => [core, i])), [unit] = unitOf(state.now_s), shown = new Set(shownNow.map((t) => t.n));
  const tall = Math.min(44, Math.abs(scale.y(0) - scale.y(1)) * 0.78 || 44);
  pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (const [trial, number_, cores, label, start, end, outcome] of state.lives.values()) {
    const t = state.trials[trial], name = label === null ? "none" : state.about.labels[label], left = scale.x(start / unit), right = scale.x((end ?? state.now_s) / unit);
    const wide = Math.max(right - left - (right - left > 3 ? 1 : 0), 0.8);
    for (const core of cores) {
      const top = scale.y(at.get(core)) - tall / 2;
      pen.globalAlpha = !shown.has(trial) ? 0.12 : isMarked(t) ? 1 : end === null ? 0.95 : 0.6;
      pen.fillStyle = trial === ui.selected ? ink.accent : ["failed", "lost", "out_of_memory"].includes(outcome) ? ink.bad : ink[name];
      pen.fillRect(left, top, wide, tall);
      if (wide > 22 && tall > 12) { pen.globalAlpha = shown.has(trial) ? 1 : 0.3; pen.fillStyle = ink.card; pen.fillText(String(trial), left + wide / 2, top + tall / 2 + 0.5); }
      const lines = [`attempt ${number_} on ${cores.length > 1 ? "cores" : "core"} ${cores.join(", ")}`, `${duration(start)} to ${end === null ? "now" : duration(end)}${outcome ? `: ${outcome.replace(/_/g, " ")}` : ""}`];
      this.hits.push({ trial, box: [left, top, left + wide, top + tall], lines });
    }
  }
  pen.globalAlpha = 1;
}
function ganttNote() {
  const held = [...state.lives.values()].reduce((sum, [, , cores, , start, end]) => sum + cores.length * ((end ?? state.now_s) - start), 0);
  const all = state.now_s * Math.max(1, state.study.cores.length);
  return `${counted(state.lives.size, "attempt")}; cores were busy for ${Math.round((100 * held) / (all || 1))} % of the time; colour: the class when it got them`;
}

// --- small pictures by Plotly alone

function bestsFrame() {
  if (!state.bests.length) return "no value yet";
  const values = state.bests.map((b) => b[3]).filter((v) => v !== null), [unit, word] = unitOf(state.now_s), y = valueRange(values), { goal } = state.about;
  const shapes = goal.target === null ? [] : [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: goal.target, y1: goal.target, line: { color: ink.accent, width: 1.2, dash: "dash" } }];
  return layoutOf(axis(`study time, ${word}`, [0, roundUp(state.now_s / unit)]), axis(goal.metric, y.range, { type: y.type }), { shapes, hovermode: "closest" });
}
function bestsTraces() {
  const [unit] = unitOf(state.now_s), now = Math.max(Number(state.now_s.toPrecision(2 + state.study.is_over * 4)), state.bests.at(-1)[0]);
  const rows = [...state.bests, [now, null, null, state.bests.at(-1)[3]]];
  return [{ x: rows.map((b) => b[0] / unit), y: rows.map((b) => b[3]), mode: "lines", line: { shape: "hv", color: ink.promising, width: 2.2 }, hoverinfo: "skip" },
    { x: state.bests.map((b) => b[0] / unit), y: state.bests.map((b) => b[3]), mode: "markers", marker: { color: ink.promising, size: 6 },
      text: state.bests.map((b) => (b[1] === null ? "taken back: it diverged" : `trial ${b[1]}, step ${b[2]}: ${number(b[3], 5)}`)), hoverinfo: "text" }];
}
function bestsNote() {
  const last = state.bests.at(-1);
  return `${counted(state.bests.length, "improvement")}; the last after ${duration(last[0])}, by trial ${last[1] ?? "–"}`;
}
const panelSays = (name, what) => {
  const held = ui.panels[name];
  return !held ? "computing …" : held.problem ? `cannot be computed: ${held.problem}` : what(held);
};
function importanceFrame() {
  const says = panelSays("importance", (d) => (d[ui.importance].knobs.length ? null : "at least 8 trials with a value are needed"));
  if (says) return says;
  const longest = Math.max(...state.about.axes.map((a) => a.name.length));
  return layoutOf(axis("share of the variance", [0, 1.02]), axis("", undefined, { automargin: false, type: "category", fixedrange: true }),
    { barmode: "overlay", bargap: 0.45, hovermode: "closest", margin: { l: Math.min(150, 18 + 7 * longest), r: 14, t: 8, b: 40 } });
}
function importanceTraces() {
  const knobs = [...ui.panels.importance[ui.importance].knobs].reverse(), short = (name) => plain(name.length > 18 ? `${name.slice(0, 17)}…` : name);
  const bar = (of, color, says) => ({ type: "bar", orientation: "h", y: knobs.map((k) => short(k.name)), x: knobs.map((k) => k[of]), marker: { color },
    hovertext: knobs.map((k) => `${plain(k.name)}: ${number(k[of], 2)} ${says}`), hoverinfo: "text" });
  return [bar("total", ink.none, "with its interactions"), bar("alone", ink.accent, "by itself")];
}
function importanceNote() {
  const found = ui.panels.importance[ui.importance], sure = found.explained ?? -1;
  return `of ${count(found.trials)} trials; dark: by itself, light: with interactions. ` +
    (sure < 0.1 ? "The hyperparameters explain next to nothing yet: do not believe this" : `Explains ${Math.round(100 * sure)} % of trials not seen`);
}
function speedsFrame() {
  const says = panelSays("speeds", (d) => (d.speeds.some((s) => s[2] !== null) ? null : "at least 4 trials with a measured speed are needed"));
  if (says) return says;
  const all = ui.panels.speeds.speeds.filter((s) => s[2] !== null).flatMap((s) => [1 / s[1], 1 / s[2]]).map(Math.log10);
  const room = 0.06 * (Math.max(...all) - Math.min(...all)) || 0.1, range = [Math.min(...all) - room, Math.max(...all) + room].map((v) => Number(v.toPrecision(3)));
  const more = { type: "log" };
  return layoutOf(axis("predicted from the other trials, steps a second", range, more), axis("measured", range, more));
}
function speedsPaint(pen, scale) {
  const shown = new Set(shownNow.map((t) => t.n)), rows = ui.panels.speeds.speeds.filter(([n, , predicted]) => predicted !== null && shown.has(n));
  pen.strokeStyle = ink.faint;
  pen.lineWidth = 1;
  pen.setLineDash([4, 4]);
  line(pen, [scale.left, scale.left + scale.width], [scale.top + scale.height, scale.top]);
  pen.setLineDash([]);
  for (const [n, measured, predicted] of rows) {
    const t = state.trials[n], x = scale.x(1 / predicted), y = scale.y(1 / measured);
    pen.fillStyle = n === ui.selected ? ink.accent : ink[classOf(t)];
    pen.globalAlpha = isMarked(t) ? 1 : 0.6;
    mark(pen, classOf(t), x, y, isMarked(t) ? 7 : 4.5);
    pen.fill();
    this.hits.push({ trial: n, xs: [x], ys: [y], lines: [`${number(1 / measured, 3)} steps a second, ${number(1 / predicted, 3)} predicted`, configText(t)] });
  }
  pen.globalAlpha = 1;
}
const speedsNote = () => `typically within a factor of ${number(ui.panels.speeds.factor, 3)}; each trial is predicted from the others`;
function calibrationFrame() {
  const says = panelSays("calibration", (d) => (d.coverage.length ? null : d.claims.length ? claimsText(d) : "no trial has been trained to its end yet: nothing to compare with"));
  if (says) return says;
  const share = { tickformat: ".0%" };
  return layoutOf(axis("said", [0, 1.02], share), axis("came true", [0, 1.04], share), { hovermode: "closest", showlegend: true,
    legend: { x: 0.02, y: 0.98, bgcolor: "transparent", font: { size: 11 } }, shapes: [{ type: "line", x0: 0, x1: 1, y0: 0, y1: 1, layer: "below", line: { color: ink.faint, width: 1, dash: "dash" } }] });
}
function calibrationTraces() {
  const { coverage, reliability } = ui.panels.calibration, most = Math.max(1, ...reliability.map((b) => b.count));
  return [{ name: "intervals", x: coverage.map((c) => c.level), y: coverage.map((c) => c.seen), mode: "lines+markers", line: { color: ink.accent, width: 2 },
    marker: { size: 5 }, hovertemplate: "%{x:.0%} intervals held %{y:.0%}<extra></extra>" },
  { name: "chances", x: reliability.map((b) => b.said), y: reliability.map((b) => b.seen), mode: "markers", marker: { color: ink.opportunistic, symbol: "diamond",
    size: reliability.map((b) => 6 + 10 * Math.sqrt(b.count / most)) }, text: reliability.map((b) => `${count(b.count)} forecasts`), hovertemplate: "P = %{x:.2f} came true in %{y:.0%} of %{text}<extra></extra>" }];
}
const claimsText = (d) => {
  const off = d.claims.map((c) => Math.abs(c.said - c.came)).sort((a, b) => a - b);
  return `the decisions' expectations were off by ${number(off[Math.floor(off.length / 2)], 2)} in the middle, of ${count(off.length)}`;
};
function calibrationNote() {
  const d = ui.panels.calibration;
  return `${count(d.forecasts)} forecasts made again from the beginnings of finished trials; on the line is right` + (d.claims.length ? `; ${claimsText(d)}` : "");
}

// --- hyperparameters: a line a trial, all by canvas, for the axes can be brushed

function coordinatesPaint(pen, _, { width, height }) {
  const axes = state.about.axes, { left, right, top, bottom } = { left: 26, right: 44, top: 34, bottom: 18 }, high = height - top - bottom;
  const trials = inOrder(state.trials.filter((t) => t.best !== null && t.best !== undefined)), family = getComputedStyle(document.body).fontFamily;
  state.valueAxis = valueRange(trials.map(finalOf));
  if (!state.valueAxis || !axes.length) return;
  const x = (i) => left + ((width - left - right) * i) / axes.length, y = (u) => (u === null ? height - 4 : top + high * (1 - u));
  const shown = new Set(shownNow.map((t) => t.n)), faint = Math.min(0.5, Math.max(0.06, 7 / Math.sqrt(trials.length * 3)));
  this.geometry = { x, y, top, high, axes: axes.length + 1 };
  const step = Math.ceil(trials.length / 3000), leftOut = step > 1;
  this.every = leftOut ? step : 1;
  for (const [at, t] of trials.entries()) {
    if (leftOut && at % step && !isMarked(t) && classOf(t) !== "promising") continue;
    const ys = [...t.unit, placeOfValue(finalOf(t))].map(y), xs = ys.map((__, i) => x(i)), is = shown.has(t.n);
    pen.globalAlpha = isMarked(t) ? 1 : !is ? faint * 0.25 : classOf(t) === "promising" || isLive(t) ? 0.9 : faint;
    pen.strokeStyle = t.n === ui.selected ? ink.accent : is ? ink[classOf(t)] : ink.faint;
    pen.lineWidth = isMarked(t) ? 2.8 : classOf(t) === "promising" ? 1.8 : 1.1;
    line(pen, xs, ys);
    if (is) this.hits.push({ trial: t.n, xs, ys });
  }
  pen.globalAlpha = 1;
  const value = state.valueAxis, raw = (u) => value.range[0] + u * (value.range[1] - value.range[0]);
  const last = { name: "expected", ticks: [0, 0.25, 0.5, 0.75, 1].map((u) => [u, number(value.type === "log" ? 10 ** raw(u) : raw(u), 3)]) };
  for (const [i, { name, ticks }] of [...axes, last].entries()) {
    pen.strokeStyle = ink.faint;
    pen.lineWidth = 1;
    line(pen, [x(i), x(i)], [top, top + high]);
    const room = ((width - left - right) / axes.length) * 0.92;
    pen.textAlign = i === 0 ? "left" : i === axes.length ? "right" : "center";
    pen.fillStyle = ink.ink;
    pen.font = `600 12px ${family}`;
    pen.fillText(fitted(pen, name, room), i === 0 ? 4 : i === axes.length ? width - 4 : x(i), 16);
    pen.font = `10.5px ${family}`;
    pen.textAlign = "left";
    const spaced = ticks.filter((__, k) => k % Math.ceil(ticks.length / 8) === 0);
    for (const [u, text] of spaced) {
      const says = fitted(pen, text, room * 0.8), wide = pen.measureText(says).width;
      pen.globalAlpha = 0.8;
      pen.fillStyle = ink.card;
      pen.fillRect(x(i) + 3, y(u) - 7, wide + 4, 13);
      pen.globalAlpha = 1;
      pen.fillStyle = ink.soft;
      pen.fillText(says, x(i) + 5, y(u) + 3.5);
    }
    const brush = ui.brushes.get(i);
    if (brush) {
      pen.fillStyle = ink.accent;
      pen.globalAlpha = 0.3;
      pen.fillRect(x(i) - 6, y(brush[1]), 12, y(brush[0]) - y(brush[1]));
      pen.globalAlpha = 1;
    }
  }
}
function fitted(pen, text, width) {
  let says = String(text);
  while (says.length > 2 && pen.measureText(says).width > width) says = `${says.slice(0, -2).replace(/…$/, "")}…`;
  return says;
}
function coordinatesNote() {
  const has = state.trials.some((t) => t.best !== null && t.best !== undefined);
  if (!has) return "no trial has reported a value yet";
  const every = pictures.coordinates.every > 1 ? `; every ${pictures.coordinates.every}th trial and all promising ones` : "";
  return `right: the value expected at the end, or the best so far; drag along an axis to choose a range${every}`;
}
function listenToBrush() {
  const picture = pictures.coordinates, { canvas } = picture;
  let held = null;
  const at = (event) => {
    const box = canvas.getBoundingClientRect(), { x, top, high, axes } = picture.geometry, px = event.clientX - box.left;
    const near = [...Array(axes).keys()].find((i) => Math.abs(x(i) - px) < 12);
    return [near, Math.min(1, Math.max(0, 1 - (event.clientY - box.top - top) / high))];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!picture.geometry) return;
    const [axis_, u] = at(event);
    if (axis_ === undefined) return;
    held = { axis: axis_, from: u };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (picture.geometry && !held) canvas.style.cursor = at(event)[0] === undefined ? "" : "ns-resize";
    if (!held) return;
    const [, u] = at(event);
    if (Math.abs(u - held.from) > 0.02) ui.brushes.set(held.axis, [Math.min(u, held.from), Math.max(u, held.from)]);
    filterChanged();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (held && Math.abs(at(event)[1] - held.from) <= 0.02 && ui.brushes.delete(held.axis)) filterChanged();
    held = null;
  });
}

// --- the table

const COLUMNS = [
  ["trial", (t) => t.n, (t) => String(t.n)], ["status", (t) => statusOf(t), statusOf], ["class", (t) => CLASSES.indexOf(classOf(t)), null],
  ["best", (t) => t.best, (t) => number(t.best, 5)], ["at step", (t) => t.best_step, (t) => (t.best_step ? String(t.best_step) : "–")],
  ["last", (t) => t.value, (t) => number(t.value, 5)], ["step", (t) => t.step, (t) => (t.max_steps ? `${t.step}/${t.max_steps}` : String(t.step))],
  ["chance", (t) => chanceOf(t), (t) => number(chanceOf(t), 2)], ["expected", (t) => finalOf(t), (t) => number(finalOf(t), 4)],
  ["steps/s", speedOf, (t) => number(speedOf(t), 3)], ["attempts", (t) => t.attempts, (t) => String(t.attempts)],
  ["core time", coreTime, (t) => duration(coreTime(t))], ["configuration", null, null],
];
const TEXTS = ["status", "class", "configuration"];
function coreTime(t) {
  return t.device_s + (t.granted_s === null ? 0 : t.cores * Math.max(0, state.now_s - t.granted_s));
}
function sortedRows() {
  const [name, way] = ui.sort, by = COLUMNS.find(([title]) => title === name)[1];
  const sign = way ?? (name === "best" && !isMax() ? 1 : -1);
  const none = (v) => v === null || v === undefined;
  return shownNow.map((t) => [by(t), t]).sort(([a], [b]) => (none(a) || none(b) ? none(a) - none(b) : sign * (a < b ? -1 : a > b ? 1 : 0))).map(([, t]) => t);
}
function drawTable() {
  const head = $("table").querySelector("thead tr"), [name, way] = ui.sort;
  if (!head.children.length) head.append(...COLUMNS.map(([title, by]) => el("th", { scope: "col", class: TEXTS.includes(title) ? "" : "number", onclick: () => by && sortBy(title) }, title)));
  for (const th of head.children) th.setAttribute("aria-sort", th.textContent !== name ? "none" : (way ?? (isMax() ? -1 : 1)) < 0 ? "descending" : "ascending");
  const rows = sortedRows();
  ui.rows = rows.slice(0, MOST_ROWS).map((t) => t.n);
  $("table").querySelector("tbody").replaceChildren(...rows.slice(0, MOST_ROWS).map(rowOf));
  $("table").querySelector("h2 small").textContent = rows.length > MOST_ROWS ? `the first ${MOST_ROWS} of ${count(rows.length)}: filter or sort for others` : "";
}
function rowOf(t) {
  const cells = COLUMNS.map(([title, , text]) => {
    if (title === "class") return el("td", { class: classOf(t) }, el("span", { class: "mark", "aria-hidden": "true" }, MARKS[classOf(t)]), classOf(t) === "none" ? "–" : classOf(t));
    if (title === "configuration") return el("td", { class: "config", title: configText(t) }, configText(t));
    return el("td", { class: TEXTS.includes(title) ? "" : "number" }, text(t));
  });
  return el("tr", { "data-trial": t.n, "aria-selected": t.n === ui.selected, onclick: () => select(t.n) }, ...cells);
}
function sortBy(title) {
  const [name, way] = ui.sort;
  ui.sort = [title, name === title ? -(way ?? (isMax() ? -1 : 1)) : TEXTS.includes(title) || title === "trial" ? 1 : -1];
  soil("table");
}

// --- a trial's story

async function select(n) {
  if (n !== null && !state.trials[n]) return;
  ui.selected = n;
  $("story").hidden = n === null;
  soil();
  if (n === null) return;
  refreshPanels();
  const t = state.trials[n];
  setText("story-title", `trial ${n}`);
  $("story-body").replaceChildren(...storyHead(t), el("p", { class: "note" }, "reading its story …"));
  try {
    const story = await ask(`/trial/${n}` + (ui.until === null ? "" : `?until=${ui.until}`));
    if (ui.selected === n) $("story-body").replaceChildren(...storyHead(t), ...storyBody(story));
  } catch (error) {
    if (ui.selected === n) $("story-body").lastChild.textContent = error.message;
  }
}
function storyHead(t) {
  const name = classOf(t), rows = [["class", name === "none" ? "not classified" : `${MARKS[name]} ${name}: ${MEANS[name]}`], ["status", statusOf(t)],
    ["best", t.best_step ? `${state.about.goal.metric} = ${number(t.best, 6)} at step ${t.best_step}` : "no value yet"],
    ["trained", `${t.step}${t.max_steps ? ` of ${t.max_steps}` : ""} steps in ${counted(t.attempts, "attempt")}, ${duration(coreTime(t))} of core time`]];
  const f = forecastOf(t);
  if (f) rows.push(["forecast", `${number(f.final)} at the end, 90 % between ${number(f.low)} and ${number(f.high)}; P = ${number(f.p, 3)}`]);
  return [list(rows), el("h3", {}, `configuration, from ${t.origin}`), list(t.config.map(([knob, value]) => [knob, scalar(value)]))];
}
const list = (rows) => el("dl", {}, ...rows.flatMap(([term, text]) => [el("dt", {}, term), el("dd", {}, text)]));
function storyBody(story) {
  const parts = [el("h3", {}, "why")], name = classOf(state.trials[story.trial]);
  parts.push(el("p", { class: `why ${name}` }, story.why || "nothing has been decided about it yet"), el("h3", {}, "what happened"));
  parts.push(el("ol", { class: "chapters" }, ...story.chapters.map(([at_s, event, text]) => el("li", { class: event }, el("time", {}, duration(at_s)), text))));
  if (story.files.length) parts.push(el("h3", {}, "files"), el("pre", {}, story.files.join("\n")));
  return parts;
}

// --- keys, theme, start

const KEYS = [["/", "filter", () => $("words").focus()], ["j k", "next, previous trial of the table", null], ["1 2 3 4", "show or hide a class", null],
  ["[ ]", "back, forward in time", null], ["space", "play the study", play], ["n", "now", () => goTo(null)], ["t", "light or dark", () => theme(true)],
  ["i", "importance for value or speed", () => turnImportance()], ["Esc", "close; take chosen ranges back", escape], ["?", "these keys", () => $("keys").showModal()]];
function escape() {
  if (!$("story").hidden) select(null);
  else if (ui.brushes.size || ui.words) { ui.brushes.clear(); ui.words = $("words").value = ""; filterChanged(); }
}
function move(by) {
  const rows = ui.rows ?? [], at = rows.indexOf(ui.selected), next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  if (next !== undefined) select(next);
}
function turnImportance() {
  ui.importance = ui.importance === "value" ? "speed" : "value";
  $("importance").querySelector("h2 small").textContent = `for the ${ui.importance} (i)`;
  soil("importance");
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { document.activeElement.blur(); if (!$("keys").open) escape(); return; }
  if (event.target.closest("input, dialog, button") && !(event.target.id === "slider" && event.key !== " ")) return;
  const step = Math.max(1, Math.round(state.last / 100)), by = { j: () => move(1), k: () => move(-1), "[": () => goTo((ui.until ?? state.last) - step),
    "]": () => ui.until !== null && goTo(ui.until + step), " ": play };
  const act = by[event.key] ?? (CLASSES[event.key - 1] && (() => toggle(CLASSES[event.key - 1]))) ?? KEYS.find(([key]) => key === event.key)?.[2];
  if (!act) return;
  event.preventDefault();
  act();
});
function theme(turn) {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  if (turn) localStorage.setItem("foresail-theme", root.dataset.theme === "dark" ? "light" : "dark");
  root.dataset.theme = localStorage.getItem("foresail-theme") ?? (dark.matches ? "dark" : "light");
  readInk();
  if (state.about) soil();
}
function start() {
  theme(false);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(false));
  const add = (id, parts) => new Picture(id, parts);
  add("curves", { frame: curvesFrame, paint: curvesPaint, note: curvesNote });
  add("map", { frame: mapFrame, paint: mapPaint, note: mapNote });
  add("gantt", { frame: ganttFrame, paint: ganttPaint, note: ganttNote });
  add("bests", { frame: bestsFrame, traces: bestsTraces, note: bestsNote });
  add("coordinates", { paint: coordinatesPaint, note: coordinatesNote });
  add("importance", { frame: importanceFrame, traces: importanceTraces, note: importanceNote });
  add("speeds", { frame: speedsFrame, paint: speedsPaint, note: speedsNote });
  add("calibration", { frame: calibrationFrame, traces: calibrationTraces, note: calibrationNote });
  pictures.table = { id: "table", dirty: true, seen: false, draw: drawTable };
  new IntersectionObserver((entries) => { pictures.table.seen = entries.at(-1).isIntersecting; soil("table"); }, { rootMargin: "80px" }).observe($("table"));
  listenToBrush();
  turnImportance();
  turnImportance();
  $("key-list").append(...KEYS.flatMap(([key, what]) => [el("dt", {}, ...key.split(" ").flatMap((k) => [el("kbd", {}, k), " "])), el("dd", {}, what)]));
  $("theme").addEventListener("click", () => theme(true));
  $("help").addEventListener("click", () => $("keys").showModal());
  $("importance").querySelector("h2").addEventListener("click", turnImportance);
  $("story-close").addEventListener("click", () => select(null));
  $("words").addEventListener("input", () => { ui.words = $("words").value; filterChanged(); });
  $("filter").addEventListener("submit", (event) => event.preventDefault());
  $("slider").addEventListener("input", () => goTo(Number($("slider").value)));
  $("play").addEventListener("click", play);
  $("now").addEventListener("click", () => goTo(null));
  document.addEventListener("visibilitychange", () => { if (!document.hidden) follow(); });
  follow();
}
start();
