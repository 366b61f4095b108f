// Draws what is in sight and has changed, a part in each frame.

import { state } from "./state.js";
import { $ } from "./words.js";

const MOST_MS = 30;
export const pictures = {};
let drawing = 0, received = 0;

// When the news came that is to be drawn now: what is measured as an update begins there.
export function newsCame(at_ms) {
  received = at_ms;
}
export function soil(...ids) {
  for (const id of ids.length ? ids : Object.keys(pictures)) pictures[id].dirty = true;
  if (!drawing) drawing = requestAnimationFrame(drawSome);
}
function drawSome() {
  drawing = 0;
  const all = Object.values(pictures);
  if (!state.about || all.some((picture) => picture.seen === null)) return;
  const start = performance.now();
  for (const picture of all) {
    if (!picture.dirty || !picture.seen) continue;
    picture.dirty = false;
    picture.draw();
    $(picture.id).dataset.drawn = state.event;
    // One long task would make the page stutter: the rest is drawn in the next frame.
    if (performance.now() - start > MOST_MS) { drawing = requestAnimationFrame(drawSome); return; }
  }
  performance.clearMarks("drawn");
  performance.mark("drawn", { detail: { event: state.event, ms: performance.now() - received } });
  document.documentElement.dataset.drawn = state.event;
}
// Draw a place when it comes into sight; `seen` is null until the browser has said whether it is.
export function watch(picture, element, came = () => {}) {
  picture.seen = null;
  picture.dirty = true;
  pictures[picture.id] = picture;
  new IntersectionObserver((entries) => {
    picture.seen = entries.at(-1).isIntersecting;
    soil(picture.id);
    if (picture.seen) came();
  }, { rootMargin: "80px" }).observe(element);
}
