// The slider: the study as it stood after any event.

import { follow, isAsking } from "./ask.js";
import { state, ui } from "./state.js";
import { $, count, duration, setText } from "./words.js";

const PLAY_MS = 100, PLAY_STEPS = 150;

export function drawSlider() {
  const slider = $("slider");
  slider.max = state.last;
  if (ui.until === null) slider.value = state.last;
  const words = `${duration(state.now_s)} · event ${count(state.event)}`;
  setText("when", ui.until === null ? words : `${words} of ${count(state.last)}`);
  slider.setAttribute("aria-valuetext", words);
  $("now").hidden = ui.until === null;
  document.body.classList.toggle("past", ui.until !== null);
}
export function goTo(event) {
  const until = event === null || event >= state.last ? null : Math.max(1, Math.round(event));
  if (until === ui.until) return;
  ui.until = until;
  ui.panels = {};
  ui.changes += 1;
  if (until !== null) $("slider").value = until;
  follow();
}
export function play() {
  const stop = ui.playing !== null;
  clearInterval(ui.playing);
  ui.playing = null;
  $("play").textContent = stop ? "▶" : "❚❚";
  if (stop) return;
  const step = Math.max(1, Math.round(state.last / PLAY_STEPS));
  if (ui.until === null) goTo(1);
  ui.playing = setInterval(() => {
    if (ui.until === null) play();
    else if (!isAsking()) goTo(ui.until + step);
  }, PLAY_MS);
}
