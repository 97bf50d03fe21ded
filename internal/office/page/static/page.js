// The views, one for each anchor.

import {afterwards, closeSheet, data, deaf, drawSheet, listen, need, silent} from "./api.js";
import * as cameras from "./cameras.js";
import {$, html, looks, many, onUpdate, render, repeat, update} from "./dom.js";
import * as health from "./health.js";
import * as inbox from "./inbox.js";
import * as now from "./now.js";
import * as people from "./people.js";
import * as person from "./person.js";
import * as timeline from "./timeline.js";

const views = {now, inbox, people, person, timeline, cameras, health};

let view = "",
  routed = 0, // how often an address was opened
  drawn = false, // a view appears as a whole, so that nothing in it moves
  entered = true; // its heading has the focus: once, as it appears, lest it is taken from somebody who is at work

// route shows the view that the address names: #inbox, #person/NAME.
function route() {
  let [id, rest] = location.hash.slice(1).split(/\/(.*)/s);
  if (!Object.hasOwn(views, id)) [id, rest] = ["now", ""];
  let argument = "";
  try {
    argument = decodeURIComponent(rest || "");
  } catch {
    // somebody has typed it
  }
  const first = view === "",
    same = view === id;
  view = id;
  routed++;
  drawn = same && id === "inbox";
  entered = first;
  closeSheet();
  $("ask").close();
  for (const a of document.querySelectorAll(".tabs a")) {
    if (a.hash === "#" + (id === "person" ? "people" : id)) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  views[id].open?.(argument);
  hear();
  refresh(true);
}

function enter() {
  entered = true;
  scrollTo(0, 0);
  ($("question-title") || $("view").querySelector("h1"))?.focus({preventScroll: true});
}

function hear() {
  if (!document.hidden) listen(Boolean(views[view].live), refresh);
}

onUpdate(() => {
  if (!data.now || !drawn) return;
  render(repeat([view], (v) => v, (v) => html`<section data-view=${v}>${views[v].draw()}</section>`), $("view"));
  views[view].after?.();
  if (!entered) enter();
  drawSheet();
  const badge = (id, n, text) => {
    if (!$(id)) return; // not for who looks
    $(id).textContent = n > 999 ? "999+" : n || "";
    $(id).hidden = !n;
    $(id).setAttribute("aria-label", text);
  };
  const ill = health.ill(),
    n = data.questions;
  badge("badge", n, many(n, "question"));
  badge("ill", ill, many(ill, "part is not well", "parts are not well"));
  const title = (views[view].heading?.() || views[view].title) + (n && !looks ? " (" + n + ")" : "") + " – Office";
  if (document.title !== title) document.title = title;
  render(data.people.map((p) => html`<option value=${p.name}></option>`), $("names"));
});

let running = null,
  due = false,
  anew = false;

// refresh fetches what the view shows and has changed. Where it is called while it does, it does so once more.
function refresh(changed) {
  due = true;
  anew ||= changed === true;
  running ||= (async () => {
    while (due) {
      const v = views[view],
        at = routed,
        all = anew;
      due = anew = false;
      try {
        const fresh = await need([...v.needs, "sinks"]);
        if (v.load && (fresh || all)) await v.load();
        if (at !== routed) continue;
        drawn = Boolean(data.now);
        silent(null);
      } catch (e) {
        silent(e);
      }
      update();
    }
    running = null;
  })();
  return running;
}

afterwards(() => refresh(true));
addEventListener("hashchange", route);
document.addEventListener("visibilitychange", () => (document.hidden ? deaf() : hear()));
$("skip").onclick = (e) => {
  e.preventDefault(); // the anchor would be taken for a view
  $("content").focus();
};
// A file that misses the place for pictures is not opened in place of the page.
for (const kind of ["dragover", "drop"])
  addEventListener(kind, (e) => e.dataTransfer.types.includes("Files") && e.preventDefault());
route();
setInterval(() => data.now && views[view].each?.(), 500);
