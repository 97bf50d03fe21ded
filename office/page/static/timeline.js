// What has happened on a day.

import {data, get, query} from "./api.js";
import {bars} from "./bars.js";
import {$, cut, day, dayKey, exact, face, html, icon, many, midnight, nothing, personLink, repeat, update} from "./dom.js";

export const title = "Timeline",
  needs = ["events", "people", "sightings", "corrections"];

let key = "", // the day
  events = [],
  visits = [],
  filters = {name: "", kind: "", camera: ""};

// open shows a day.
export function open(which) {
  const is = /^\d{4}-\d\d-\d\d$/.test(which) && !isNaN(Date.parse(which)) ? which : dayKey(Date.now());
  if (is !== key) events = visits = [];
  key = is;
}

const most = 50;

export async function load() {
  const own = key,
    f = {from: midnight(key).toISOString(), to: midnight(key, 1).toISOString()};
  const [e, v] = await Promise.all([get(query("events", {...f, ...filters, n: most})), get(query("visits", {...f, name: filters.name}))]);
  if (own === key) [events, visits] = [e, v];
}

async function older() {
  const f = {from: midnight(key).toISOString(), to: midnight(key, 1).toISOString()};
  const more = await get(query("events", {...f, ...filters, n: most, before: events.at(-1).id}));
  events = events.concat(more);
  update();
}

const kinds = {arrived: "arrived", seen: "came into view again", left: "left", unknown: "is there", faceless: "was there without a face", mistake: "was not there: a mistake"};

function event(e) {
  const p = data.people.find((x) => x.name === e.name);
  const v = visits.find((x) => (e.name ? x.name === e.name : e.group && x.group === e.group));
  const what = e.name && e.kind === "unknown" ? "was there, and named later" : kinds[e.kind] || e.kind;
  return html`<li><time datetime=${e.at}>${exact(e.at)}</time>${face(v?.face || p?.face, "")}<span>${
    e.name ? html`<a href=${personLink(e.name)} title=${e.name}>${cut(e.name)}</a>`
    : e.group ? html`somebody unknown (<a href=${"#inbox/stranger-" + e.group}>person ${e.group}</a>)` : "somebody unknown"} ${what}</span
    ><span class="where">${e.camera}</span></li>`;
}

const go = (days) => () => (location.hash = "#timeline/" + dayKey(midnight(key, days)));

function choice(name, label, every, values) {
  const all = [...new Map(values.filter(([v]) => v))].sort((a, b) => a[1].localeCompare(b[1]));
  const change = async (e) => {
    filters[name] = e.target.value;
    await load();
    update();
  };
  return html`<label>${label} <select id=${"f-" + name} @change=${change}><option value="">${every}</option>${all.map(
    ([v, text]) => html`<option value=${v} ?selected=${filters[name] === v}>${text.length > 60 ? text.slice(0, 59) + "…" : text}</option>`)}</select></label>`;
}

export function draw() {
  const today = dayKey(Date.now());
  const same = (all) => all.map((x) => [x, x]);
  return html`<h1 id="timeline-title" tabindex="-1">Timeline</h1>
    <div class="filters">
      <div class="row date"><button type="button" id="earlier-day" aria-label="The day before" @click=${go(-1)}>${icon("back")}</button>
        <input type="date" id="date" aria-label="Day" .value=${key} max=${today} @change=${(e) => e.target.value && (location.hash = "#timeline/" + e.target.value)}>
        <button type="button" id="later-day" aria-label="The next day" ?disabled=${key >= today} @click=${go(1)}>${icon("next")}</button></div>
      ${choice("name", "Person", "Everybody", same(data.people.map((p) => p.name)))}
      ${choice("kind", "Event", "All events", Object.keys(kinds).map((k) => [k, {unknown: "somebody unknown", mistake: "mistake"}[k] || k]))}
      ${choice("camera", "Camera", "All cameras", same(data.cameras.map((c) => c.camera)))}</div>
    <section class="day" aria-label=${day(midnight(key))}><h2 tabindex="-1">${day(midnight(key))} <small>${
        events.length === most ? "the last " : ""}${many(events.length, "event")}</small></h2>
      ${visits.length && !filters.kind && !filters.camera ? bars(visits.filter((v) => v.name || v.group), key, true) : ""}
      <ul class="events">${repeat(events, (e) => e.id, event)}</ul>
      ${events.length ? nothing : html`<p class="soft">There are no such events on this day.</p>`}
      ${events.length && events.length % most === 0 ? html`<p><button type="button" id="older" @click=${older}>Show older events</button></p>` : ""}</section>`;
}
