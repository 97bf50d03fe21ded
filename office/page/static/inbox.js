// One question at a time: who is this, is it still them, which of these labels is wrong?

import {ask, correct, get, name, naming, query, tell, toast} from "./api.js";
import {$, clock, cut, face, icon, keyed, make, many, personLink, portrait, show, when} from "./dom.js";

let questions = [],
  known = [],
  strangers = [];
let at = 0,
  key = ""; // of the question that is shown
let wanted = ""; // the question of the address

const current = () => questions[at];

// hint is the key that presses a button.
function button(text, press, more) {
  const b = make("button", {type: "button", ...more}, text);
  if (press) {
    b.dataset.press = press;
    b.append(make("kbd", {"aria-hidden": "true"}, press.toUpperCase()));
  }
  return b;
}

const pictures = (ids, alt, few) =>
  make(
    "ul",
    {className: few ? "best few" : "best"},
    ...ids.map((id, i) => make("li", {}, face(id, alt + ", picture " + (i + 1)))),
  );

function drawStranger(g) {
  const box = make("article", {className: "question", "aria-labelledby": "question-title"});
  const submit = make("button", {className: "main"}, "Save");
  const form = naming("Who is unknown person " + g.id + "?", submit, (who) => name(g.id, who));
  form.querySelector("input").dataset.press = "n";
  form.prepend(
    make("span", {className: "soft small whole", "aria-hidden": "true"}, "Their name ", make("kbd", {}, "N")),
  );
  box.append(
    make("h2", {id: "question-title", tabIndex: -1}, "Who is this?"),
    make("p", {className: "soft meta"}),
    pictures(g.best, "Unknown person " + g.id),
    form,
  );
  if (known.length > 0) {
    box.append(
      make(
        "ul",
        {className: "chips", "aria-label": "People who are known"},
        ...known
          .slice(0, 12)
          .map((p) =>
            make(
              "li",
              {},
              make(
                "button",
                {type: "button", onclick: () => name(g.id, p.name)},
                make("span", {className: "clip"}, p.name),
              ),
            ),
          ),
      ),
    );
  }
  const others = strangers.filter((o) => o.id !== g.id && !o.ignored);
  const same = make(
    "div",
    {className: "panel", hidden: true},
    make("h3", {}, "Which of these is the same person?"),
    make(
      "ul",
      {className: "faces large"},
      ...others.map((o) =>
        make(
          "li",
          {},
          make(
            "button",
            {
              type: "button",
              className: "pick",
              onclick: () => tell("merge", {into: o.id, from: g.id}, "They are one person now."),
            },
            face(o.best[0], "Unknown person " + o.id),
            make("span", {className: "under"}, "Person " + o.id + ", " + when(o.last)),
          ),
        ),
      ),
    ),
  );
  const actions = make("div", {className: "actions"});
  if (others.length > 0) {
    const open = button("Same as …", "m", {"aria-expanded": "false"});
    open.onclick = () => {
      same.hidden = !same.hidden;
      open.setAttribute("aria-expanded", String(!same.hidden));
      if (!same.hidden) same.querySelector("button").focus();
    };
    actions.append(open);
  }
  actions.append(
    button("Ignore", "i", {
      title: "No event and no new faces of them from now on",
      onclick: () => tell("ignore", {group: g.id, ignored: true}, "They are ignored from now on."),
    }),
    button("Forget", "f", {
      className: "bad",
      onclick: () => tell("forget-stranger", {group: g.id}, "They are forgotten."),
    }),
  );
  box.append(actions, same, split(g));
  return box;
}

// split shows all faces of a stranger, and takes some of them for somebody else.
function split(g) {
  const box = make("details", {}, make("summary", {}, "All " + many(g.faces.length, "picture")));
  box.ontoggle = () => {
    if (!box.open || box.children.length > 1) return;
    const faces = make(
      "ul",
      {className: "faces"},
      ...g.faces.map((f) =>
        make(
          "li",
          {},
          make(
            "label",
            {},
            make("input", {
              type: "checkbox",
              value: f.id,
              "aria-label": "Choose the face of " + when(f.at) + " at " + f.camera,
            }),
            face(f.id, ""),
          ),
        ),
      ),
    );
    const chosen = () => [...faces.querySelectorAll("input:checked")].map((i) => Number(i.value));
    const apart = make(
      "button",
      {
        type: "button",
        disabled: true,
        onclick: async () => {
          const f = chosen();
          faces.querySelectorAll("input").forEach((i) => (i.checked = false));
          await tell("split", {group: g.id, faces: f}, "The chosen faces are somebody else now.");
        },
      },
      "The chosen faces are somebody else",
    );
    faces.onchange = () => {
      apart.disabled = chosen().length === 0 || chosen().length === g.faces.length;
    };
    box.append(faces, apart);
  };
  return box;
}

// confirming asks whether somebody in view is still the person: it shows the faces that a yes would enrol, those far from
// the enrolled ones first, and some of the enrolled ones.
export function confirming(s, enrolled, answer) {
  const box = make("div", {className: "confirming"});
  get(query("confirmable", {sighting: s.id}))
    .then((faces) => {
      answer.disabled = false;
      answer.onclick = () =>
        tell(
          "confirm",
          {sighting: s.id, faces: faces.map((f) => f.face)},
          "These faces of " + cut(s.name) + " are enrolled now.",
        );
      const shown = (f, alt, apart) =>
        make("li", {}, face(f, alt), make("span", {className: "under soft small"}, apart || "enrolled"));
      box.append(
        make("h3", {}, "To be enrolled, and how far each is from the enrolled faces"),
        make(
          "ul",
          {className: "best few"},
          ...faces.map((f, i) => shown(f.face, "Face " + (i + 1) + " to be enrolled", f.apart.toFixed(2))),
        ),
        make("h3", {}, "Enrolled"),
        make("ul", {className: "best few"}, ...enrolled.slice(0, 4).map((f) => shown(f, "Enrolled face of " + s.name))),
      );
    })
    .catch(() => box.append(make("p", {}, "This sighting can no longer be confirmed.")));
  return box;
}

function drawStill(s) {
  const yes = button("Yes, all of these are " + (s.name.length > 30 ? "them" : s.name), "y", {
    className: "main",
    disabled: true,
  });
  const box = make("div", {});
  get(query("person", {name: s.name}))
    .then((p) => p.faces.filter((f) => !f.learned && !f.not && f.portrait.face).map((f) => f.portrait.face))
    .catch(() => []) // the question stands without them
    .then((enrolled) => box.append(confirming(s, enrolled, yes)));
  return make(
    "article",
    {className: "question", "aria-labelledby": "question-title"},
    make("h2", {id: "question-title", tabIndex: -1}, "Still " + s.name + "?"),
    make("p", {className: "soft meta"}),
    make(
      "p",
      {},
      "Only learned faces support this name. " +
        "Yes enrols these faces, so the office follows a beard, new glasses or older age.",
    ),
    box,
    make(
      "div",
      {className: "actions"},
      yes,
      button("No", "x", {onclick: () => correct(s.id, s.name, "")}),
      make("a", {href: personLink(s.name), className: "row"}, "Their page"),
    ),
  );
}

const whose = (s) => (s.not ? "Not " + s.name : s.name);

function drawConflict(c) {
  const side = (s, press) =>
    make(
      "div",
      {},
      make("h3", {className: "two"}, whose(s)),
      make(
        "div",
        {className: "one"},
        portrait(s.portrait, whose(s)),
        make(
          "p",
          {className: "soft small"},
          s.portrait.face
            ? (s.portrait.apart > 0 ? "seen like this " : "seen ") + when(s.portrait.seen) + " at " + s.portrait.camera
            : "no picture is kept",
        ),
      ),
      button("Take back", press, {onclick: () => takeBack(s)}),
    );
  return make(
    "article",
    {className: "question", "aria-labelledby": "question-title"},
    make("h2", {id: "question-title", tabIndex: -1}, "Which of these is wrong?"),
    make(
      "p",
      {className: "soft"},
      "These two faces look like one person and cannot both be right: the distance between them is " +
        c.distance.toFixed(2) +
        "." +
        (c.pairs > 1 ? " There are " + many(c.pairs, "such pair") + " of these two." : ""),
    ),
    make("div", {className: "sides"}, side(c.a, "1"), side(c.b, "2")),
  );
}

// takeBack takes a label back, and asks first where the person would go with it.
async function takeBack(s) {
  const person = known.find((p) => p.name === s.name);
  const last = !s.not && person && person.faces === 1;
  if (
    last &&
    !(await ask(
      "This is the only face that " +
        s.name +
        " was enrolled with. They and all that was learned of them will be forgotten.",
      "Forget them",
    ))
  )
    return;
  await tell("unlabel", {face: s.face, name: s.name, not: s.not}, "The face is taken back.");
}

const meta = (q) => {
  if (q.kind === "stranger") {
    const g = q.stranger,
      camera = g.faces.at(-1)?.camera;
    return (
      "Seen " +
      (g.visits === 1 ? "once" : g.visits + " times") +
      ", last " +
      when(g.last) +
      (camera ? " at " + camera : "")
    );
  }
  const s = q.sighting;
  return s.camera + ", " + when(s.first) + (s.live ? ", still there" : " to " + clock(s.last));
};

const draw = {
  stranger: (q) => drawStranger(q.stranger),
  still: (q) => drawStill(q.sighting),
  conflict: (q) => drawConflict(q.conflict),
};

// same tells two states of a question apart, of which the pictures or the answers differ.
const same = (q) =>
  JSON.stringify(
    q.kind === "stranger" ? [q.key, q.stranger.best, known.map((p) => p.name)] : q.kind === "conflict" ? q : q.key,
  );

function render(focus) {
  show($("position"), questions.length ? at + 1 + " of " + questions.length : "");
  $("steps").hidden = questions.length < 2;
  const box = $("question"),
    q = current();
  if (!q) {
    if (!box.querySelector(".empty"))
      box.replaceChildren(make("div", {className: "empty"}, icon("inbox"), make("p", {}, "No question is open.")));
    return;
  }
  const old = box.firstChild,
    busy =
      key === q.key &&
      old &&
      (old.querySelector("details[open],.panel:not([hidden])") ||
        (old.contains(document.activeElement) && document.activeElement.matches("input,select")));
  if (old?.dataset.text !== same(q) && !busy) {
    const held = old && old.contains(document.activeElement);
    const fresh = draw[q.kind](q);
    fresh.dataset.text = same(q);
    box.replaceChildren(fresh);
    if (key !== q.key && (held || focus)) fresh.querySelector("h2").focus();
    else if (held) fresh.querySelector("h2").focus();
  }
  key = q.key;
  const line = box.querySelector(".meta");
  if (line && line.textContent !== meta(q)) line.textContent = meta(q);
}

// refresh takes in the questions that are open. The one that is shown stays; where it is answered, the next one comes.
export async function refresh(now, all) {
  known = now.known;
  strangers = await get("strangers");
  questions = all;
  if (wanted) {
    key = wanted;
    wanted = "";
  }
  const found = questions.findIndex((q) => q.key === key);
  const answered = found < 0 && key !== "";
  at = found >= 0 ? found : Math.min(at, Math.max(0, questions.length - 1));
  render(answered && document.activeElement === document.body);
  const ignored = strangers.filter((g) => g.ignored);
  $("ignored").hidden = ignored.length === 0;
  show($("ignored").querySelector("summary"), many(ignored.length, "person", "people") + " ignored");
  keyed(
    $("ignored").querySelector("ul"),
    ignored,
    (g) => g.id,
    (g) =>
      make(
        "li",
        {},
        face(g.best[0], "Ignored person " + g.id),
        make(
          "div",
          {},
          make("h3", {}, "Person " + g.id),
          make("p", {className: "soft small"}, "last seen " + when(g.last)),
          make(
            "button",
            {type: "button", onclick: () => tell("ignore", {group: g.id, ignored: false}, "They are reported again.")},
            "No longer ignore",
          ),
        ),
      ),
  );
}

// open shows the question of that key.
export function open(which) {
  wanted = which;
}

function step(by) {
  if (questions.length < 2) return;
  at = (at + by + questions.length) % questions.length;
  key = "";
  $("question").replaceChildren();
  render(true);
}

$("previous").onclick = () => step(-1);
$("next").onclick = () => step(1);

// A finger that goes sideways skips. Pictures and buttons stay where they are.
let from = null;
$("question").addEventListener("pointerdown", (e) => {
  from = e.pointerType === "touch" ? [e.clientX, e.clientY] : null;
});
$("question").addEventListener("pointerup", (e) => {
  if (!from) return;
  const [x, y] = [e.clientX - from[0], e.clientY - from[1]];
  from = null;
  if (Math.abs(x) > 70 && Math.abs(x) > 2 * Math.abs(y)) step(x < 0 ? 1 : -1);
});

// Single keys can be switched off: who speaks to a computer types by accident.
const keys = $("keys");
try {
  keys.checked = localStorage.getItem("keys") !== "off";
} catch {
  keys.checked = true; // the browser keeps nothing
}
const mark = () => document.body.classList.toggle("nokeys", !keys.checked);
mark();
keys.onchange = () => {
  mark();
  try {
    localStorage.setItem("keys", keys.checked ? "on" : "off");
  } catch {
    toast("This browser keeps no settings: your choice holds until the page is closed.");
  }
};
document.addEventListener("keydown", (e) => {
  const view = document.querySelector("[data-view=inbox]");
  if (e.target.matches("input[type=text],input[type=search],select") && e.key === "Escape") e.target.blur();
  if (
    view.hidden ||
    !keys.checked ||
    e.ctrlKey ||
    e.metaKey ||
    e.altKey ||
    $("ask").open ||
    e.target.matches("input:not([type=checkbox]),select,textarea")
  )
    return;
  const k = e.key.toLowerCase();
  if (k === "j" || e.key === "ArrowRight") step(1);
  else if (k === "k" || e.key === "ArrowLeft") step(-1);
  else {
    const target = /^[a-z0-9]$/.test(k) && view.querySelector(`#question [data-press="${k}"]`);
    if (!target) return;
    if (target.matches("input")) target.focus();
    else target.click();
  }
  e.preventDefault();
});
