// A trial's story, with its reasons.

import { ask } from "./ask.js";
import { soil } from "./drawing.js";
import { LOOKS } from "./looks.js";
import { refreshPanels } from "./panels.js";
import { classOf, className, coreTime, forecastOf, MEANS, state, statusOf, ui } from "./state.js";
import { $, counted, duration, el, list, number, scalar, setText } from "./words.js";

export async function select(n) {
  if (n !== null && !state.trials[n]) return;
  ui.selected = n;
  $("story").hidden = n === null;
  soil();
  if (n === null) return;
  refreshPanels();
  const t = state.trials[n];
  setText("story-title", `trial ${n}`);
  $("story-body").replaceChildren(...head(t), el("p", { class: "note" }, "reading its story …"));
  try {
    const story = await ask(`/trial/${n}` + (ui.until === null ? "" : `?until=${ui.until}`));
    if (ui.selected === n) $("story-body").replaceChildren(...head(t), ...body(story));
  } catch (error) {
    if (ui.selected === n) $("story-body").lastChild.textContent = error.message;
  }
}
function head(t) {
  const name = classOf(t), f = forecastOf(t);
  const rows = [["class", name === "none" ? className(name) : `${LOOKS[name].glyph} ${name}: ${MEANS[name]}`], ["status", statusOf(t)],
    ["best", t.best_step ? `${state.about.goal.metric} = ${number(t.best, 6)} at step ${t.best_step}` : "no value yet"],
    ["trained", `${t.step}${t.max_steps ? ` of ${t.max_steps}` : ""} steps in ${counted(t.attempts, "attempt")}, ${duration(coreTime(t))} of core time`]];
  if (f) rows.push(["forecast", `${number(f.final)} at the end, 90 % between ${number(f.low)} and ${number(f.high)}; P = ${number(f.p, 3)}`]);
  return [list(rows), el("h3", {}, `configuration, from ${t.origin}`), list(t.config.map(([knob, value]) => [knob, scalar(value)]))];
}
function body(story) {
  const name = classOf(state.trials[story.trial]);
  const chapters = story.chapters.map(([at_s, event, text]) => el("li", { class: event }, el("time", {}, duration(at_s)), text));
  const parts = [el("h3", {}, "why"), el("p", { class: `why ${name}` }, story.why || "nothing has been decided about it yet"),
    el("h3", {}, "what happened"), el("ol", { class: "chapters" }, ...chapters)];
  if (story.files.length) parts.push(el("h3", {}, "files"), el("pre", {}, story.files.join("\n")));
  return parts;
}
