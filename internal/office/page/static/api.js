// What is asked of the office and said to it. All paths are relative: the page can be below any path of a server.

import {$, button, cut, html, many, render, run, sentence, update} from "./dom.js";

export const query = (path, values) =>
  path + "?" + new URLSearchParams(Object.entries(values).filter(([, v]) => v !== "" && v !== undefined));

// data is what is known of the office: who is here, what each camera sees, and lists that are asked for when a view
// shows them and they have changed.
export const data = {now: null, cameras: []};
const paths = {
  people: "people",
  sightings: query("sightings", {n: 100}),
  inbox: "inbox",
  strangers: "strangers",
  corrections: query("corrections", {n: 25}),
  sinks: "sinks",
  events: "", // a view asks for its own
};
const stale = new Set(Object.keys(paths));
for (const l of stale) data[l] = [];

// need fetches those lists that have changed, and returns whether any has.
export async function need(lists) {
  const gone = lists.filter((l) => stale.delete(l));
  const fetching = gone.map(async (l) => {
    try {
      if (paths[l]) data[l] = await get(paths[l]);
    } catch (e) {
      stale.add(l);
      throw e;
    }
  });
  await Promise.all(fetching);
  return gone.length > 0;
}

let source = null,
  live = false,
  retry = 0;

// listen hears of what changes; live, also of where each face is.
export function listen(wanted, heard) {
  if (source && live === wanted) return;
  source?.close();
  clearTimeout(retry);
  live = wanted;
  source = new EventSource("api/changes" + (live ? "?live=true" : ""));
  source.onmessage = (m) => {
    const c = JSON.parse(m.data);
    data.now = c.now || data.now;
    data.questions = c.questions;
    data.proxy = c.proxy;
    if (c.run !== run) location.reload(); // the office has been started anew
    for (const v of c.views || []) {
      const i = data.cameras.findIndex((x) => x.camera === v.camera);
      data.cameras[i < 0 ? data.cameras.length : i] = v;
    }
    for (const l of c.stale || []) stale.add(l);
    if (stale.has("inbox")) stale.add("strangers");
    heard();
  };
  source.onerror = async () => {
    const closed = source?.readyState === EventSource.CLOSED; // by an answer, and not by a lost connection
    try {
      await get("sinks");
    } catch (e) {
      silent(e);
    }
    if (closed) retry = setTimeout(() => (deaf(), listen(wanted, heard)), 5000);
  };
}

// deaf hears no more.
export function deaf() {
  source?.close();
  source = null;
}

// answer asks the office, and returns its answer; the error of a refusal has a status.
async function answer(path, request) {
  const r = await fetch("api/" + path, request);
  if (r.status === 401) location.href = "login";
  if (r.ok) return r.json();
  throw Object.assign(new Error((await r.text()).trim()), {status: r.status});
}

export const get = (path) => answer(path, {cache: "no-store"});

// pages returns a list of n entries that grows by older ones when somebody asks for them.
export function pages(list, n) {
  let older = [],
    more = true; // there may be others
  return {
    all: () => data[list].concat(older.filter((x) => !(x.id >= data[list].at(-1)?.id))),
    more: () => more && data[list].length === n,
    async ask() {
      const some = await get(query(list, {before: this.all().at(-1).id, n: n}));
      older = older.concat(some);
      more = some.length === n;
      update();
    },
  };
}

let again = async () => {};

// afterwards sets what is done when something was said.
export const afterwards = (f) => (again = f);

const post = (path, what) =>
  answer(path, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(what)});

let last = {at: 0},
  twice = false; // the last click was the second one of a double click
document.addEventListener("click", (e) => {
  twice = e.detail > 0 && e.timeStamp - last.at < 500 && Math.hypot(e.clientX - last.x, e.clientY - last.y) < 9;
  last = {at: e.timeStamp, x: e.clientX, y: e.clientY};
}, true);

// act does something of which somebody is told, and shows what else it has changed. It returns the answer, or null. The
// second click of a double click may be on the next question, and says nothing.
async function act(f) {
  if (twice && performance.now() - last.at < 500) return null;
  try {
    const came = await f();
    trouble("");
    return came;
  } catch (e) {
    trouble(e.message);
    return null;
  } finally {
    for (const l of Object.keys(paths)) stale.add(l);
    await again();
  }
}

const undoable = (said) => (said.regret ? [{regret: said.regret}] : said.correction?.can_undo ? [said.correction] : []);

// tell says something to the office. It returns the answer, or null.
export const tell = (path, what, done) =>
  act(async () => {
    const said = await post(path, what);
    toast(typeof done === "string" ? done : done(said), undoable(said));
    return said;
  });

// name says who groups of unknown faces are, and asks where the faces look like somebody else.
export const name = (groups, who) =>
  act(async () => {
    const said = [];
    for (const group of groups) {
      const what = {group: group, name: who};
      try {
        said.unshift(...undoable(await post("name", what)));
      } catch (e) {
        if (!e.status || !/look like/.test(e.message)) throw e;
        if (await ask(sentence(e.message), "Name them " + who + " all the same", "Do not name them"))
          said.unshift(...undoable(await post("name", {...what, force: true})));
      }
    }
    if (said.length) toast("Named " + who + ".", said);
    return said.length > 0;
  });

// each says the same of several groups.
export const each = (path, groups, what, done) =>
  act(async () => {
    const said = [];
    for (const g of groups) said.unshift(...undoable(await post(path, what(g))));
    toast(done, said);
    return true;
  });

// recognise asks who is in a picture, and whether they were here before. It returns the faces, or null.
export const recognise = (file) =>
  act(async () => {
    const picture = {method: "POST", headers: {"Content-Type": file.type}, body: file};
    return (await answer("recognise?before=true", picture)).faces;
  });

// enrol sends pictures of somebody, and asks about those that look like somebody else. It returns what came of each
// picture, or null.
export const enrol = (path, values, files, who) =>
  act(async () => {
    const send = (some, more) => {
      const form = new FormData();
      for (const f of some) form.append("picture", f);
      return answer(query(path, {...values, ...more}), {method: "POST", body: form});
    };
    let {pictures, correction} = await send(files);
    const doubtful = [...pictures.keys()].filter((i) => /^it looks like/.test(pictures[i].wrong));
    const text = [...new Set(doubtful.map((i) => pictures[i].wrong.replace(/^it/, "A picture")))].join("; ");
    if (doubtful.length && (await ask(sentence(text), "Enrol it as " + who + " all the same", "Do not enrol it"))) {
      const forced = await send(doubtful.map((i) => files[i]), {force: true});
      doubtful.forEach((i, n) => (pictures[i] = forced.pictures[n]));
      correction = forced.correction || correction;
    }
    const n = pictures.filter((p) => p.enrolled).length;
    if (n) toast(n + " of " + many(files.length, "picture") + " of " + cut(who) + " enrolled.", undoable({correction}));
    return pictures;
  });

// correct says that a sighting was somebody else.
export async function correct(sighting, was, is) {
  const done = is ? "That was " + is + "." : "That was not " + was + ", and will not be again.";
  return (await tell("correct", {sighting: sighting, is: is, was: was}, done)) !== null;
}

// undo takes corrections back, and forgets those not who were to be forgotten.
export const undo = (...corrections) =>
  act(async () => {
    const said = [];
    for (const c of corrections)
      said.unshift(...undoable(await (c.regret ? post("keep-after-all", c) : post("undo", {id: c.id}))));
    toast(corrections[0].regret ? "Not forgotten." : "Undone.", said);
    return true;
  });

let leaves = 0;

// trouble shows what went wrong, until something goes well, somebody closes it, or half a minute has passed.
export function trouble(text) {
  const box = $("trouble");
  clearTimeout(leaves);
  delete box.dataset.silent;
  box.firstChild.textContent = text && sentence(text);
  box.hidden = !text;
  if (!text) return;
  if (sheetIsOpen()) closeSheet(); // it lies over the text
  box.scrollIntoView({block: "nearest"});
  leaves = setTimeout(() => trouble(""), 30000);
}

$("trouble").lastChild.onclick = () => {
  trouble("");
  $("content").focus();
};

// silent says whether the office does not answer.
export function silent(e) {
  const box = $("trouble");
  if (e) {
    trouble("the office does not answer: " + e.message);
    clearTimeout(leaves);
    box.dataset.silent = "yes";
  } else if (box.dataset.silent) {
    trouble("");
  }
}

let fades = 0;

// toast says for a while what was done, with a button that undoes it where that can be.
export function toast(text, corrections = []) {
  const box = $("toasts");
  const close = () => {
    clearTimeout(fades);
    const held = box.contains(document.activeElement);
    render("", box);
    if (held) $("content").focus();
  };
  const wait = () => {
    const over = () => (box.querySelector(":hover,:focus-within") ? wait() : close());
    fades = setTimeout(over, corrections[0]?.regret ? 30000 : corrections.length ? 15000 : 7000);
  };
  clearTimeout(fades);
  render(
    html`<div class="toast card row"><span class="two">${text}</span>${
      corrections.length ? button("Undo", () => (close(), undo(...corrections)), "quiet") : ""}${
      button("✕", close, "quiet", {label: "Close this message"})}</div>`,
    box,
  );
  wait();
}

let asked = Promise.resolve(); // the question before

// ask asks for a decision, and returns whether it is yes. Questions wait for one another.
export const ask = (...question) => (asked = asked.then(() => decide(...question)));

// decide takes no key for an answer that is still held down since before the question.
function decide(text, yes, no = "Cancel") {
  const dialog = $("ask");
  render(
    html`<form method="dialog" @keydown=${(e) => e.repeat && e.preventDefault()}><p id="ask-text">${text}</p><div class="row"><button value="">${no}</button
      ><button value="yes" class="main">${yes}</button></div></form>`,
    dialog,
  );
  dialog.returnValue = "";
  dialog.showModal();
  dialog.querySelector(".main").focus();
  return new Promise((done) => {
    dialog.onclose = () => done(dialog.returnValue === "yes");
  });
}

let content = null; // of the sheet

// sheet shows a sheet before the view until somebody closes it; its content is drawn anew with the view.
export function sheet(f, label) {
  content = f;
  const dialog = $("sheet");
  dialog.setAttribute("aria-label", label);
  drawSheet();
  if (!dialog.open) dialog.showModal();
}

export const sheetIsOpen = () => content !== null;

export function closeSheet() {
  content = null;
  $("sheet").close();
  update();
}

$("sheet").onclose = closeSheet; // by a key
$("sheet").onclick = (e) => {
  if (e.target === $("sheet")) closeSheet(); // beside it
};

export function drawSheet() {
  if (!content) return;
  const inside = content();
  if (!inside) return closeSheet();
  const close = button("✕", closeSheet, "quiet close", {label: "Close"});
  render(html`<div class="inside">${close}${inside}</div>`, $("sheet"));
}
