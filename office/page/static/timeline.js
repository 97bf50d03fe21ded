// What has happened, by day, from now to the beginning.

import {get, query} from "./api.js";
import {$, clock, cut, day, dayKey, exact, make, many, personLink, svg} from "./dom.js";

// stays returns who was there from when to when, the first first. Events come with the newest first. A stay whose
// beginning is not among them is cut.
export function stays(events, now) {
  const all = [],
    there = new Map();
  for (const e of events.toReversed()) {
    if (!e.name || e.kind === "unknown") continue; // who was named later had not arrived
    const at = Date.parse(e.at),
      open = there.get(e.name);
    if (e.kind === "arrived") {
      const s = {name: e.name, from: at, to: now, here: true, camera: e.camera};
      there.set(e.name, s);
      all.push(s);
    } else if (e.kind === "mistake") {
      if (open) all.splice(all.indexOf(open), 1);
      there.delete(e.name);
    } else if (open) {
      Object.assign(open, {to: at, here: false});
      there.delete(e.name);
    } else {
      const midnight = new Date(at);
      midnight.setHours(0, 0, 0, 0);
      all.push({
        name: e.name,
        from: Math.max(Date.parse(events.at(-1).at), midnight.getTime()),
        to: at,
        cut: true,
        camera: e.camera,
      });
    }
  }
  return all;
}

// bars draws the stays of a day, a line for each person, with their names where these are wanted.
export function bars(all, at, named) {
  const midnight = new Date(at);
  midnight.setHours(0, 0, 0, 0);
  const from = midnight.getTime(),
    next = new Date(midnight);
  next.setDate(next.getDate() + 1);
  const length = next - from;
  const lines = [];
  for (const [name, own] of Map.groupBy(all, (s) => s.name)) {
    const rects = own
      .filter((s) => s.to >= from && s.from < from + length)
      .map((s) => {
        const a = Math.max(s.from, from),
          b = Math.min(s.to, from + length);
        return svg("rect", {
          x: (1440 * (a - from)) / length,
          y: 0,
          height: 10,
          width: Math.max(4, (1440 * (b - a)) / length),
        });
      });
    if (rects.length === 0) continue;
    const text = own.map((s) => clock(s.from) + " to " + (s.here ? "now" : clock(s.to))).join(", ");
    const line = svg(
      "svg",
      {viewBox: "0 0 1440 10", preserveAspectRatio: "none", role: "img", "aria-label": name + " was there " + text},
      ...rects,
    );
    if (named) lines.push(make("span", {className: "clip", title: name}, name));
    lines.push(line);
  }
  if (lines.length === 0) return [];
  const hours = make(
    "div",
    {className: "hours", "aria-hidden": "true"},
    ...["0:00", "6:00", "12:00", "18:00", "24:00"].map((h) => make("span", {}, h)),
  );
  return [make("div", {className: named ? "bars" : "bars alone"}, ...lines, hours)];
}

const words = {arrived: "arrived", left: "left", unknown: "is there", mistake: "was not there: a mistake"};
const page = 50;

let events = new Map(),
  complete = false;

const filters = () => ({name: $("f-name").value, kind: $("f-kind").value, camera: $("f-camera").value});

function drawEvent(e) {
  const who = make("span", {});
  if (e.name) who.append(make("a", {href: personLink(e.name), title: e.name}, cut(e.name)));
  else if (e.group)
    who.append("somebody unknown (", make("a", {href: "#inbox/stranger-" + e.group}, "person " + e.group), ")");
  else who.append("somebody unknown");
  who.append(" " + (e.name && e.kind === "unknown" ? "was there, and named later" : words[e.kind] || e.kind));
  return make("li", {}, make("time", {dateTime: e.at}, exact(e.at)), who, make("span", {className: "where"}, e.camera));
}

let drawn = "";

function draw() {
  const all = [...events.values()].sort((a, b) => Date.parse(b.at) - Date.parse(a.at) || b.id - a.id);
  const f = filters();
  const text = JSON.stringify([all, f, new Date().getHours() * 60 + new Date().getMinutes()]);
  $("older").hidden = complete;
  $("beginning").hidden = !complete || all.length === 0;
  if (text === drawn) return;
  drawn = text;
  const whole = !f.kind && !f.camera ? stays(all, Date.now()) : [];
  const held = document.activeElement.closest?.("#days") ? document.activeElement.href : "";
  $("days").replaceChildren(
    ...[...Map.groupBy(all, (e) => dayKey(e.at)).values()].map((own) => {
      const at = own[0].at,
        midnight = new Date(at).setHours(0, 0, 0, 0);
      const those = whole.filter((s) => s.from < midnight + 25 * 3600e3 && s.to >= midnight);
      return make(
        "section",
        {className: "day", "aria-label": day(at)},
        make("h2", {}, day(at), " ", make("small", {}, many(own.length, "event"))),
        ...bars(those, at, true),
        make("ul", {className: "events"}, ...own.map(drawEvent)),
      );
    }),
  );
  if (all.length === 0) $("days").append(make("p", {className: "soft"}, "There are no such events."));
  if (held) [...$("days").querySelectorAll("a")].find((a) => a.href === held)?.focus();
}

// reset forgets what was loaded: something was said, and what is remembered may have changed.
export function reset() {
  events = new Map();
  complete = false;
}

function choices(id, values) {
  const select = $(id),
    chosen = select.value;
  const all = [...new Set(values)].filter((v) => v).sort((a, b) => a.localeCompare(b));
  if (chosen && !all.includes(chosen)) all.push(chosen);
  const old = [...select.options].slice(1).map((o) => o.value);
  if (JSON.stringify(old) === JSON.stringify(all)) return;
  select.replaceChildren(
    select.options[0],
    ...all.map((v) => make("option", {value: v}, v.length > 60 ? v.slice(0, 59) + "…" : v)),
  );
  select.value = chosen;
}

export async function refresh(now) {
  const f = filters();
  const some = await get(query("events", {...f, n: page}));
  if (JSON.stringify(f) !== JSON.stringify(filters())) return; // another choice was made meanwhile
  if (events.size === 0) complete = some.length < page;
  // If none of them is known, more has happened than one answer holds, and there may be a gap.
  else if (some.length === page && !some.some((e) => events.has(e.id))) reset();
  for (const e of some) events.set(e.id, e);
  choices("f-name", now.known.map((p) => p.name).concat([...events.values()].map((e) => e.name)));
  choices("f-camera", now.cameras.map((c) => c.camera).concat([...events.values()].map((e) => e.camera)));
  draw();
}

$("older").onclick = async () => {
  const f = filters();
  const before = Math.min(...events.keys());
  const some = await get(query("events", {...f, n: page, before: before}));
  if (JSON.stringify(f) !== JSON.stringify(filters())) return;
  for (const e of some) events.set(e.id, e);
  complete = some.length < page;
  draw();
};

let again = () => {};
export function onFilter(f) {
  again = f;
}
$("filters").onchange = () => {
  reset();
  again();
};
$("filters").onsubmit = (e) => e.preventDefault();
