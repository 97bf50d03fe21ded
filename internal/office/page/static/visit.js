// Sightings as pictures: a wall of faces that play, and a sheet behind each with what can be said of it.

import {closeSheet, correct, data, get, name, query, sheet, sheetIsOpen} from "./api.js";
import {button, clipPicture, cut, face, html, image, keyed, looks, many} from "./dom.js";
import {naming, personLink, pick, repeat, span, update, when} from "./dom.js";

// The film that plays: the pictures of a clip, two a second. They come as they are; the office encodes no video.
const film = {id: 0, at: 0, of: 0, timer: 0, hover: false};

// play plays the film of a sighting from its beginning, or goes on, until it is over.
function play(s, at = 0) {
  stop();
  Object.assign(film, {id: s.id, at: at, of: s.clip});
  film.timer = setInterval(() => {
    if (film.at + 1 === film.of || (!film.hover && !sheetIsOpen())) stop();
    else film.at++;
    update();
  }, 500);
  update();
}

function stop() {
  clearInterval(film.timer);
  film.timer = 0;
  update();
}

const calm = matchMedia("(prefers-reduced-motion: reduce)");

// player shows a film in the sheet.
export function player(s) {
  if (film.id !== s.id) {
    Object.assign(film, {id: s.id, at: 0, of: s.clip});
    if (!calm.matches) play(s);
  }
  const on = film.timer > 0;
  const seek = (e) => {
    stop();
    film.at = Number(e.target.value);
  };
  return html`<div class="film">${image(clipPicture(s.id, film.at), "The film at this place")}<div class="row">
    ${button(on ? "Pause" : "Play", () => (on ? stop() : play(s, film.at + 1 < s.clip ? film.at : 0)))}
    <input type="range" min="0" max=${s.clip - 1} .value=${String(film.at)} aria-label="Place in the film"
      @input=${seek}></div></div>`;
}

// faceOf is the picture of a sighting, or the best of those of a stranger.
export const faceOf = (s) => (s.group && asked(s)?.stranger.best[0]) || s.face;
const asked = (s) => data.inbox.find((q) => q.stranger?.id === s.group);

export const who = (s) => s.name || "Somebody unknown";
export const whose = (s) => s.name || (s.group ? "\n" + s.group : ""); // no name has a new line

// tile is the picture of a sighting, which plays under a mouse, and opens its sheet.
export function tile(s, caption, more, open, under) {
  const playing = film.id === s.id && film.timer;
  const hover = (e) => {
    film.hover = e.pointerType === "mouse";
    if (film.hover && s.clip) play(s);
  };
  const out = () => {
    film.hover = false;
    if (!sheetIsOpen()) stop();
  };
  return html`<li><button type="button" class="bare tile" @click=${open} @pointerenter=${hover} @pointerleave=${out}>${
    face(faceOf(s), who(s), playing ? clipPicture(s.id, film.at) : "")}${
    more > 1 ? html`<span class="mark times" aria-label=${more + " times"}>${more}×</span>` : ""}${
    s.clip ? html`<span class="mark plays" aria-hidden="true">▶</span>` : ""}
    ${caption || s.name ? html`<b class="two">${caption || s.name}</b>` : ""}
    <span class="soft small">${under || caption ? under || "" : when(s.last) + (s.live ? ", in view" : "")}</span></button></li>`;
}

// showVisit opens the sheet of sightings of one person; find returns those that are known now, the latest first.
export function showVisit(find, id) {
  let chosen = id;
  film.id = 0;
  sheet(() => {
    const all = find();
    const s = all.find((x) => x.id === chosen) || all[0];
    if (!s) return null;
    const choose = (x) => () => {
      chosen = x.id;
      update();
    };
    const one = (x) => pick(face(x.face, who(x)), when(x.first), choose(x), {pressed: x === s});
    const link = (name) => html`<a href=${personLink(name)} @click=${closeSheet}>${name}</a>`;
    return html`<h2 class="two">${s.name ? link(s.name) : who(s)}</h2>
      <p class="soft">${s.camera}, ${span(s)}</p>
      <div class="looks row">${s.clip ? player(s) : ""}${face(s.face, who(s))}</div>
      ${s.fixed || looks ? "" : keyed(s.id, s.name ? known(s) : unknown(s))}
      ${all.length > 1 ? html`<h3>${many(all.length, "time")} since ${when(all.at(-1).first)}</h3>
        <ul class="faces">${repeat(all, (x) => x.id, one)}</ul>` : ""}`;
  }, "A visit");
}

function known(s) {
  return html`${s.trust === "likely" ? html`<p>Recognised only by learned faces. <a href=${personLink(s.name)}
      @click=${closeSheet}>Still ${cut(s.name)}?</a></p>` : ""}
    <h3>This is not ${cut(s.name)}?</h3>
    <p>${button("It is somebody else", () => correct(s.id, s.name, ""))}</p>
    ${naming("Who is it, if not " + s.name + "?", "It is them", (n) => correct(s.id, s.name, n), "")}`;
}

function unknown(s) {
  const open = s.group && asked(s),
    all = html`<p><a href=${"#inbox/stranger-" + s.group} @click=${closeSheet}>All pictures of them</a></p>`;
  return html`<h3>Who is this?</h3>${naming(
    "Who is this, seen " + when(s.first) + " at " + s.camera + "?",
    "Save",
    (n) => (open ? name([s.group], n) : correct(s.id, "", n)),
  )}${open ? all : ""}`;
}

// openVisit opens the sheet of a visit: sightings of one person, which may be older than those that are known.
export async function openVisit(v) {
  const whole = {...v, fixed: true};
  let own = data.sightings.filter((s) => v.sightings.includes(s.id));
  if (own.length < v.sightings.length) {
    const some = await get(query("sightings", {before: whole.id + 1, n: 100}));
    own = some.filter((s) => v.sightings.includes(s.id));
  }
  const now = (s) => data.sightings.find((x) => x.id === s.id) || s;
  showVisit(() => (own.length ? own.map(now) : [whole]), whole.id);
}

// visitTile is the picture of a visit.
export const visitTile = (v, caption) => tile(v, caption, v.sightings.length, () => openVisit(v));
