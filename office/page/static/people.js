// Everybody who is known, and the page of one of them.

import {ask, correct, get, naming, query, tell} from "./api.js";
import {$, clock, day, dayKey, face, keyed, make, many, personCard, personLink, portrait, show, when} from "./dom.js";
import {confirming} from "./inbox.js";
import {bars, stays} from "./timeline.js";
import {upload} from "./upload.js";

function drawPerson(p) {
  const state = p.here
    ? make("span", {className: "tag here"}, "here since " + clock(p.since))
    : make("span", {className: "soft small"}, p.last ? "last seen " + when(p.last) : "not seen yet");
  return personCard(p, state, make("div", {className: "soft small"}, many(p.faces, "enrolled face")));
}

let everybody = [];

function list() {
  const text = $("find").value.trim().toLowerCase();
  const found = everybody.filter((p) => p.name.toLowerCase().includes(text));
  const none = everybody.length === 0;
  $("no-people").hidden = found.length > 0;
  show($("no-people").children[1], none ? "Nobody is known yet." : "There is no person with this name.");
  $("no-people").lastElementChild.hidden = !none;
  keyed($("people-list"), found, (p) => p.name, drawPerson);
}

$("find").oninput = list;

const newcomer = make("input", {
  type: "text",
  maxLength: 100,
  autocomplete: "off",
  autocapitalize: "words",
  placeholder: "Name",
  "aria-label": "Name of the new person",
});
$("add").append(
  newcomer,
  upload("Pictures of this person.", () => {
    const who = newcomer.value.trim();
    if (!who) newcomer.focus();
    return who && {path: "people", values: {name: who}, who: who};
  }),
);

export async function refresh() {
  everybody = await get("people");
  everybody.sort((a, b) => Number(b.here) - Number(a.here) || a.name.localeCompare(b.name));
  list();
}

let name = "",
  visits = [],
  shown = "",
  asked = 0,
  number = 0, // of the person
  pictures = null; // stays while the person is drawn anew: it says what was wrong with each picture

// open shows the page of a person.
export function open(who) {
  name = who;
  shown = "";
  visits = [];
  asked = 0;
  pictures = upload("More pictures of them.", () => ({path: "people/" + number + "/faces", values: {}, who: who}));
  $("person").replaceChildren(make("h1", {id: "person-title", tabIndex: -1}, name));
}

const words = (p) => (p.camera ? " at " + p.camera : "");

function under(f) {
  if (f.learned)
    return make(
      "span",
      {className: "under"},
      (f.at ? when(f.at) : "learned") + ", " + many(f.hops, "step") + (f.points > 1 ? ", stands for " + f.points : ""),
    );
  return make(
    "span",
    {className: "under"},
    !f.portrait.face
      ? "no picture is kept"
      : (f.portrait.apart > 0 ? "seen like this " : "seen ") + when(f.portrait.seen) + words(f.portrait),
  );
}

// fromHere returns a button that takes back a learned face of a chain, and what was learned through it.
const fromHere = (s) =>
  make(
    "button",
    {
      type: "button",
      className: "quiet small",
      onclick: async () => {
        if (
          await ask(
            "Take this learned face back, with all faces that were learned through it? This cannot be undone.",
            "Take back",
          )
        )
          await tell("take-back", {face: s.stored}, (a) => many(a.learned, "learned face") + " taken back.");
      },
    },
    "Take back from here",
  );

// drawWay shows the faces by which a learned face came to be somebody's, from the enrolled one on.
function drawWay(way) {
  const items = [];
  way.steps.toReversed().forEach((s, i, all) => {
    const next = all[i - 1];
    const what = s.name ? "enrolled" : s.merged ? "learned, merged since" : "learned";
    const stop = make(
      "div",
      {className: s.name ? "stop enrolled" : "stop"},
      portrait(s.portrait, "Step " + (i + 1) + ", " + what),
      make(
        "b",
        {},
        s.name ? (s.not ? "known not to be theirs" : "enrolled") : i === all.length - 1 ? "this face" : what,
      ),
      make("br"),
      s.at ? when(s.at) : "",
      s.name || s.merged ? "" : fromHere(s),
    );
    items.push(
      make(
        "li",
        {},
        ...(next
          ? [
              make(
                "span",
                {className: "hop"},
                make("span", {className: "skip"}, "at a distance of "),
                next.distance.toFixed(2),
              ),
            ]
          : []),
        stop,
      ),
    );
  });
  const text = way.whole
    ? "After the enrolled face, each face was accepted because it is near the face before it. " +
      "The numbers are the distances; a step may have " +
      way.link.toFixed(2) +
      " at most."
    : "The faces before the first one are no longer kept.";
  const gone = way.instead
    ? [
        make(
          "p",
          {},
          "This face is no longer kept by itself: it was merged with a very similar face, or taken back. " +
            "Below is the chain of the face that is nearest to it now.",
        ),
      ]
    : [];
  return [...gone, make("p", {className: "soft small"}, text), make("ol", {className: "way"}, ...items)];
}

function learned(p) {
  const faces = p.faces.filter((f) => f.learned).toReversed(),
    first = 24;
  if (faces.length === 0) return [make("p", {className: "soft"}, "No face was learned besides the enrolled faces.")];
  const panel = make("div", {
    className: "panel",
    hidden: true,
    role: "region",
    "aria-label": "How this face came to be theirs",
    tabIndex: -1,
  });
  const ul = make("ul", {className: "faces large"});
  let open = null;
  const item = (f) => {
    const pick = make(
      "button",
      {type: "button", className: "pick", "aria-expanded": "false"},
      portrait(f.portrait, "Learned face"),
      under(f),
    );
    pick.onclick = async () => {
      open?.setAttribute("aria-expanded", "false");
      if (open === pick) {
        open = null;
        panel.hidden = true;
        return;
      }
      open = pick;
      pick.setAttribute("aria-expanded", "true");
      panel.hidden = false;
      panel.replaceChildren(make("h3", {}, "How this face came to be theirs"));
      try {
        panel.append(...drawWay(await get(query("way", {face: f.id}))));
      } catch (e) {
        panel.append(
          make(
            "p",
            {},
            e.status === 404
              ? "This face is not kept any more: it was merged with another one, or taken back. " +
                  "Load the page again to see the faces that are kept now."
              : e.message,
          ),
        );
      }
      panel.focus();
      panel.scrollIntoView({block: "nearest"});
    };
    return make("li", {}, pick);
  };
  ul.append(...faces.slice(0, first).map(item));
  const parts = [
    make(
      "p",
      {className: "soft small"},
      "Choose a face to see the chain of faces that led to it. Learned faces alone announce nobody. " +
        "A paler picture is of a similar face: not every picture is kept.",
    ),
    panel,
    ul,
  ];
  if (faces.length > first) {
    const rest = make(
      "button",
      {
        type: "button",
        onclick: () => {
          ul.append(...faces.slice(first).map(item));
          ul.children[first].firstChild.focus();
          rest.remove();
        },
      },
      "Show the other " + (faces.length - first),
    );
    parts.push(rest);
  }
  return parts;
}

function draw(p, summary, still) {
  const box = $("person");
  const enrolled = p.faces.filter((f) => !f.learned && !f.not),
    rejected = p.faces.filter((f) => f.not);
  const best = summary?.face || enrolled.find((f) => f.portrait.face)?.portrait.face;
  const state = !summary
    ? ""
    : summary.here
      ? make("span", {className: "tag here"}, "here since " + clock(summary.since) + ", at " + summary.camera)
      : summary.last
        ? "Last seen " + when(summary.last) + words(summary)
        : "Not seen yet";
  const known = p.faces.filter((f) => f.learned);
  const faces = (all, alt, more) =>
    make(
      "ul",
      {className: "faces large"},
      ...all.map((f) => make("li", {}, portrait(f.portrait, alt), under(f), ...more(f))),
    );
  const none = () => [];
  const takeBack = (f) => [
    make(
      "button",
      {
        type: "button",
        className: "quiet small",
        onclick: async () => {
          if (await ask("Take this face back? Faces that were learned through it stay.", "Take back"))
            await tell("take-back", {face: f.id}, "The face is taken back.");
        },
      },
      "Take back",
    ),
  ];
  number = summary?.id;
  box.replaceChildren(
    make(
      "div",
      {className: "portrait"},
      face(best, p.name),
      make(
        "div",
        {},
        make("h1", {id: "person-title", tabIndex: -1}, p.name),
        make("p", {}, state),
        make(
          "p",
          {className: "soft small"},
          many(enrolled.length, "enrolled face") +
            (p.enrolled ? ", the last " + when(p.enrolled) : "") +
            "; " +
            many(Math.round(p.drift.learned), "face") +
            " learned, kept as " +
            known.length,
        ),
      ),
    ),
    ...(p.drift.alarm
      ? [
          make(
            "p",
            {className: "warn"},
            "The learned faces have moved far from the enrolled faces, in one direction. " +
              "Check that the learned faces below are of this person.",
          ),
        ]
      : []),
    ...still.map((s) => {
      const yes = make("button", {type: "button", className: "main", disabled: true}, "Yes, all of these");
      const own = enrolled.filter((f) => f.portrait.face).map((f) => f.portrait.face);
      return make(
        "div",
        {className: "panel"},
        make("h2", {className: "first"}, "Still " + p.name + "?"),
        make("p", {className: "soft small"}, s.camera + ", " + when(s.first) + ". Only learned faces speak for it."),
        confirming(s, own, yes),
        make(
          "div",
          {className: "row"},
          yes,
          make("button", {type: "button", onclick: () => correct(s.id, p.name, "")}, "No"),
        ),
      );
    }),
    make("h2", {}, "Enrolled"),
    faces(enrolled, "Enrolled face of " + p.name, enrolled.length > 1 ? takeBack : none),
    pictures,
    make("h2", {}, "Learned"),
    ...learned(p),
    ...(rejected.length ? [make("h2", {}, "Known not to be them"), faces(rejected, "Not " + p.name, takeBack)] : []),
    make("h2", {}, "Visits"),
    make("div", {id: "visits"}),
    make("h2", {}, "Name"),
    naming("Another name for " + p.name, make("button", {}, "Rename"), async (to) => {
      if (await tell("rename", {from: p.name, to: to}, "They are " + to + " now.")) location.replace(personLink(to));
    }),
    make(
      "p",
      {},
      make(
        "button",
        {
          type: "button",
          className: "bad",
          onclick: async () => {
            if (await ask("Forget " + p.name + " and all that was learned of them?", "Forget")) {
              if (
                await tell(
                  "forget",
                  {name: p.name},
                  p.name.length > 40 ? "They are forgotten." : p.name + " is forgotten.",
                )
              )
                location.hash = "#people";
            }
          },
        },
        "Forget this person",
      ),
    ),
  );
  drawVisits();
}

function drawVisits() {
  const box = $("visits");
  if (!box) return;
  const days = Map.groupBy(
    stays(visits, Date.now()).toReversed(),
    (s) => dayKey(s.from),
  );
  box.replaceChildren(
    ...[...days.values()].map((all) => {
      const minutes = Math.round(all.reduce((sum, s) => sum + s.to - s.from, 0) / 60000);
      const text = all
        .toReversed()
        .map((s) => clock(s.from) + (s.here ? " until now" : " to " + clock(s.to)))
        .join(", ");
      return make(
        "div",
        {className: "day"},
        make(
          "h3",
          {},
          day(all[0].from),
          " ",
          make(
            "small",
            {className: "soft"},
            many(all.length, "visit") +
              ", " +
              (minutes < 60 ? minutes + " min" : Math.floor(minutes / 60) + " h " + (minutes % 60) + " min"),
          ),
        ),
        ...bars(all, all[0].from, false),
        make("p", {className: "soft small"}, text),
      );
    }),
  );
  if (days.size === 0) box.append(make("p", {className: "soft"}, "There are no visits."));
}

// refreshPerson shows what is known of the person. It is not asked for often: the office compares many faces for it.
export async function refreshPerson(changed) {
  const box = $("person");
  const busy =
    (box.contains(document.activeElement) && document.activeElement.matches("input")) ||
    box.querySelector(".panel[role]:not([hidden])");
  if (!changed && shown === name && (Date.now() - asked < 15000 || busy)) return;
  asked = Date.now();
  const who = name;
  let p;
  try {
    p = await get(query("person", {name: who}));
  } catch (e) {
    if (who !== name) return; // another one was opened meanwhile
    if (e.status !== 404) throw e;
    box.replaceChildren(
      make("h1", {id: "person-title", tabIndex: -1}, name),
      make("p", {}, "No person with this name is known. The person may have been renamed or forgotten."),
    );
    shown = name;
    return;
  }
  const [people, seen] = await Promise.all([get("people"), get("sightings")]);
  if (who !== name) return;
  if (shown !== name || changed) {
    const some = await get(query("visits", {name: who, days: 366}));
    if (who !== name) return;
    visits = some;
  }
  shown = name;
  const still = seen.filter((s) => s.name === name && s.trust === "likely").slice(0, 1);
  const held = box.contains(document.activeElement) && document.activeElement.id !== "person-title";
  draw(
    p,
    people.find((x) => x.name === name),
    still,
  );
  if (held) $("person-title").focus();
}
