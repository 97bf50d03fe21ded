// Who is here, what the cameras see, and who was seen lately: a card for each person.

import {correct, get, naming, query} from "./api.js";
import {look} from "./cameras.js";
import {$, clock, cut, face, keyed, list, make, many, personCard, personLink, show, when} from "./dom.js";
import {film} from "./film.js";

const page = 60;
const onPhone = 4; // cameras, and visits until somebody asks for more, on a small screen
const small = () => matchMedia("(max-width: 34rem)").matches;
let older = [], // sightings that were asked for
  asked = false;

const whose = (s) => s.name || (s.group ? "stranger " + s.group : "");

// visits gathers sightings, the latest first, by person. Who was too short or too badly in view for the office to tell
// whether two sightings are of one person has no group, and no card while strangers are kept.
function visits(sightings, keeps) {
  const all = Map.groupBy(
    sightings.filter((s) => whose(s) || !keeps),
    (s) => whose(s) || "stranger at " + s.camera,
  );
  return [...all].map(([key, own]) => ({...own[0], key: key, earlier: own.slice(1)}));
}

// drawVisit shows the latest sighting of a person, and the earlier ones when somebody asks for them.
function drawVisit(v) {
  const card = drawSighting(v);
  if (v.earlier.length === 0) return card;
  const box = make(
    "details",
    {},
    make("summary", {}, v.earlier.length + 1 + " times since " + when(v.earlier.at(-1).first)),
  );
  box.ontoggle = () => {
    if (box.open && box.children.length === 1)
      box.append(make("ul", {className: "cards"}, ...v.earlier.map(drawSighting)));
  };
  card.classList.add("visits");
  card.append(box);
  return card;
}

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
    if (s.trust === "likely") {
      text.append(
        make(
          "p",
          {className: "small"},
          "Recognised only by learned faces. ",
          make("a", {href: personLink(s.name)}, "Still " + cut(s.name) + "?"),
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
  if (s.clip) text.append(film(s));
  return make("li", {}, face(s.face, s.name || "Somebody unknown"), text);
}

const drawPerson = (p) =>
  personCard(
    p,
    make("span", {className: "soft small"}, "since " + when(p.since) + ", at " + p.camera),
    p.rarity ? make("div", {className: "soft small"}, p.rarity) : "",
    " ",
    p.trust === "likely" ? make("span", {className: "tag"}, "not confirmed") : "",
    p.unsure ? make("span", {className: "tag"}, "may have left") : "",
  );

// each shows what changes with every frame.
export function each(now) {
  const live = now.cameras.filter((c) => c.up || c.error); // not recordings that have ended
  const few = small() ? onPhone : live.length;
  look("now-cameras", {...now, cameras: live.slice(0, few)});
  show($("all-cameras").firstChild, live.length > few ? "All " + live.length + " cameras" : "");
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
  $("open").hidden = questions.length === 0;
  show($("open").firstChild, questions.length ? many(questions.length, "question") + " in the inbox" : "");
  const groups = new Set(questions.filter((q) => q.kind === "stranger").map((q) => q.stranger.id));
  const all = seen.concat(older.filter((s) => seen.length === 0 || s.id < seen.at(-1).id));
  for (const s of all) s.open = groups.has(s.group);
  const shown = visits(all, now.keeps);
  $("no-sightings").hidden = shown.length > 0;
  const few = !asked && small() ? onPhone : shown.length;
  keyed($("sightings"), shown.slice(0, few), (v) => v.key, drawVisit);
  if (!asked) $("older-sightings").hidden = seen.length < page && shown.length <= few;
  oldest = all.at(-1)?.id;
}

$("older-sightings").onclick = async () => {
  const more = await get(query("sightings", {before: oldest, n: page}));
  older = older.concat(more);
  asked = true;
  $("older-sightings").hidden = more.length < page;
  again();
};

let oldest,
  again = () => {};

// onOlder sets what shows sightings that were asked for.
export function onOlder(f) {
  again = f;
}
