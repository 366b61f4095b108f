// What has to be computed (forecasts, importance, speeds, calibration) is asked for while its picture is in sight, and
// not too often.

import { ask } from "./ask.js";
import { pictures, soil } from "./drawing.js";
import { state, ui } from "./state.js";
import { $ } from "./words.js";

const PANEL_MS = 4000, LOOK_MS = 500;
const PLACES = { forecasts: ["curves", "map", "coordinates", "table"], importance: ["importance"], speeds: ["speeds"], calibration: ["calibration"] };
const fetching = {};
let foreseen = () => {};

// `then` is called when there are new forecasts.
export function lookForPanels(then) {
  foreseen = then;
  setInterval(() => { if (!document.hidden) refreshPanels(); }, LOOK_MS);
}
export function refreshPanels() {
  if (!state.about || !state.trials.length) return;
  for (const [name, places] of Object.entries(PLACES)) {
    const held = ui.panels[name], seen = places.some((id) => pictures[id].seen);
    const other = name === "forecasts" && held && held.trial !== ui.selected;
    const wanted = held?.asked !== state.event || (other && ui.selected !== null);
    const rested = !held || performance.now() - held.at > PANEL_MS || ui.until !== null || other;
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
  ui.panels[name] = { ...data, asked, trial, at: performance.now() };
  if (name === "forecasts") foreseen();
  places.forEach((id) => { $(id).dataset.computed = asked; });
  soil(...places);
}
// What a picture says instead of itself: that it is not there yet, or why it cannot be; else what `of` its data says.
export function panelSays(name, of) {
  const held = ui.panels[name];
  return !held ? "computing …" : held.problem ? `cannot be computed: ${held.problem}` : of(held);
}
