// The page: it asks the server what changed since the last event that it knows, merges that into `state`, and draws what
// can be seen.

import { startFollowing } from "./ask.js";
import { bests } from "./bests.js";
import { calibration } from "./calibration.js";
import { coordinates, listenToBrush } from "./coordinates.js";
import { curves } from "./curves.js";
import { pictures, soil, watch } from "./drawing.js";
import { drawFilter, filterChanged, refilter } from "./filter.js";
import { gantt } from "./gantt.js";
import { drawGlance } from "./glance.js";
import { importance, sayImportance, turnImportance } from "./importance.js";
import { listenToKeys, listenToTheme } from "./keys.js";
import { map } from "./map.js";
import { drawSlider, goTo, play } from "./moment.js";
import { lookForPanels, refreshPanels } from "./panels.js";
import { Picture } from "./picture.js";
import { speeds } from "./speeds.js";
import { classOf, state, ui } from "./state.js";
import { select } from "./story.js";
import { drawTable } from "./table.js";
import { $ } from "./words.js";

function changed(isNew) {
  drawSlider();
  if (!isNew) return;
  refilter();
  drawGlance();
  drawFilter();
  if (!performance.getEntriesByName("glance").length) performance.mark("glance");
  soil();
}
function foreseen() {
  ui.changes += 1;
  refilter();
  drawGlance();
  drawFilter();
}
listenToTheme();
for (const [id, parts] of Object.entries({ curves, map, gantt, bests, coordinates, importance, speeds, calibration })) new Picture(id, parts);
watch({ id: "table", draw: drawTable }, $("table"), refreshPanels);
listenToBrush(pictures.coordinates);
listenToKeys();
sayImportance();
$("importance").querySelector("h2").addEventListener("click", turnImportance);
$("help").addEventListener("click", () => $("keys").showModal());
$("story-close").addEventListener("click", () => select(null));
$("words").addEventListener("input", () => { ui.words = $("words").value; filterChanged(); });
$("filter").addEventListener("submit", (event) => event.preventDefault());
$("slider").addEventListener("input", () => goTo(Number($("slider").value)));
$("play").addEventListener("click", play);
$("now").addEventListener("click", () => goTo(null));
lookForPanels(foreseen);
startFollowing(changed);
// For the console, and for the tests.
window.foresail = { state, ui, pictures, classOf, goTo };
