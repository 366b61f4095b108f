// Asking the server, and following the study: what changed since the last event that is known.

import { newsCame } from "./drawing.js";
import { merge, state, ui } from "./state.js";
import { $, setText } from "./words.js";

const READING_MS = 100, POLL_MS = 1000, ENDED_MS = 5000, RETRY_MS = 2000;

export async function ask(path) {
  const response = await fetch(path);
  if (response.status === 401) throw new Error("this address is no longer valid: open the one that foresail serve printed last");
  const data = await response.json();
  if (!response.ok) throw new Error([data.error.what, data.error.do].filter(Boolean).join(": "));
  return data;
}

let asking = null, again = false, reading = false, timer = 0, changed = () => {};
export const isAsking = () => asking !== null;

// `then(isNew)` is called after every answer; `isNew`: something is known that was not.
export function startFollowing(then) {
  changed = then;
  document.addEventListener("visibilitychange", () => { if (!document.hidden) follow(); });
  follow();
}
export function follow() {
  clearTimeout(timer);
  if (asking) { again = true; return; }
  asking = update().finally(() => {
    asking = null;
    const wait = again ? 0 : reading ? READING_MS : state.study?.is_over ? ENDED_MS : POLL_MS;
    again = false;
    if (!document.hidden && (ui.until === null || wait === 0)) timer = setTimeout(follow, wait);
  });
}
async function update() {
  const until = ui.until, since = until !== null && until < state.event ? 0 : state.event;
  const every = since && state.about ? `&every=${state.about.every}` : "";
  try {
    const news = await ask(`/changes?since=${since}${every}` + (until === null ? "" : `&until=${until}`));
    trouble("");
    reading = news.read_frac !== undefined;
    if (!news.about && !state.about) {
      setText("goal-note", reading ? `reading the log … ${Math.round(100 * news.read_frac)} %` : "no study yet: waiting for its first event");
      return;
    }
    newsCame(performance.now());
    const isNew = news.since === 0 || news.event !== state.event || news.driver !== state.driver;
    merge(news);
    changed(isNew);
  } catch (error) {
    trouble(error instanceof TypeError ? "the server of this page is gone; start it again: foresail serve" : error.message);
    await new Promise((done) => setTimeout(done, RETRY_MS));
  }
}
function trouble(text) {
  $("trouble").hidden = !text;
  setText("trouble", text);
}
