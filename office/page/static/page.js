"use strict";

const $ = (id) => document.getElementById(id);

// make returns an element with properties and children.
function make(tag, properties, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(properties || {})) {
    if (k in e) e[k] = v;
    else e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
}

const clock = (t) => new Date(t).toLocaleTimeString([], {hour: "2-digit", minute: "2-digit", second: "2-digit"});
const day = (t) => new Date(t).toLocaleDateString();
const when = (t) => (day(t) === day(Date.now()) ? clock(t) : day(t) + " " + clock(t));

async function get(path) {
  const r = await fetch("/api/" + path, {cache: "no-store"});
  if (r.status === 401) location.href = "/login";
  if (!r.ok) throw new Error(await r.text());
  return r.json();
}

// tell says something to the office, and shows what comes of it.
async function tell(path, what, done) {
  $("said").hidden = true;
  try {
    const r = await fetch("/api/" + path, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(what)});
    if (!r.ok) throw new Error((await r.text()).trim());
    $("trouble").hidden = true;
    $("said").textContent = done;
    $("said").hidden = false;
    return true;
  } catch (e) {
    $("trouble").textContent = e.message;
    $("trouble").hidden = false;
    return e.message;
  } finally {
    await refresh();
  }
}

// keyed shows a list: an element is made anew only where its item has changed, and not while somebody is at it.
function keyed(list, items, key, draw) {
  const old = new Map([...list.children].map((e) => [e.dataset.key, e]));
  let at = list.firstChild;
  for (const item of items) {
    const id = String(key(item)), text = JSON.stringify(item);
    let e = old.get(id);
    old.delete(id);
    const busy = e && (e.contains(document.activeElement) || e.querySelector("input:checked"));
    if (!e || (e.dataset.text !== text && !busy)) {
      const fresh = draw(item);
      fresh.dataset.key = id;
      fresh.dataset.text = text;
      if (e) {
        if (e === at) at = fresh;
        e.replaceWith(fresh);
      }
      e = fresh;
    }
    if (e === at) at = e.nextSibling;
    else list.insertBefore(e, at);
  }
  for (const e of old.values()) e.remove();
}

function picture(id, alt) {
  return make("img", {src: "/face/" + id, alt: alt, loading: "lazy"});
}

// naming returns a form that asks who somebody is.
function naming(label, button, say) {
  const input = make("input", {type: "text", required: true, maxLength: 100, autocomplete: "off", "aria-label": label, placeholder: "name"});
  input.setAttribute("list", "names");
  return make("form", {className: "row", onsubmit: async (e) => {
    e.preventDefault();
    const name = input.value.trim();
    input.blur();
    if (name) await say(name);
  }}, input, make("button", {className: "main"}, button));
}

function drawStranger(g, all) {
  const box = make("article", {className: "card"});
  const faces = make("ul", {className: "faces"});
  for (const f of g.faces) {
    faces.append(make("li", {}, make("label", {}, picture(f.id, "face seen " + when(f.at) + " at " + f.camera), make("input", {type: "checkbox", value: f.id, title: "choose this face"}))));
  }
  const chosen = () => [...faces.querySelectorAll("input:checked")].map((i) => Number(i.value));
  const done = () => faces.querySelectorAll("input").forEach((i) => (i.checked = false));
  box.append(
    make("h3", {}, (g.ignored ? "Ignored" : "Somebody unknown") + " (" + g.id + ")"),
    make("p", {className: "soft"}, "seen " + when(g.first) + (g.last !== g.first ? " to " + when(g.last) : "") + ", " + g.visits + (g.visits === 1 ? " time" : " times")),
    faces,
    naming("Who is unknown person " + g.id + "?", "That is their name", async (name) => {
      const what = {group: g.id, name: name, force: false};
      const answer = await tell("name", what, name + " is known now.");
      if (answer !== true && /look like/.test(answer) && confirm(answer + "\n\nName them " + name + " all the same?")) {
        await tell("name", {...what, force: true}, name + " is known now.");
      }
    }));
  const others = all.filter((o) => o.id !== g.id);
  const more = make("div", {className: "row"},
    make("button", {type: "button", onclick: () => tell("ignore", {group: g.id, ignored: !g.ignored}, g.ignored ? "They are told of again." : "They are ignored from now on.")}, g.ignored ? "No longer ignore" : "Ignore for ever"),
    make("button", {type: "button", onclick: () => tell("forget-stranger", {group: g.id}, "They are forgotten.")}, "Forget"),
    make("button", {type: "button", onclick: async () => { const f = chosen(); done(); await tell("split", {group: g.id, faces: f}, "The chosen faces are somebody else's now."); }}, "Chosen faces are somebody else"));
  if (others.length) {
    const select = make("select", {"aria-label": "other group"}, ...others.map((o) => make("option", {value: o.id}, "person " + o.id)));
    more.append(make("span", {className: "row"}, make("button", {type: "button", onclick: () => tell("merge", {into: g.id, from: Number(select.value)}, "They are one person now.")}, "Same as"), select));
  }
  box.append(make("details", {}, make("summary", {}, "More"), more));
  return box;
}

function drawSighting(s) {
  const text = make("div", {}, make("h3", {}, s.name || "Unknown"), make("p", {className: "soft"}, s.camera + ", " + when(s.first) + (s.live ? ", still there" : " to " + clock(s.last))));
  if (s.name && s.trust === "learned") {
    text.append(make("div", {className: "row"}, make("span", {}, "Still " + s.name + "? Recognised by what was learned alone."),
      make("button", {type: "button", onclick: () => tell("confirm", {sighting: s.id}, "These faces of " + s.name + " are enrolled now.")}, "Yes, it is " + s.name)));
  }
  if (s.name) {
    text.append(make("details", {}, make("summary", {}, "This is not " + s.name),
      make("div", {className: "row"}, make("button", {type: "button", onclick: () => tell("correct", {sighting: s.id, is: ""}, "That was not " + s.name + ", and will not be again.")}, "It is somebody else")),
      naming("Who is it, if not " + s.name + "?", "It is them", (name) => tell("correct", {sighting: s.id, is: name}, "That was " + name + "."))));
  }
  return make("li", {}, picture(s.face, s.name || "somebody unknown"), text);
}

// drawCamera shows a camera; what changes with every frame is put in by see.
function drawCamera(c) {
  const img = make("img", {alt: "what " + c.camera + " sees", hidden: true});
  img.onload = () => { img.hidden = false; };
  img.onerror = () => { img.hidden = true; };
  return make("figure", {className: "camera"}, make("div", {className: "frame"}, img, make("div", {className: "none"})), make("figcaption", {}));
}

function see(figure, c) {
  const frame = figure.querySelector(".frame"), img = frame.querySelector("img");
  if (c.up && !document.hidden) img.src = "/camera/" + encodeURIComponent(c.camera) + "?" + Date.now();
  if (!c.up) img.hidden = true;
  frame.querySelector(".none").textContent = img.hidden ? (c.up ? "…" : c.error || "no picture") : "";
  for (const b of frame.querySelectorAll(".box")) b.remove();
  if (c.size.X > 0) {
    frame.style.aspectRatio = c.size.X + "/" + c.size.Y;
    for (const s of img.hidden ? [] : c.seen) {
      const box = make("div", {className: s.name ? "box known" : "box", title: s.reason || ""}, make("b", {}, s.name || (s.ignored ? "ignored" : s.group ? "unknown " + s.group : "?")));
      Object.assign(box.style, {left: 100 * s.box.Min.X / c.size.X + "%", top: 100 * s.box.Min.Y / c.size.Y + "%", width: 100 * (s.box.Max.X - s.box.Min.X) / c.size.X + "%", height: 100 * (s.box.Max.Y - s.box.Min.Y) / c.size.Y + "%"});
      frame.append(box);
    }
  }
  const names = c.seen.map((s) => (s.name || "unknown") + (s.trust === "learned" ? ", not confirmed" : "") + (s.reason ? " (" + s.reason + ")" : ""));
  figure.querySelector("figcaption").textContent = c.camera + ": " + (c.up ? names.join(", ") || "nobody" : c.error ? c.error + "; it is tried again" : "ended");
}

const words = {arrived: "arrived", left: "left", unknown: "is there", mistake: "was not there: a mistake"};

// bars draws who was there when.
function bars(events, now) {
  const from = events.length ? Date.parse(events[events.length - 1].at) : 0, to = Date.parse(now.at);
  const stays = new Map();
  for (const e of [...events].reverse()) {
    if (!e.name) continue;
    const all = stays.get(e.name) || [];
    stays.set(e.name, all);
    const last = all[all.length - 1];
    if (e.kind === "arrived") all.push([Date.parse(e.at), to]);
    else if (e.kind === "mistake") all.pop();
    else if (last) last[1] = Date.parse(e.at);
    else all.push([from, Date.parse(e.at)]);
  }
  const box = $("bars");
  box.hidden = stays.size === 0 || to <= from;
  box.replaceChildren();
  if (box.hidden) return;
  const ns = "http://www.w3.org/2000/svg";
  for (const [name, all] of stays) {
    if (!all.length) continue;
    const svg = document.createElementNS(ns, "svg");
    svg.setAttribute("viewBox", "0 0 1000 10");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", name + " was there " + all.map(([a, b]) => clock(a) + " to " + clock(b)).join(", "));
    for (const [a, b] of all) {
      const r = document.createElementNS(ns, "rect");
      const x = 1000 * (a - from) / (to - from);
      for (const [k, v] of Object.entries({x: x, y: 0, width: Math.max(3, 1000 * (b - a) / (to - from)), height: 10})) r.setAttribute(k, v);
      svg.append(r);
    }
    box.append(make("span", {}, name), svg);
  }
  box.append(make("small", {}, make("span", {}, when(from)), make("span", {}, "now")));
}

let shown = 50;

async function refresh() {
  try {
    const [now, groups, seen, conflicts, events, sinks] = await Promise.all([
      get("now"), get("strangers"), get("sightings"), get("conflicts"), get("events?n=" + shown), get("sinks")]);
    const known = now.known || [];
    look(now);
    $("no-strangers").hidden = groups.length > 0;
    const visible = groups.filter((g) => !g.ignored).concat(groups.filter((g) => g.ignored));
    keyed($("strangers"), visible, (g) => g.id, (g) => drawStranger(g, groups));
    $("no-sightings").hidden = seen.length > 0;
    keyed($("sightings"), seen, (s) => s.id, drawSighting);
    const label = (l) => (l.not ? "a face that is not " + l.name + "’s" : "a face of " + l.name);
    $("conflicts-section").hidden = !conflicts || conflicts.length === 0;
    keyed($("conflicts"), conflicts || [], (c) => c.a.id + "-" + c.b.id, (c) => make("li", {className: "row"},
      make("span", {}, label(c.a) + " and " + label(c.b) + " look like one person (" + c.distance.toFixed(2) + ")"),
      ...[c.a, c.b].map((l) => make("button", {type: "button", onclick: () => tell("unlabel", {face: l.id}, "That face is taken back.")}, "Take back " + label(l)))));
    keyed($("events"), (events || []).toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at) || b.id - a.id), (e) => e.id, (e) => make("tr", {}, make("td", {}, when(e.at)), make("td", {}, e.name || "somebody unknown" + (e.group ? " (" + e.group + ")" : "")), make("td", {}, words[e.kind] || e.kind), make("td", {}, e.camera)));
    $("older").hidden = !events || events.length < shown || shown >= 200;
    bars(events || [], now);
    keyed($("people"), known, (p) => p.name, (p) => make("li", {className: "row"}, make("b", {}, p.name),
      make("span", {className: "soft"}, p.faces + " labelled faces, the last " + when(p.enrolled)),
      make("button", {type: "button", onclick: () => confirm("Forget " + p.name + " and all that was learned of them?") && tell("forget", {name: p.name}, p.name + " is forgotten.")}, "Forget " + p.name)));
    let names = $("names");
    if (!names) document.body.append((names = make("datalist", {id: "names"})));
    names.replaceChildren(...known.map((p) => make("option", {value: p.name})));
    keyed($("sinks"), sinks, (s) => s.name, (s) => make("li", {}, s.name + ": " + (s.error || "well") + (s.waiting ? ", " + s.waiting + " events wait" : "") + (s.lost ? ", " + s.lost + " were lost" : "")));
    if ($("trouble").dataset.gone) {
      $("trouble").hidden = true;
      delete $("trouble").dataset.gone;
    }
  } catch (e) {
    $("trouble").textContent = "The office does not answer: " + e.message;
    $("trouble").dataset.gone = "yes";
    $("trouble").hidden = false;
  }
}

// look shows what changes with every frame.
function look(now) {
  const people = now.people || [];
  $("headline").textContent = people.length === 0 ? "Nobody known is here." : people.map((p) => p.name).join(", ") + (people.length === 1 ? " is here." : " are here.");
  keyed($("cameras"), now.cameras.map((c) => ({camera: c.camera})), (c) => c.camera, drawCamera);
  for (const c of now.cameras) {
    see([...$("cameras").children].find((e) => e.dataset.key === c.camera), c);
  }
  if (document.activeElement !== $("keep")) $("keep").checked = now.keeps;
  $("room").hidden = !now.room.full;
  $("room").textContent = now.room.full ? `No room to learn: ${now.room.k} centroids are held, and no two are near enough to be merged. Faces are recognised, and no longer learned (${now.room.passed_over} so far). Start the office with a larger --k.` : "";
  keyed($("health"), now.cameras.map((c) => ({...c, seen: null, rate: Math.round(c.rate)})), (c) => c.camera, (c) => make("tr", {}, make("td", {}, c.camera), make("td", {}, c.up ? "connected" : c.error || "ended"), make("td", {}, when(c.since)), make("td", {}, String(c.rate || "")), make("td", {}, String(c.frames)), make("td", {}, String(c.dropped))));
}

$("keep").onchange = (e) => {
  const on = e.target.checked;
  if (!on && !confirm("Forget the strangers that are kept, and keep none from now on?")) {
    e.target.checked = true;
    return;
  }
  e.target.blur();
  tell("keep", {on: on}, on ? "Faces of strangers are kept." : "No face of a stranger is kept.");
};
$("older").onclick = () => {
  shown = Math.min(200, shown + 50);
  refresh();
};

// Each waits for the last one: a slow office is not asked more often than it answers.
async function every(pause, what) {
  for (;;) {
    if (!document.hidden) await what();
    await new Promise((done) => setTimeout(done, pause));
  }
}
every(2000, refresh);
every(500, async () => {
  try {
    look(await get("now"));
  } catch {
    // refresh says so
  }
});
