// One question at a time, or all strangers at once: who is this, is it still them, which of these labels is wrong?

import {ask, correct, data, each as forEach, get, name, query, tell} from "./api.js";
import {$, best, button, cut, face, html, icon, keyed, many} from "./dom.js";
import {naming, personLink, pick, portrait, repeat, span, update, when} from "./dom.js";
import {showVisit} from "./visit.js";

export const title = "Inbox",
  needs = ["inbox", "strangers", "people", "sightings", "corrections"];

let at = 0,
  key = "", // of the question that is shown
  wanted = "", // the question of the address
  held = false, // the question that was answered had the focus
  typing = false; // it was answered by a name
const chosen = new Set(); // strangers in the grid

// open shows the question of that key, or the grid.
export function open(which) {
  wanted = which;
  typing = false;
  chosen.clear();
}

const probably = (g, text) =>
  button(
    html`<span class="clip">${text}${g.probably.name}</span> (${g.probably.distance.toFixed(2)})`,
    () => name([g.id], g.probably.name),
    "main",
    {key: "p"},
  );

// latest are the people who are known, those first who were seen last: a stranger in the inbox is likely one of them.
const latest = () => [...data.people].sort((a, b) => (b.last || "").localeCompare(a.last || ""));

const chips = (say) => html`<ul class="chips row" aria-label="People who are known">${latest()
  .slice(0, 12)
  .map((p) => html`<li>${button(html`<span class="clip">${p.name}</span>`, () => say(p.name))}</li>`)}</ul>`;

const erased = "They are erased in 30 seconds.";

// whole are the sightings of a stranger, which show more of them than the face.
const whole = (g) => data.sightings.filter((s) => s.group === g.id && !s.name);

let same = ""; // the question of which the others are shown

const others = (g, all) => html`<div class="same"><h3>Which of these is the same person?</h3>
  <ul class="faces medium">${all.map((o) => pick(face(o.best[0], "Unknown person " + o.id),
    `Person ${o.id}, ${when(o.last)}`, () => tell("merge", {into: o.id, from: g.id}, "They are one person now.")))}
  </ul></div>`;

function stranger(g, k) {
  const rest = data.strangers.filter((o) => o.id !== g.id && !o.ignored),
    camera = g.faces.at(-1)?.camera,
    seen = whole(g),
    film = seen.find((s) => s.clip),
    say = (who) => name([g.id], who),
    typed = (who) => {
      typing = true;
      return say(who);
    };
  const toggle = () => {
    same = same === k ? "" : k;
    update();
    queueMicrotask(() => $("question").querySelector(".same button")?.focus());
  };
  const visits = () => showVisit(() => whole(g), (film || seen[0]).id);
  const ignore = () => tell("ignore", {group: g.id, ignored: true}, "They are ignored from now on.");
  const forget = () => tell("forget-stranger", {group: g.id, wait: true}, erased);
  return html`<h2 id="question-title" tabindex="-1">Who is this?</h2>
    <p class="soft">Seen ${g.visits === 1 ? "once" : g.visits + " times"}, last ${when(g.last)}${
      camera ? " at " + camera : ""}</p>
    ${seen.length ? button(film ? "The whole picture" : "Their visits", visits, "quiet") : ""}
    ${best(g.best, "Unknown person " + g.id)}
    ${g.probably ? html`<p class="row">${probably(g, "Probably ")}</p>` : ""}
    ${naming("Who is unknown person " + g.id + "?", "Save", typed)}
    ${data.people.length ? chips(say) : ""}
    <div class="actions row">${rest.length ? button("Same as …", toggle, "", {key: "m", expanded: same === k}) : ""}
      ${button("Ignore", ignore, "", {key: "i", title: "No event and no new faces of them from now on"})}
      ${button("Forget", forget, "bad", {title: "Erased after 30 seconds, until which it can be undone"})}</div>
    ${same === k ? others(g, rest) : ""}${split(g)}`;
}

// split shows all faces of a stranger, and takes some of them for somebody else.
function split(g) {
  const picked = (form) => [...form.querySelectorAll("input:checked")].map((i) => Number(i.value));
  const change = (e) => {
    const n = picked(e.currentTarget).length;
    e.currentTarget.querySelector("button").disabled = n === 0 || n === g.faces.length;
  };
  const submit = async (e) => {
    e.preventDefault();
    const form = e.currentTarget;
    if (await tell("split", {group: g.id, faces: picked(form)}, "The chosen faces are somebody else now.")) form.reset();
  };
  const one = (f) => html`<li><label class="tile"><input type="checkbox" value=${f.id}
    aria-label=${"Choose the face of " + when(f.at) + " at " + f.camera}>${face(f.id, "")}</label></li>`;
  return html`<details><summary>All ${many(g.faces.length, "picture")}</summary>
    <form @change=${change} @submit=${submit}><ul class="faces">${repeat(g.faces, (f) => f.id, one)}</ul>
      <button disabled>The chosen faces are somebody else</button></form></details>`;
}

const asked = new Map(); // by sighting: the faces that a yes would enrol; null: it can no longer be confirmed
const known = new Map(); // by name: some faces with pictures, the enrolled ones first, and then those that are next to them

async function fetchStill(s) {
  asked.set(s.id, []);
  const [faces, person] = await Promise.all([
    get(query("confirmable", {sighting: s.id})).catch(() => null),
    get(query("person", {name: s.name})).catch(() => ({faces: []})), // the question stands without them
  ]);
  asked.set(s.id, faces);
  const own = person.faces.filter((f) => !f.not && (f.portrait.face || f.portrait.learned));
  known.set(s.name, own.sort((a, b) => a.hops - b.hops).slice(0, 4));
  update();
}

// still asks whether somebody in view is still the person: it shows the faces that a yes would enrol, those far from the
// enrolled ones first, and some of the enrolled ones.
function still(s) {
  if (!asked.has(s.id)) fetchStill(s);
  const faces = asked.get(s.id);
  if (!faces) return html`<p>This sighting can no longer be confirmed.</p>`;
  const yes = () => {
    const what = {sighting: s.id, faces: faces.map((f) => f.face)};
    asked.delete(s.id);
    return tell("confirm", what, "These faces of " + cut(s.name) + " are enrolled now.");
  };
  const shown = (picture, under) => html`<li>${picture}<span class="under soft small">${under}</span></li>`;
  const old = known.get(s.name) || [],
    them = s.name.length > 30 ? "them" : s.name;
  return html`<p>Only learned faces support this name. Yes enrols these faces, so the office follows a beard, new glasses
      or older age.</p>
    <div class="confirming"><h3>To be enrolled, and how far each is from the enrolled faces</h3>
      <ul class="best few">${faces.map((f, i) => shown(face(f.face, `Face ${i + 1} to be enrolled`), f.apart.toFixed(2)))}</ul>
      <h3>Known</h3>
      <ul class="best few">${old.map((f) => shown(portrait(f.portrait, "Known face of " + s.name),
        f.learned ? "learned" : "enrolled"))}</ul></div>
    <div class="actions row">${button("Yes, all of these are " + them, yes, "main", {key: "y", disabled: !faces.length})}
      ${button("No", () => correct(s.id, s.name, ""), "", {key: "x"})}</div>`;
}

const stillQuestion = (s) => html`<h2 id="question-title" class="two" tabindex="-1">Still ${s.name}?</h2>
  <p class="soft">${s.camera}, ${span(s)}. <a href=${personLink(s.name)}>Their page</a></p>${still(s)}`;

const whose = (s) => (s.not ? "Not " + s.name : s.name);

// pictured is the picture of one of the two faces, or where none is kept that of the person.
function pictured(s) {
  const {portrait: p} = s,
    other = p.face || s.not ? 0 : data.people.find((x) => x.name === s.name)?.face,
    under = p.face ? "seen " + when(p.seen) + (p.camera ? " at " + p.camera : "") : "no picture of this face is kept";
  return html`${face(p.face || other, whose(s))}<p class="soft small">${under}${other ? "; this is another one" : ""}</p>`;
}

function conflict(c) {
  const one = c.a.name === c.b.name,
    pairs = c.pairs > 1 ? ` There are ${c.pairs} such pairs of these two; one answer is for all.` : "";
  const side = (s, o, key) => html`<div class="card"><h3 class="two">${whose(s)}</h3>
    ${pictured(s)}${
    button("This face is wrong", () => takeBack(s, o), "", {key: key})}</div>`;
  const same = () => tell("rename", {from: c.b.name, to: c.a.name}, cut(c.b.name) + " is " + cut(c.a.name) + " now.");
  const alike = () => tell("alike", {name: c.a.name, other: c.b.name}, "They are two people, and are not asked about again.");
  return html`<h2 id="question-title" tabindex="-1">${one ? "Which of these is wrong?" : "One person, or two?"}</h2>
    <p class="soft">These two faces look like one person: the distance between them is ${
      c.distance.toFixed(2)}.${pairs}</p>
    <div class="sides">${side(c.a, c.b, "1")}${side(c.b, c.a, "2")}</div>
    ${one ? "" : html`<div class="actions row">${button("They are one person", same, "", {key: "o"})}${
      button("Two people who look alike", alike, "", {key: "t"})}</div>`}`;
}

// takeBack takes the labels of one side back that contradict the other, and asks first where the person would go.
async function takeBack(s, o) {
  const person = data.people.find((p) => p.name === s.name);
  const text =
    "This is the only face that " +
    s.name +
    " was enrolled with. They and all that was learned of them will be forgotten.";
  if (!s.not && person?.faces === 1 && !(await ask(text, "Forget them"))) return;
  await tell("take-back", {face: s.id, against: o.id}, "The face is taken back.");
}

const question = {
  stranger: (q) => stranger(q.stranger, q.key),
  still: (q) => stillQuestion(q.sighting),
  conflict: (q) => conflict(q.conflict),
};

const strangers = () => data.inbox.filter((q) => q.kind === "stranger").map((q) => q.stranger);

// grid shows all strangers: those that are chosen get one name.
function grid() {
  const all = strangers(),
    ids = all.map((g) => g.id).filter((id) => chosen.has(id));
  const choose = (id) => (e) => {
    if (e.target.checked) chosen.add(id);
    else chosen.delete(id);
    update();
  };
  const done = (answer) => {
    if (answer) chosen.clear();
    update();
    return answer;
  };
  const say = async (who) => done(await name(ids, who));
  const ignore = async () =>
    done(await forEach("ignore", ids, (g) => ({group: g, ignored: true}), "They are ignored from now on."));
  const forget = async () => {
    if (await ask("Forget " + many(ids.length, "stranger") + "?", "Forget"))
      done(await forEach("forget-stranger", ids, (g) => ({group: g, wait: true}), erased));
  };
  const one = (g) => html`<li><label class="tile">
      <input type="checkbox" .checked=${chosen.has(g.id)} aria-label=${"Choose person " + g.id} @change=${choose(g.id)}>
      ${face(g.best[0], "Unknown person " + g.id)}${g.visits > 1 ? html`<span class="mark times">${g.visits}×</span>` : ""}
      <span class="soft small">${when(g.last)}</span></label>${g.probably ? probably(g, "") : ""}</li>`;
  return html`<ul class="wall" id="grid">${repeat(all, (g) => g.id, one)}</ul>
    ${all.length ? "" : html`<p class="soft">There are no strangers.</p>`}
    ${ids.length ? html`<div class="bottom card row"><b>${many(ids.length, "person", "people")} chosen</b>
      ${naming("Who are the chosen people?", "Name", say)}
      <div class="row">${button("Ignore", ignore)}${button("Forget", forget, "bad")}</div></div>` : ""}`;
}

// current finds the question that is shown. It stays; where it is answered, the next one comes.
function current() {
  const all = data.inbox,
    was = key;
  if (wanted && wanted !== "all") {
    key = wanted;
    if (all.some((q) => q.key === wanted)) wanted = ""; // the list may still come
  }
  const found = all.findIndex((q) => q.key === key);
  const focus = document.activeElement;
  if (found < 0 && focus?.matches("#question .answer input") && focus.value) {
    // Somebody else has answered it while a name was typed: the rest of the name belongs to no other question.
    wanted = key;
    held = true;
    return null;
  }
  at = found >= 0 ? found : Math.min(at, Math.max(0, all.length - 1));
  key = all[at]?.key || "";
  held ||= key !== was && (focus === document.body || $("question")?.contains(focus));
  return all[at];
}

const ignored = (g) => html`<li>${face(g.best[0], "Ignored person " + g.id)}<b>Person ${g.id}</b>
  <span class="soft small">last seen ${when(g.last)}</span>${
  button("No longer ignore", () => tell("ignore", {group: g.id, ignored: false}, "They are reported again."))}</li>`;

// closed says what became of a question that a link has named: messages are read late.
function closed() {
  const group = Number(wanted.match(/^stranger-(\d+)$/)?.[1]),
    said = data.corrections.find((c) => c.group === group && !c.undone);
  const what =
    said?.kind === "named" ? html`This was <a href=${personLink(said.name)}>${said.name}</a>.`
    : said?.kind === "ignored" ? "This stranger is ignored."
    : said?.kind === "forgot-group" ? "This stranger is forgotten."
    : "This question is not open any more.";
  return html`<div id="question" tabindex="-1"><article class="question card"><h2 id="question-title" tabindex="-1">${what}</h2>
    <p><a href="#inbox">The open questions</a></p></article></div>`;
}

function single(q) {
  const none = html`<div class="empty">${icon("inbox")}<p>No question is open.</p></div>`;
  const kbd = (k) => html`<kbd aria-hidden="true">${k}</kbd>`;
  const back = button(html`${icon("back")} Previous ${kbd("K")}`, () => step(-1), "", {id: "previous"}),
    next = button(html`Skip ${kbd("J")} ${icon("next")}`, () => step(1), "", {id: "next"}),
    article = () => html`<article class="question card" aria-labelledby="question-title">${question[q.kind](q)}</article>`;
  return html`<div id="question" tabindex="-1" @keydown=${press} @pointerdown=${down} @pointerup=${up}>${q ? keyed(q.key, article()) : none}</div>
    ${data.inbox.length > 1 ? html`<div id="steps" class="steps row">${back}${next}</div>` : ""}`;
}

export function draw() {
  const every = wanted === "all",
    q = every ? null : current(),
    missed = wanted && !every,
    gone = data.strangers.filter((g) => g.ignored);
  const other = html`<a href=${every ? "#inbox" : "#inbox/all"}>${every ? "One by one" : "Many at once"}</a>`;
  return html`<div class="title row"><h1 id="inbox-title" tabindex="-1">Inbox</h1>
      <p id="position" class="soft">${q && !missed ? at + 1 + " of " + data.inbox.length : ""}</p>${
      every || strangers().length > 1 ? other : ""}</div>
    ${every ? grid() : missed ? closed() : single(q)}
    ${gone.length ? html`<details id="ignored"><summary>${many(gone.length, "person", "people")} ignored</summary>
      <ul class="wall">${repeat(gone, (g) => g.id, ignored)}</ul></details>` : ""}`;
}

// after moves the focus to a new question where the old one had it.
export function after() {
  if (!held) return;
  held = false;
  const next = (typing && $("question")?.querySelector(".answer input")) || $("question-title");
  typing = false;
  next?.focus({preventScroll: true});
}

function step(by) {
  if (data.inbox.length < 2) return;
  at = (at + by + data.inbox.length) % data.inbox.length;
  wanted = "";
  key = data.inbox[at].key;
  held = true;
  update();
}

// A finger that goes sideways skips. Pictures and buttons stay where they are.
let from = null;
const down = (e) => {
  from = e.pointerType === "touch" ? [e.clientX, e.clientY] : null;
};
const up = (e) => {
  if (!from) return;
  const [x, y] = [e.clientX - from[0], e.clientY - from[1]];
  from = null;
  if (Math.abs(x) > 70 && Math.abs(x) > 2 * Math.abs(y)) step(x < 0 ? 1 : -1);
};

// A key presses the button that shows it while the focus is in the question, and not in a name: who speaks to a computer
// types by accident.
function press(e) {
  const box = e.currentTarget,
    k = e.key.toLowerCase(),
    by = {j: 1, arrowright: 1, k: -1, arrowleft: -1}[k];
  if (k === "escape") return box.focus();
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input:not([type=checkbox])")) return;
  const target = /^[a-z0-9]$/.test(k) ? box.querySelector(`[data-press="${k}"]`) : null;
  if (by) step(by);
  else if (target?.matches("input")) target.focus();
  else if (target) target.click();
  else return;
  e.preventDefault();
}
