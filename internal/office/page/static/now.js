// Who is here, where somebody is in view, and who was seen lately: a wall of faces.

import {data, pages} from "./api.js";
import {figures, look, somebody} from "./cameras.js";
import {button, cut, face, html, list, looks, many, nothing, personLink, repeat, sentence, update, when} from "./dom.js";
import {faceOf, showVisit, tile, whose} from "./visit.js";

export const title = "Now",
  needs = ["people", "sightings", "inbox"],
  live = true;

const seen = pages("sightings", 100);
let few = 18; // people in the wall, until somebody asks for more

const active = () => data.cameras.filter(somebody);
export const each = () => look(active());

// visits gathers sightings, the latest first, by person. Who was too short or too badly in view for the office to tell
// whether two sightings are of one person has no group, and no picture while strangers are kept.
function visits() {
  const all = seen.all().filter((s) => whose(s) || !data.now.keeps);
  return Map.groupBy(all, (s) => whose(s) || "\nat " + s.camera);
}

function heading() {
  const names = data.now.people.map((p) => cut(p.name)),
    n = data.now.unknown;
  const strangers = n === 0 ? [] : [n === 1 ? "somebody unknown" : n + " unknown people"],
    all = (names.length > 4 ? [names.length + " people"] : names).concat(strangers);
  if (all.length === 0) return "Nobody is here";
  return sentence(list(all) + (names.length + n === 1 ? " is here" : " are here")).slice(0, -1);
}

function person(p) {
  const face_ = data.people.find((x) => x.name === p.name)?.face;
  const where = p.in_view === false ? "out of view, last at " : "at ";
  return html`<li><a href=${personLink(p.name)} title=${p.rarity || nothing}>${face(face_, p.name)}<b class="two">${p.name}</b>
    <span class="soft small">since ${when(p.since)}, ${where}${p.camera}</span>${
      p.trust === "likely" ? html`<span class="tag">not confirmed</span>` : ""}${
      p.unsure ? html`<span class="tag">may have left</span>` : ""}</a></li>`;
}

// stranger is somebody in view who has no name.
const stranger = (s) => html`<li><a href=${"#inbox/stranger-" + s.group}>${face(faceOf(s), "")}<b>Somebody unknown</b>
    <span class="soft small">since ${when(s.first)}, at ${s.camera}</span></a></li>`;

const camera = (c) => html`<li class=${c.error && !c.up ? "bad" : ""}><a href="#cameras">${c.camera}${
  c.error && !c.up ? ": down" : c.last ? html` <span class="soft small">${when(c.last.at)}</span>` : ""}</a></li>`;

async function showOlder() {
  few = Infinity;
  update();
  if (seen.more()) await seen.ask();
}

export function draw() {
  const shown = [...visits()];
  const still = data.cameras.filter((c) => (c.up || c.error) && !somebody(c)); // not recordings that have ended
  const n = data.inbox.length;
  return html`<h1 id="now-title" tabindex="-1">${heading()}</h1>
    ${n && !looks ? html`<p><a class="warn callout" href="#inbox">${many(n, "question")} in the inbox</a></p>` : ""}
    <ul id="here" class="people">${repeat(data.now.people, (p) => p.name, person)}${
      repeat(data.sightings.filter((s) => s.live && s.group && !s.name), (s) => s.id, stranger)}</ul>
    <div id="now-cameras" class="cameras">${figures(active(), false)}</div>
    ${still.length ? html`<ul class="strip row" aria-label="Cameras without anybody in view">${
      repeat(still, (c) => c.camera, camera)}</ul>` : ""}
    <h2>Visits</h2>
    ${shown.length ? "" : html`<p class="soft">Nobody yet.</p>`}
    <ul id="sightings" class="wall">${repeat(shown.slice(0, few), ([key]) => key, ([key, own]) =>
      tile(own[0], "", own.length, () => showVisit(() => visits().get(key) || [], own[0].id)))}</ul>
    ${shown.length > few || seen.more()
      ? button("Show older sightings", showOlder, "", {id: "older-sightings"}) : ""}`;
}
