// What has happened, by day, from now to the beginning.

import {get, query} from "./api.js";
import {$, clock, cut, day, dayKey, exact, face, make, many, personLink, svg} from "./dom.js";

// stays returns who of the people with a name was there from when to when, the first first.
export function stays(visits, now) {
  return visits
    .filter((v) => v.name)
    .map((v) => ({
      name: v.name,
      from: Date.parse(v.first),
      to: v.live ? now : Date.parse(v.last),
      here: v.live,
      camera: v.cameras.at(-1),
    }))
    .toReversed();
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
    if (named)
      lines.push(
        make(
          "span",
          {className: "who", title: name},
          face(faces.get(name), name),
          make("span", {className: "clip"}, name),
        ),
      );
    lines.push(line);
  }
  if (lines.length === 0) return [];
  const hours = make("div", {className: "hours", "aria-hidden": "true"});
  const box = make("div", {className: named ? "bars" : "bars alone"}, ...lines, hours);
  zoomed(box, hours, from, length);
  return [box];
}

const shortest = 15 / 1440; // the part of a day that is shown at most enlarged: a quarter of an hour
const views = new Map(); // by the beginning of the day, what of it is shown: its beginning and length, as parts of it

// zoomed lets the wheel, two fingers and keys enlarge a part of a day, and move it.
function zoomed(box, hours, midnight, length) {
  const lines = box.querySelectorAll("svg");
  let [at, part] = views.get(midnight) || [0, 1];
  const draw = () => {
    part = Math.min(1, Math.max(shortest, part));
    at = Math.min(1 - part, Math.max(0, at));
    views.set(midnight, [at, part]);
    for (const l of lines) l.setAttribute("viewBox", [1440 * at, 0, 1440 * part, 10].join(" "));
    hours.replaceChildren(
      ...[0, 1, 2, 3, 4].map((i) => {
        const time = clock(midnight + length * (at + (part * i) / 4));
        return make("span", {}, i === 4 && at + part === 1 ? "24:00" : time);
      }),
    );
  };
  // zoom enlarges around a place, given as a part of the width.
  const zoom = (factor, place) => {
    const before = part;
    part = Math.min(1, Math.max(shortest, part * factor));
    at += (before - part) * place;
    draw();
  };
  const place = (x) => {
    const r = lines[0].getBoundingClientRect();
    return Math.min(1, Math.max(0, (x - r.left) / r.width));
  };
  box.addEventListener(
    "wheel",
    (e) => {
      if (e.deltaX) at += (part * e.deltaX) / 500;
      if (part === 1 && e.deltaY > 0) return; // all is shown: the page scrolls
      e.preventDefault();
      zoom(1.002 ** e.deltaY, place(e.clientX));
    },
    {passive: false},
  );
  const fingers = new Map();
  box.onpointerdown = (e) => fingers.set(e.pointerId, e.clientX);
  box.onpointerup = box.onpointercancel = box.onpointerleave = (e) => fingers.delete(e.pointerId);
  box.onpointermove = (e) => {
    if (!fingers.has(e.pointerId)) return;
    const was = [...fingers.values()];
    fingers.set(e.pointerId, e.clientX);
    const is = [...fingers.values()];
    const middle = (all) => all.reduce((sum, x) => sum + x, 0) / all.length;
    at -= part * (place(middle(is)) - place(middle(was)));
    if (is.length === 2) zoom(Math.abs(was[0] - was[1]) / Math.max(1, Math.abs(is[0] - is[1])), place(middle(is)));
    else draw();
  };
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute(
    "aria-label",
    "The day by person. Plus and minus enlarge it, the arrows move it, 0 shows all of it.",
  );
  box.onkeydown = (e) => {
    const keys = {"+": () => zoom(0.5, 0.5), "-": () => zoom(2, 0.5), 0: () => zoom(1e4, 0.5)};
    const move = (by) => () => {
      at += by * part;
      draw();
    };
    Object.assign(keys, {ArrowLeft: move(-0.25), ArrowRight: move(0.25)});
    if (e.target !== box || !(e.key in keys) || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  };
  draw();
}

const words = {arrived: "arrived", left: "left", unknown: "is there", mistake: "was not there: a mistake"};
const page = 50;

let events = new Map(),
  visits = [],
  complete = false,
  faces = new Map(); // pictures of people, by name

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
  const text = JSON.stringify([all, visits, f, new Date().getHours() * 60 + new Date().getMinutes()]);
  $("older").hidden = complete;
  $("beginning").hidden = !complete || all.length === 0;
  if (text === drawn) return;
  drawn = text;
  const whole = !f.kind && !f.camera ? stays(visits, Date.now()) : [];
  const what = (e) => e.href || e.closest(".day")?.ariaLabel + e.className; // a link, a title or a chart
  const held = document.activeElement.closest?.("#days") ? what(document.activeElement) : "";
  $("days").replaceChildren(
    ...[...Map.groupBy(all, (e) => dayKey(e.at)).values()].map((own) => {
      const at = own[0].at,
        midnight = new Date(at).setHours(0, 0, 0, 0);
      const those = whole.filter((s) => s.from < midnight + 25 * 3600e3 && s.to >= midnight);
      return make(
        "section",
        {className: "day", "aria-label": day(at)},
        make("h2", {tabIndex: -1}, day(at), " ", make("small", {}, many(own.length, "event"))),
        ...bars(those, at, true),
        make("ul", {className: "events"}, ...own.map(drawEvent)),
      );
    }),
  );
  if (all.length === 0) $("days").append(make("p", {className: "soft"}, "There are no such events."));
  if (held) [...$("days").querySelectorAll("a,h2,.bars")].find((e) => what(e) === held)?.focus({preventScroll: true});
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
  const [some, people, there] = await Promise.all([
    get(query("events", {...f, n: page})),
    get("people"),
    get(query("visits", {name: f.name, days: 31})),
  ]);
  faces = new Map(people.map((p) => [p.name, p.face]));
  if (JSON.stringify(f) !== JSON.stringify(filters())) return; // another choice was made meanwhile
  visits = there;
  if (events.size === 0) complete = some.length < page;
  // If none of them is known, more has happened than one answer holds, and there may be a gap.
  else if (some.length === page && !some.some((e) => events.has(e.id))) reset();
  for (const e of some) events.set(e.id, e);
  choices("f-name", now.known.map((p) => p.name).concat([...events.values()].map((e) => e.name)));
  choices("f-camera", now.cameras.map((c) => c.camera).concat([...events.values()].map((e) => e.camera)));
  draw();
}

// turn goes to the next day, or with -1 to the day before, and fetches that if it must.
async function turn(step) {
  const bar = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop);
  const days = () => [...document.querySelectorAll("#days .day")];
  const top = (d) => d.getBoundingClientRect().top;
  const now = Math.max(
    0,
    days().findLastIndex((d) => top(d) <= bar + 8),
  );
  const to = step > 0 ? now - 1 : now + 1; // the newest day is the first
  if (to >= days().length && !complete) await older();
  const day = days()[Math.min(Math.max(to, 0), days().length - 1)];
  day?.scrollIntoView();
  day?.querySelector("h2").focus({preventScroll: true});
}
$("earlier-day").onclick = () => turn(-1);
$("later-day").onclick = () => turn(1);

$("older").onclick = older;
async function older() {
  const f = filters();
  const before = Math.min(...events.keys());
  const some = await get(query("events", {...f, n: page, before: before}));
  if (JSON.stringify(f) !== JSON.stringify(filters())) return;
  for (const e of some) events.set(e.id, e);
  complete = some.length < page;
  draw();
}

let again = () => {};
export function onFilter(f) {
  again = f;
}
$("filters").onchange = () => {
  reset();
  again();
};
$("filters").onsubmit = (e) => e.preventDefault();
