// The page of a person: who it is, when they were here, and how the office knows them.

import {ask, closeSheet, data, get, query, sheet, tell} from "./api.js";
import {button, clock, cut, day, dayKey, face, html, icon} from "./dom.js";
import {looks, many, naming, personLink, pick, portrait, repeat, until, update, when} from "./dom.js";
import {bars} from "./bars.js";
import {uploads} from "./upload.js";
import {visitTile} from "./visit.js";

export const title = "Person",
  needs = ["people", "sightings", "events", "corrections", "inbox"];

let name = "",
  profile = null, // null: not yet known; undefined: nobody has this name
  visits = [],
  knowing = false, // the tab that shows how we know them
  renaming = false,
  all = false, // all learned faces
  way = null, // {id, way or text} of the learned face that was chosen
  pictures = null;

// open shows the page of a person.
export function open(who) {
  name = who;
  profile = null;
  visits = [];
  knowing = renaming = all = false;
  way = null;
  const path = () => ({path: "people/" + summary().id + "/faces", values: {}, who: who});
  pictures = uploads("More pictures of them: drop them here.", path);
}

const summary = () => data.people.find((p) => p.name === name);

export async function load() {
  const who = name;
  const [p, v] = await Promise.all(
    [query("person", {name: who}), query("visits", {name: who, days: 366})].map((q) =>
      get(q).catch((e) => {
        if (e.status !== 404) throw e;
      }),
    ),
  );
  if (who !== name) return; // another one was opened meanwhile
  profile = p;
  visits = v || [];
}

export const heading = () => name;

const toggle = (f) => () => {
  f();
  update();
};

async function rename(to) {
  const other = data.people.some((p) => p.name === to && p.name !== name);
  if (other && !(await ask(to + " is known already. Are they one person?", "One person"))) return false;
  const done = await tell("rename", {from: name, to: to}, other ? "They are one person now." : "They are " + to + " now.");
  if (done) location.replace(personLink(to));
  return done;
}

// merge lets somebody choose who is the same person.
const merge = () => {
  const one = (p) => html`<li><button type="button" class="bare tile" @click=${() => (closeSheet(), rename(p.name))}>${
    face(p.face, p.name)}<b class="two">${p.name}</b></button></li>`;
  const draw = () => html`<h2>Who is the same person as ${cut(name)}?</h2>
    <ul class="wall">${data.people.filter((p) => p.name !== name).map(one)}</ul>`;
  sheet(draw, "The same person");
};

const isEnrolled = (f) => !f.learned && !f.not;

// choose lets somebody choose the picture that stands for the person.
function choose() {
  const faces = () => profile.faces.filter((f) => isEnrolled(f) && f.portrait.face).map((f) => f.portrait.face);
  const take = (f) => async () => {
    const done = f ? "This is their picture now." : "Their last picture is shown now.";
    if (await tell("picture", {name: name, face: f}, done)) closeSheet();
  };
  const one = (f, i) => pick(face(f, "Enrolled face " + (i + 1)), "", take(f), {pressed: summary()?.picture === f});
  const draw = () => html`<h2>Which picture shows ${cut(name)}?</h2>
    ${faces().length ? "" : html`<p class="soft">No picture of an enrolled face is kept.</p>`}
    <ul class="faces medium">${faces().map(one)}</ul><p>${button("Always the last one", take(0))}</p>`;
  sheet(draw, "Their picture");
}

async function forget() {
  if (!(await ask("Forget " + name + " and all that was learned of them?", "Forget"))) return;
  if (await tell("forget", {name: name, wait: true}, cut(name) + " is erased in 30 seconds.")) location.hash = "#people";
}

const where = (p) => (p.camera ? " at " + p.camera : "");

function seenAs(f) {
  if (f.learned) return f.at ? when(f.at) : "learned";
  if (!f.portrait.face) return "no picture is kept";
  return "seen " + when(f.portrait.seen) + where(f.portrait);
}

// back is a button that takes back a face.
const back = (stored, label, question, done) => {
  const click = async () => (await ask(question, "Take back")) && tell("take-back", {face: stored}, done);
  return button(label, click, "quiet small");
};

const takeBack = (f) =>
  back(f.id, "Take back", "Take this face back? Faces that were learned through it stay.", "The face is taken back.");
const fromHere = (s) =>
  back(
    s.id,
    "Take back from here",
    "Take this learned face back, with all faces that were learned through it? This cannot be undone.",
    (a) => many(a.learned, "learned face") + " taken back.",
  );

const grid = (faces, alt, taken) => html`<ul class="faces medium">${repeat(faces, (f) => f.id, (f) => html`<li>${
  portrait(f.portrait, alt)}<span class="under">${seenAs(f)}</span>${taken && !looks ? takeBack(f) : ""}</li>`)}</ul>`;

// step is a face on the way by which a learned face came to be somebody's, from the enrolled one on.
function step(s, i, steps) {
  const next = steps[i - 1]; // the one before it on the way
  const learned = i === steps.length - 1 ? "this face" : s.merged ? "learned, merged since" : "learned",
    what = !s.name ? learned : s.not ? "known not to be theirs" : "enrolled";
  const far = () => html`<span class="hop"><span class="skip">at a distance of </span>${next.distance.toFixed(2)}</span>`;
  return html`<li>${next ? far() : ""}<div class=${s.name ? "stop enrolled" : "stop"}>${
    portrait(s.portrait, `Step ${i + 1}, ${what}`)}<b>${what}</b><br>${s.at ? when(s.at) : ""}${
    s.name || s.merged || looks ? "" : fromHere(s)}</div></li>`;
}

async function choosePath(f) {
  way = way?.id === f.id ? null : {id: f.id};
  update();
  if (!way) return;
  const own = way;
  try {
    own.way = await get(query("way", {face: f.id}));
  } catch (e) {
    if (e.status !== 404) throw e;
    own.gone = true;
  }
  update();
  queueMicrotask(() => document.querySelector(".card[role]")?.scrollIntoView({block: "nearest"}));
}

const texts = {
  gone: "This face is not kept any more: it was merged with another one, or taken back.",
  part: "The faces before the first one are no longer kept.",
  drift:
    "The learned faces have moved far from the enrolled faces, in one direction. " +
    "Check that the learned faces below are of this person.",
  learned:
    "Choose a face to see the chain of faces that led to it. Learned faces alone announce nobody.",
};

function path() {
  const w = way.way;
  const whole = () =>
    "After the enrolled face, each face was accepted because it is near the face before it. " +
    `The numbers are the distances, of ${w.link.toFixed(2)} at most.`;
  const label = "How this face came to be theirs";
  return html`<div class="card" role="region" aria-label=${label}><h3>${label}</h3>
    ${way.gone ? html`<p>${texts.gone}</p>` : ""}
    ${w ? html`<p class="soft small">${w.whole ? whole() : texts.part}</p>
      <ol class="way">${w.steps.toReversed().map(step)}</ol>` : ""}</div>`;
}

function known(p) {
  const enrolled = p.faces.filter(isEnrolled),
    rejected = p.faces.filter((f) => f.not),
    learned = p.faces.filter((f) => f.learned).toReversed(),
    few = all ? learned : learned.slice(0, 24),
    enrolledAt = summary()?.enrolled;
  const one = (f) =>
    pick(portrait(f.portrait, "Learned face"), seenAs(f), () => choosePath(f), {expanded: way?.id === f.id});
  const rest = () => button("Show the other " + (learned.length - few.length), toggle(() => (all = true)));
  return html`<p class="soft small">${many(enrolled.length, "enrolled face")}${
      enrolledAt ? ", the last " + when(enrolledAt) : ""}; ${many(Math.round(p.drift.learned), "face")} learned</p>${
      p.drift.alarm ? html`<p class="warn">${texts.drift}</p>` : ""}
    <h2>Enrolled</h2>${grid(enrolled, "Enrolled face of " + p.name, enrolled.length > 1)}${looks ? "" : pictures()}
    <h2>Learned</h2>
    <p class="soft small">${learned.length ? texts.learned : "No face was learned besides the enrolled faces."}</p>
    ${way ? path() : ""}<ul class="faces medium">${repeat(few, (f) => f.id, one)}</ul>
    ${few.length < learned.length ? rest() : ""}
    ${rejected.length ? html`<h2>Known not to be them</h2>${grid(rejected, "Not " + p.name, true)}` : ""}`;
}

function visited() {
  const days = [...Map.groupBy(visits, (v) => dayKey(v.first))].slice(0, 31);
  if (days.length === 0) return html`<p class="soft">There are no visits.</p>`;
  const end = (v) => (v.live ? Date.now() : Date.parse(v.last)),
    one = (v) => visitTile(v, clock(v.first) + until(v, " until now"));
  const draw = ([d, own]) => {
    const minutes = Math.round(own.reduce((sum, v) => sum + end(v) - Date.parse(v.first), 0) / 60000);
    const long = minutes < 1 ? "less than a minute" : minutes < 60 ? minutes + " min" :
      Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
    return html`<section class="day"><h2>${day(own[0].first)} <small>${many(own.length, "visit")}, ${long}</small></h2>
      ${bars(own, d)}<ul class="wall medium">${repeat(own, (v) => v.sightings[0], one)}</ul></section>`;
  };
  return repeat(days, ([d]) => d, draw);
}

function head(s) {
  const state =
    !s ? ""
    : s.here ? html`<span class="tag here">here since ${clock(s.since)}, at ${s.camera}</span>`
    : s.place ? html`<span class="tag">at ${s.place} since ${clock(s.since)}</span>`
    : s.last ? "Last seen " + when(s.last) + where(s)
    : "Not seen yet";
  const title = looks
    ? html`<h1 id="person-title" tabindex="-1">${name}</h1>`
    : renaming
    ? html`<h1 id="person-title" class="skip" tabindex="-1">${name}</h1>${
        naming("Another name for " + name, "Rename", rename)}`
    : html`<h1 id="person-title" tabindex="-1">${
        button(name, toggle(() => (renaming = true)), "bare name", {title: "Change the name"})}</h1>`;
  const first = profile.faces.find((f) => isEnrolled(f) && f.portrait.face)?.portrait.face;
  return html`<div class="portrait">${face(s?.face || first, name)}<div>${title}<p>${state}</p><p class="row">${looks ? "" : html`${
    data.people.length > 1 ? button("Same as …", merge) : ""}${button("Picture …", choose)}${
    button("Forget", forget, "bad")}`}</p></div></div>`;
}

export function draw() {
  const up = html`<p><a class="up" href="#people">${icon("back")} People</a></p>`,
    nobody = "No person with this name is known. The person may have been renamed or forgotten.";
  if (!profile)
    return html`${up}<h1 id="person-title" tabindex="-1">${name}</h1><p>${profile === undefined ? nobody : ""}</p>`;
  const still = data.inbox.find((q) => q.kind === "still" && q.sighting.name === name),
    tab = (label, on) => html`<button type="button" class="bare" role="tab" aria-selected=${knowing === on ? "true" : "false"}
      aria-controls="known" @click=${toggle(() => (knowing = on))}>${label}</button>`;
  const ask = () => html`<p><a class="warn callout" href=${"#inbox/" + still.key}>Still ${cut(name)}? Only learned faces say
    so.</a></p>`;
  return html`${up}${head(summary())}${still && !looks ? ask() : ""}
    <div role="tablist">${tab("Visits", false)}${tab("How we know them", true)}</div>
    <div id="known" role="tabpanel">${knowing ? known(profile) : visited()}</div>`;
}
