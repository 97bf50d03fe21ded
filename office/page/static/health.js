// How everything is, and what was said.

import {ask, get, query, tell, undo} from "./api.js";
import {$, keyed, make, many, sentence, show, when} from "./dom.js";

// states returns how each part is: what it is, whether it is well, and how it is in words.
function states(now, sinks) {
  const cameras = now.cameras.map((c) => ({
    what: "Camera " + c.camera,
    bad: !c.up && Boolean(c.error),
    how: c.up ? "Connected" : c.error ? "Down" : "Ended",
    more:
      (c.error && !c.up ? sentence(c.error) + " It is tried again. " : "") +
      (c.since ? "Since " + when(c.since) + ". " : "") +
      (c.up ? Math.round(c.rate) + " frames a second." : "") +
      (c.far ? " People too far away: " + c.far + " today." : ""),
  }));
  const room = {
    what: "Learning",
    bad: now.room.needed > 0,
    how: !now.learns ? "Off" : now.room.full ? "No room" : now.room.needed ? "Little room" : "There is room",
    more: !now.learns
      ? "Faces are judged, but not learned."
      : (now.room.full
          ? `All ${now.room.k} places for learned faces are taken, and no two are near enough to be merged. ` +
            `Most new faces are not learned (${now.room.passed_over} so far). `
          : now.room.needed
            ? `With ${now.room.k} places for learned faces, faces that differ are merged, and turned heads are lost. `
            : `Up to ${now.room.k} learned faces are kept. `) +
        (now.room.needed ? `Start the office with --k ${now.room.needed}.` : ""),
  };
  if (now.poor)
    room.more += " " + many(now.poor, "sighting was", "sightings were") + " too short or too poor to say who it was.";
  const state = now.disk?.error;
  const disk = {
    what: "Disk",
    bad: Boolean(state),
    how: state ? "Cannot be written" : "Well",
    more: state
      ? sentence(state) +
        " All goes on in memory, and is written when there is room. " +
        (now.disk?.held ? many(now.disk.held, "event") + " would be lost if the program ended now." : "")
      : "Everything is written.",
  };
  const told = sinks.map((s) => ({
    what: "Sink " + s.name,
    bad: Boolean(s.error) || s.lost > 0,
    how: s.error ? "Not delivered" : s.lost ? "Events were lost" : "Well",
    more:
      (s.error ? sentence(s.error) + " It is tried again. " : "") +
      (s.waiting ? many(s.waiting, "event waits", "events wait") + ". " : "No event waits. ") +
      (s.lost ? many(s.lost, "event was lost", "events were lost") + ", as there was no room." : ""),
  }));
  return cameras.concat([room, disk], told);
}

const drawState = (s) =>
  make(
    "li",
    {className: s.bad ? "bad" : ""},
    make("h2", {className: "first"}, s.what),
    make("div", {className: "how"}, s.how),
    make("div", {className: "soft small"}, s.more),
  );

let sinks = [];

// badge says on the tab how many parts are not well.
export function badge(now) {
  const n = states(now, sinks).filter((s) => s.bad).length;
  show($("ill"), n ? String(n) : "");
  if (n) $("ill").setAttribute("aria-label", many(n, "part is not well", "parts are not well"));
}

const words = {
  named: (c) => "Named person " + (c.group || "") + " " + c.name,
  renamed: (c) => "Renamed " + c.was + " to " + c.name,
  merged: () => "Made one person of two strangers",
  denied: (c) => "Said that it was not " + (c.was || c.name) + (c.was && c.name ? ", but " + c.name : ""),
  confirmed: (c) => "Confirmed that it was " + c.name,
  ignored: (c) => "Ignored person " + (c.group || ""),
  noticed: (c) => "Noticed person " + (c.group || "") + " again",
  split: (c) => "Took faces of person " + (c.group || "") + " for somebody else",
  unlabelled: (c) => "Took back a face" + (c.was ? " of " + c.was : ""),
  "forgot-group": (c) => "Forgot stranger " + (c.group || ""),
  forgot: () => "Forgot a person",
};

const page = 25;
let older = [];

function drawCorrection(c) {
  return make(
    "li",
    {},
    make(
      "div",
      {},
      make("div", {className: c.undone ? "undone" : ""}, (words[c.kind] || ((x) => x.kind + " " + x.name))(c)),
      make("span", {className: "soft small"}, when(c.at) + (c.undone ? ", undone" : "")),
    ),
    ...(c.can_undo && !c.undone ? [make("button", {type: "button", onclick: () => undo(c)}, "Undo")] : []),
  );
}

export function reset() {
  older = [];
}

export async function refreshSinks() {
  sinks = await get("sinks");
}

export async function refresh(now) {
  const said = await get(query("corrections", {n: page}));
  keyed($("states"), states(now, sinks), (s) => s.what, drawState);
  if (document.activeElement !== $("keep")) $("keep").checked = now.keeps;
  const all = said.concat(older.filter((c) => said.length === 0 || c.id < said.at(-1).id));
  $("no-corrections").hidden = all.length > 0;
  keyed($("corrections"), all, (c) => c.id, drawCorrection);
  if (older.length === 0) $("older-corrections").hidden = said.length < page;
}

$("older-corrections").onclick = async () => {
  const some = await get(query("corrections", {before: $("corrections").lastElementChild.dataset.key, n: page}));
  older = older.concat(some);
  $("older-corrections").hidden = some.length < page;
  for (const c of some) {
    const e = drawCorrection(c);
    Object.assign(e.dataset, {key: c.id, text: JSON.stringify(c)});
    $("corrections").append(e);
  }
};

$("keep").onchange = async (e) => {
  const on = e.target.checked;
  e.target.blur();
  if (!on && !(await ask("Forget the strangers that are kept, and keep none from now on?", "Forget them"))) {
    e.target.checked = true;
    return;
  }
  await tell("keep", {on: on}, on ? "Faces of strangers are kept." : "No face of a stranger is kept.");
};
