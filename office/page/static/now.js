// Who is here, what the cameras see, and who was seen lately.

import {correct, get, naming, query, tell} from "./api.js";
import {look} from "./cameras.js";
import {$, clock, cut, face, keyed, list, make, many, personCard, personLink, show, when} from "./dom.js";

const page = 24;
let older = []; // sightings that were asked for

export function drawSighting(s) {
  const title = s.name ? make("a", {href: personLink(s.name)}, s.name) : "Somebody unknown";
  const text = make(
    "div",
    {},
    make("h3", {className: "two"}, title),
    make(
      "p",
      {className: "soft small"},
      s.camera + ", " + when(s.first) + (s.live ? ", still there" : " to " + clock(s.last)),
    ),
  );
  if (!s.name) {
    if (s.open) text.append(make("a", {href: "#inbox/stranger-" + s.group}, "Who is this?"));
    else {
      text.append(
        make(
          "details",
          {},
          make("summary", {}, "Who is this?"),
          naming(
            "Who is this, seen " + when(s.first) + " at " + s.camera + "?",
            make("button", {className: "main"}, "Save"),
            (name) => correct(s.id, "", name),
          ),
        ),
      );
    }
  } else {
    if (s.trust === "learned") {
      text.append(
        make("p", {className: "small"}, "Recognised only by learned faces. Still " + cut(s.name) + "?"),
        make(
          "button",
          {
            type: "button",
            onclick: () => tell("confirm", {sighting: s.id}, "These faces of " + s.name + " are enrolled now."),
          },
          "Yes, enrol these faces",
        ),
      );
    }
    text.append(
      make(
        "details",
        {},
        make("summary", {}, "This is not " + cut(s.name)),
        make("button", {type: "button", onclick: () => correct(s.id, s.name, "")}, "It is somebody else"),
        naming("Who is it, if not " + s.name + "?", make("button", {className: "main"}, "It is them"), (name) =>
          correct(s.id, s.name, name),
        ),
      ),
    );
  }
  if (s.clip)
    text.append(make("p", {}, make("a", {className: "small tall", href: "clip/" + s.id}, "Film of the first seconds")));
  return make("li", {}, face(s.face, s.name || "Somebody unknown"), text);
}

const drawPerson = (p) =>
  personCard(
    p,
    make("span", {className: "soft small"}, "since " + when(p.since) + ", at " + p.camera),
    " ",
    p.trust === "learned" ? make("span", {className: "tag"}, "not confirmed") : "",
    p.unsure ? make("span", {className: "tag"}, "may have left") : "",
  );

// drawSite shows another office, and who is there.
function drawSite(s) {
  const names = s.people.map(
    (p) => cut(p.name) + (p.trust === "learned" ? " (not confirmed)" : p.unsure ? " (may have left)" : ""),
  );
  const who = s.silent
    ? "Silent since " + when(s.at) + ": nobody knows who is there."
    : (names.length ? list(names) : "Nobody known") +
      (s.unknown ? ", and " + (s.unknown === 1 ? "somebody" : s.unknown + " people") + " unknown" : "");
  return make(
    "li",
    {},
    make(
      "div",
      {className: "place"},
      make("b", {className: "two"}, s.name),
      make("span", {className: "soft small"}, who),
    ),
  );
}

// each shows what changes with every frame.
export function each(now) {
  const live = now.cameras.filter((c) => c.up || c.error); // not recordings that have ended
  look("now-cameras", {...now, cameras: live});
}

export async function refresh(now, questions) {
  const [seen, people] = await Promise.all([get(query("sightings", {n: page})), get("people")]);
  const faces = new Map(people.map((p) => [p.name, p.face]));
  const here = now.people.map((p) => ({
    name: p.name,
    since: p.since,
    camera: p.camera,
    trust: p.trust,
    unsure: p.unsure,
    face: faces.get(p.name),
  }));
  const names = here.map((p) => cut(p.name));
  const who =
    names.length === 0
      ? "Nobody known is here"
      : names.length > 4
        ? many(names.length, "person", "people") + " are here"
        : list(names) + (names.length === 1 ? " is here" : " are here");
  show(
    $("now-title"),
    who + (now.unknown ? ", and " + (now.unknown === 1 ? "somebody" : now.unknown + " people") + " unknown" : ""),
  );
  keyed($("here"), here, (p) => p.name, drawPerson);
  $("elsewhere").hidden = now.sites.length === 0;
  keyed($("sites"), now.sites, (s) => s.name, drawSite);
  const twice = now.twice.map(
    (t) =>
      cut(t.name) +
      " is seen " +
      list(t.places.map((p) => (p ? "at " + cut(p) : "here"))) +
      " at the same time. One of them is somebody else.",
  );
  $("twice").hidden = twice.length === 0;
  show($("twice"), twice.join(" "));
  $("open").hidden = questions.length === 0;
  show($("open").firstChild, questions.length ? many(questions.length, "question") + " in the inbox" : "");
  const groups = new Set(questions.filter((q) => q.kind === "stranger").map((q) => q.stranger.id));
  for (const s of seen) s.open = groups.has(s.group);
  const all = seen.concat(older.filter((s) => seen.length === 0 || s.id < seen.at(-1).id));
  $("no-sightings").hidden = all.length > 0;
  keyed($("sightings"), all, (s) => s.id, drawSighting);
  if (older.length === 0) $("older-sightings").hidden = seen.length < page;
}

$("older-sightings").onclick = async () => {
  const last = $("sightings").lastElementChild;
  const more = await get(query("sightings", {before: last.dataset.key, n: page}));
  older = older.concat(more);
  $("older-sightings").hidden = more.length < page;
  for (const s of more) {
    const e = drawSighting(s);
    Object.assign(e.dataset, {key: s.id, text: JSON.stringify(s)});
    $("sightings").append(e);
  }
  last.nextElementSibling?.querySelector("a,summary,button")?.focus();
};
