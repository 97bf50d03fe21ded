// How everything is, and what was said.

import {ask, data, pages, tell, undo} from "./api.js";
import {button, html, looks, many, repeat, sentence, when} from "./dom.js";

export const title = "Health",
  needs = ["corrections", "sinks"];

const room = (r, learns) =>
  !learns ? "Faces are judged, but not learned."
  : (r.full ? `All ${r.k} places for learned faces are taken, and no two are near enough to be merged. ` +
        `Most new faces are not learned (${r.passed_over} so far). `
    : r.needed ? `With ${r.k} places for learned faces, faces that differ are merged, and turned heads are lost. `
    : `Up to ${r.k} learned faces are kept. `) + (r.needed ? `Start the office with --k ${r.needed}.` : "");

// states returns how each part is: what it is, whether it is well, and how it is in words.
function states() {
  const now = data.now;
  const cameras = data.cameras.map((c) => ({
    what: "Camera " + c.camera,
    bad: c.slow || (!c.up && Boolean(c.error)),
    how: c.slow ? "Too slow" : c.up ? "Connected" : c.error ? "Down" : "Ended",
    more:
      (c.error && !c.up ? sentence(c.error) + " It is tried again. " : "") +
      (c.since ? "Since " + when(c.since) + ". " : "") +
      (c.up ? c.rate.toFixed(1) + (c.asked ? " of " + c.asked : "") + " frames a second. " : "") +
      (c.slow ? "Fewer than half of the frames " + (c.asked ? "asked for" : "that come") +
        " are looked at: people are recognised later, and who passes quickly is missed. " : "") +
      (c.far ? "People too far away: " + c.far + " today." : ""),
  }));
  const r = now.room,
    disk = now.disk;
  const own = [
    {
      what: "Learning",
      bad: r.needed > 0,
      how: !now.learns ? "Off" : r.full ? "No room" : r.needed ? "Little room" : "There is room",
      more: room(r, now.learns),
    },
    {
      what: "Disk",
      bad: Boolean(disk.error || disk.left),
      how: disk.error ? "Cannot be written" : disk.left ? "Somebody who was forgotten is still in it" : "Well",
      more: !disk.error ? disk.left ? sentence(disk.left) + " It is tried again each minute." : "Everything is written."
        : sentence(disk.error) + " All goes on in memory, and is written when there is room. " +
          (disk.held ? many(disk.held, "event") + " would be lost if the program ended now." : ""),
    },
  ];
  if (data.proxy)
    own.push({
      what: "Proxy",
      bad: true,
      how: "Not declared",
      more: `Somebody uses this page through ${data.proxy}. If that is a proxy of yours, start the office with ` +
        `--page-proxy ${data.proxy}, so that it knows visitors apart, and whether they use https.`,
    });
  const sinks = data.sinks.map((s) => ({
    what: "Sink " + s.name,
    bad: Boolean(s.error) || s.lost > 0,
    how: s.error ? "Not delivered" : s.lost ? "Events were lost" : "Well",
    more:
      (s.error ? sentence(s.error) + " It is tried again. " : "") +
      (s.waiting ? many(s.waiting, "event waits", "events wait") + ". " : "No event waits. ") +
      (s.lost ? many(s.lost, "event was lost", "events were lost") + ", as there was no room." : ""),
  }));
  return cameras.concat(own, sinks);
}

// ill returns how many parts are not well.
export const ill = () => states().filter((s) => s.bad).length;

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
  alike: (c) => "Said that " + c.name + " and " + c.was + " are two people who look alike",
  "forgot-group": (c) => "Forgot stranger " + (c.group || ""),
  forgot: () => "Forgot a person",
};

let list = pages("corrections", 25);

const said = (c) => (words[c.kind] ? words[c.kind](c) : c.kind + " " + c.name);

const correction = (c) => html`<li><div><div>${c.undone ? html`<s>${said(c)}</s>` : said(c)}</div>
  <span class="soft small">${when(c.at)}${c.undone ? ", undone" : ""}</span></div>${
  c.can_undo && !c.undone && !looks ? button("Undo", () => undo(c)) : ""}</li>`;

async function keep(e) {
  const on = e.target.checked;
  if (!on && !(await ask("Forget the strangers that are kept, and keep none from now on?", "Forget them"))) {
    e.target.checked = true;
    return;
  }
  await tell("keep", {on: on}, on ? "Faces of strangers are kept." : "No face of a stranger is kept.");
}

export const open = () => (list = pages("corrections", 25));

const part = (s) => html`<li><h2>${s.what}</h2><div class="how">${s.how}</div>
  <div class="soft small">${s.more}</div></li>`;
const line = (s) => html`<dt>${s.what}</dt><dd>${s.how}. <span class="soft">${s.more}</span></dd>`;

export function draw() {
  const parts = states(),
    bad = parts.filter((s) => s.bad),
    well = parts.filter((s) => !s.bad),
    all = list.all();
  return html`<h1 tabindex="-1">Health</h1>
    <ul id="states" class="states">${repeat(bad, (s) => s.what, part)}</ul>
    <p class="how">${bad.length ? "All else is well." : "All is well."}</p>
    <details id="well"><summary>${many(well.length, "part is", "parts are")} well</summary>
      <dl class="facts">${repeat(well, (s) => s.what, line)}</dl></details>
    <h2>Strangers</h2>
    <p><label class="row"><input type="checkbox" id="keep" ?disabled=${looks} .checked=${data.now.keeps} @change=${keep}>
      <span>Keep faces of strangers, so that you can name them</span></label></p>
    <h2>Corrections</h2>
    ${all.length ? "" : html`<p class="soft">There are no corrections yet.</p>`}
    <ul id="corrections" class="plain">${repeat(all, (c) => c.id, correction)}</ul>
    ${list.more() ? button("Show older ones", () => list.ask()) : ""}`;
}
