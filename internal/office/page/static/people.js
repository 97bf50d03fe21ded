// Everybody who is known.

import {data, recognise} from "./api.js";
import {$, button, clock, dayKey, face, html, icon, looks, personLink, repeat, update, when} from "./dom.js";
import {pictures, uploads} from "./upload.js";
import {tile} from "./visit.js";

export const title = "People",
  needs = ["people"];

let wanted = "",
  letter = "", // with which a name begins; "" for those seen last
  whole = false; // all of them, too
const find = (e) => {
  wanted = e.target.value.trim().toLowerCase();
  letter = "";
  update();
};

const crowded = 50, // people, from which on there are letters
  few = 48; // that are shown of them at first

// initial is the letter under which somebody is found.
const initial = (name) => name.normalize("NFD").toUpperCase().match(/^\p{L}/u)?.[0] || "#";

function letters() {
  const choose = (l) => () => {
    letter = l;
    whole = false;
    update();
  };
  const all = [...new Set(data.people.map((p) => initial(p.name)))].sort();
  return html`<nav class="letters" aria-label="People by letter">${["", ...all].map((l) => html`<button type="button"
    class="bare" aria-pressed=${l === letter ? "true" : "false"} aria-label=${l || "Seen last"} @click=${choose(l)}>${l || icon("timeline")}</button>`)}</nav>`;
}

const person = (p) => html`<li><a href=${personLink(p.name)}>${face(p.face, p.name)}<b class="two">${p.name}</b>${
  p.here ? html`<span class="tag here">here since ${clock(p.since)}</span>`
  : p.place ? html`<span class="tag">at ${p.place} since ${clock(p.since)}</span>`
  : html`<span class="soft small">${p.last ? "last seen " + when(p.last) : "not seen yet"}</span>`}</a></li>`;

const newcomer = uploads("Pictures of this person: drop them here.", () => {
  const input = $("newcomer"),
    who = input.value.trim();
  if (!who) input.focus();
  return who && {path: "people", values: {name: who}, who: who};
});

// before says of a face in a picture who it is, and where it was seen.
const before = (f) => html`<li><b>${f.name || "Somebody unknown"}</b>${f.name ? ` (${f.distance.toFixed(2)}) ${f.rarity || ""}`
  : f.reason ? " " + f.reason : ""}<div>${f.before ? "May have been here:" : !f.reason || f.name ? "No face that is kept here comes near." : ""}</div>
  <ul class="wall medium">${(f.before || []).map((s) => tile(s, s.name || "Unknown", 1,
    () => (location.hash = "#timeline/" + dayKey(s.last)), `${when(s.last)} at ${s.camera}, ${(s.distance || 0).toFixed(2)} ${s.rarity || ""}`))}</ul></li>`;

const ever = pictures("A picture of a face: drop it here.", async (files) => {
  const faces = await recognise(files[0]);
  return faces && (faces.length ? faces.map(before) : html`<li>No face was found.</li>`);
});

export function draw() {
  const all = data.people
    .filter((p) => p.name.toLowerCase().includes(wanted) && (!letter || initial(p.name) === letter))
    .sort((a, b) => letter ? a.name.localeCompare(b.name) : Number(b.here) - Number(a.here) || (b.last || "").localeCompare(a.last || "") ||
      a.name.localeCompare(b.name));
  const none = data.people.length === 0,
    crowd = data.people.length >= crowded,
    shown = crowd && !whole ? all.slice(0, few) : all;
  return html`<div class="title row"><h1 tabindex="-1">People</h1><input type="search" id="find" aria-label="Find a person"
      placeholder="Find a person" autocomplete="off" @input=${find}></div>
    ${all.length ? "" : html`<div class="empty">${icon("people")}<p>${
      none ? "Nobody is known yet." : "There is no person with this name."}</p>${
      none ? html`<p><a href="#inbox">Name somebody in the inbox</a>, or add a person here.</p>` : ""}</div>`}
    ${looks ? "" : html`<details id="add"><summary>Add a person</summary>
      <p class="soft small">Three or four pictures, from the front and a little from both sides, each with this person
        alone.</p>
      <input type="text" id="newcomer" maxlength="100" autocomplete="off" autocapitalize="words" placeholder="Name"
        aria-label="Name of the new person">${newcomer()}</details>`}
    <details id="ever"><summary>Was this face ever here?</summary>
      <p class="soft small">The picture is compared with everybody known, with strangers and with past visits. Nothing of it
        is kept.</p>${ever()}</details>
    <div class=${crowd ? "lettered" : ""}><ul id="people-list" class="people">${repeat(shown, (p) => p.name, person)}</ul>${
      crowd ? letters() : ""}</div>
    ${shown.length < all.length ? button("Show all " + all.length, () => ((whole = true), update())) : ""}`;
}
