// The views, one for each anchor, and how often each is asked for.

import {afterwards, get, silent} from "./api.js";
import {look} from "./cameras.js";
import {$, make, many, show} from "./dom.js";
import * as health from "./health.js";
import * as inbox from "./inbox.js";
import * as now from "./now.js";
import * as people from "./people.js";
import * as timeline from "./timeline.js";

const views = {
  now: {title: "Now", refresh: now.refresh, each: now.each},
  inbox: {title: "Inbox", refresh: inbox.refresh, open: inbox.open},
  people: {title: "People", refresh: people.refresh},
  person: {
    title: "Person",
    refresh: (n, q, changed) => people.refreshPerson(changed),
    open: people.open,
    tab: "people",
  },
  timeline: {title: "Timeline", refresh: timeline.refresh},
  cameras: {title: "Cameras", refresh: () => {}, each: (n) => look("camera-list", n)},
  health: {title: "Health", refresh: health.refresh},
};

let view = "",
  questions = [];

// route shows the view that the address names: #inbox, #person/NAME.
function route() {
  let [id, rest] = location.hash.slice(1).split(/\/(.*)/s);
  if (!(id in views)) [id, rest] = ["now", ""];
  let argument = "";
  try {
    argument = decodeURIComponent(rest || "");
  } catch {
    // somebody has typed it
  }
  const first = view === "";
  view = id;
  for (const s of document.querySelectorAll("[data-view]")) s.hidden = s.dataset.view !== id;
  for (const a of document.querySelectorAll(".tabs a")) {
    if (a.hash === "#" + (views[id].tab || id)) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  document.querySelector(`[data-view=${id}]`).dataset.waits = ""; // it appears as a whole, so that nothing in it moves
  views[id].open?.(argument);
  title(argument);
  if (!first) {
    scrollTo(0, 0);
    document.querySelector(`[data-view=${id}] h1`).focus({preventScroll: true});
  }
  refresh();
}

function title(argument) {
  document.title =
    (view === "person" && argument ? argument : views[view].title) +
    (questions.length ? " (" + questions.length + ")" : "") +
    " – Office";
}

let running = null,
  due = false;

// refresh asks for what the view shows. Where it is called while it asks, it asks once more.
function refresh(changed) {
  if (running) {
    due = true;
    return running.then(() => running);
  }
  running = ask(changed).finally(() => {
    running = null;
    if (due) {
      due = false;
      return refresh();
    }
  });
  return running;
}

async function ask(changed) {
  try {
    const [state, open] = await Promise.all([get("now"), get("inbox"), health.refreshSinks()]);
    questions = open;
    show($("badge"), open.length ? String(open.length) : "");
    $("badge").setAttribute("aria-label", many(open.length, "question"));
    health.badge(state);
    if (view !== "person") title();
    const names = state.known.map((p) => p.name);
    if (JSON.stringify(names) !== $("names").dataset.names) {
      $("names").dataset.names = JSON.stringify(names);
      $("names").replaceChildren(...names.map((n) => make("option", {value: n})));
    }
    views[view].each?.(state);
    const id = view;
    await views[id].refresh(state, open, changed);
    delete document.querySelector(`[data-view=${id}]`).dataset.waits;
    silent(null);
  } catch (e) {
    silent(e);
  }
}

afterwards(async () => {
  // What is open is not drawn anew, and what was said in it is answered.
  for (const e of document.querySelectorAll("main details[open]:not(#add)")) e.open = false;
  timeline.reset();
  health.reset();
  if (running) await running;
  await refresh(true);
});
timeline.onFilter(() => refresh());
now.onOlder(() => refresh());
addEventListener("hashchange", route);
$("skip").onclick = (e) => {
  e.preventDefault(); // the anchor would be taken for a view
  $("content").focus();
};
route();

// Each waits for the last one: a slow office is not asked more often than it answers.
async function every(pause, what) {
  for (;;) {
    await new Promise((done) => setTimeout(done, pause));
    if (!document.hidden) await what();
  }
}
every(2000, () => refresh());
every(500, async () => {
  if (!views[view].each) return;
  try {
    views[view].each(await get("now"));
  } catch {
    // refresh says so
  }
});
