// What has happened on a day.

import {data, get, query} from "./api.js";
import {bars} from "./bars.js";
import {faceOf} from "./visit.js";
import {button, cut, day, dayKey, exact, face, html, icon, many, midnight, personLink, repeat, update} from "./dom.js";

export const title = "Timeline",
  needs = ["events", "people", "sightings", "corrections", "inbox"];

let key = "", // the day
  asked = 0, // how often its events were asked for: the last answer holds
  events = [],
  visits = [],
  filters = {name: "", kind: "", camera: ""};

// open shows a day.
export function open(which) {
  const is = /^\d{4}-\d\d-\d\d$/.test(which) && !isNaN(Date.parse(which)) ? which : dayKey(Date.now());
  if (is === key) return;
  key = is;
  asked++;
  events = visits = [];
}

const most = 50;

const span = () => ({from: midnight(key).toISOString(), to: midnight(key, 1).toISOString()});
const some = (more) => get(query("events", {...span(), ...filters, happened: !filters.kind, n: most, ...more}));

export async function load() {
  const own = ++asked;
  if (!data.people.some((p) => p.name === filters.name)) filters.name = ""; // renamed or forgotten
  const all = await Promise.all([some({}), get(query("visits", {...span(), name: filters.name}))]);
  if (own === asked) [events, visits] = all;
}

async function older() {
  const own = asked,
    more = await some({before: events.at(-1).id});
  if (own !== asked) return; // other events were asked for meanwhile
  events = events.concat(more);
  update();
}

const kinds = {
  arrived: "arrived",
  seen: "came into view again",
  left: "left",
  unknown: "is there",
  faceless: "was there without a face",
  mistake: "was not there: a mistake",
  was: "was there, as somebody said later",
};

function event(e) {
  const p = data.people.find((x) => x.name === e.name);
  const v = visits.find((x) => (e.name ? x.name === e.name : e.group && x.group === e.group));
  const what = e.name && e.kind === "unknown" ? "was there, and named later" : kinds[e.kind] || e.kind;
  const who = e.name
    ? html`<a href=${personLink(e.name)} title=${e.name}>${cut(e.name)}</a>`
    : html`somebody unknown${e.group ? html` (<a href=${"#inbox/stranger-" + e.group}>person ${e.group}</a>)` : ""}`;
  return html`<li><time datetime=${e.at}>${exact(e.at)}</time>${face((v && faceOf(v)) || p?.face, "")}
    <span>${who} ${what}</span><span class="where">${e.camera}${e.zone ? ", " + e.zone : ""}</span></li>`;
}

const go = (to) => (location.hash = "#timeline/" + to);

function choice(name, label, every, values) {
  const all = values.filter(([v]) => v).sort((a, b) => a[1].localeCompare(b[1]));
  const change = async (e) => {
    filters[name] = e.target.value;
    await load();
    update();
  };
  const option = ([v, text]) => html`<option value=${v} ?selected=${filters[name] === v}>${
    text.length > 60 ? text.slice(0, 59) + "…" : text}</option>`;
  return html`<label>${label} <select id=${"f-" + name} @change=${change}><option value="">${every}</option>${
    all.map(option)}</select></label>`;
}

export function draw() {
  const today = dayKey(Date.now()),
    same = (all) => all.map((x) => [x, x]);
  const turn = (days) => () => go(dayKey(midnight(key, days)));
  const more = events.length % most === 0;
  const known = visits.filter((v) => v.name || v.group);
  return html`<h1 id="timeline-title" tabindex="-1">Timeline</h1>
    <div class="filters row">
      <div class="row date">${button(icon("back"), turn(-1), "", {id: "earlier-day", label: "The day before"})}
        <input type="date" id="date" aria-label="Day" .value=${key} max=${today} @change=${(e) => go(e.target.value)}>
        ${button(icon("next"), turn(1), "", {id: "later-day", label: "The next day", disabled: key >= today})}</div>
      ${choice("name", "Person", "Everybody", same(data.people.map((p) => p.name)))}
      ${choice("kind", "Event", "All events", same(Object.keys(kinds)))}
      ${choice("camera", "Camera", "All cameras", same(data.cameras.map((c) => c.camera)))}</div>
    <section class="day" aria-label=${day(midnight(key))}><h2 tabindex="-1">${day(midnight(key))} <small>${
        events.length === most ? "the last " : ""}${many(events.length, "event")}</small></h2>
      ${known.length && !filters.kind && !filters.camera ? bars(known, key, true) : ""}
      <ul class="events">${repeat(events, (e) => e.id, event)}</ul>
      ${known.length ? html`<p><a href=${query("api/attendance", {...span(), name: filters.name})} download>Attendance as
        a table (CSV)</a></p>` : ""}
      ${events.length ? "" : html`<p class="soft">There are no such events on this day.</p>`}
      ${more && events.length ? button("Show older events", older, "", {id: "older"}) : ""}</section>`;
}
