// Templates, times and words that all views share.

import {html, nothing, render, svg} from "./lit/lit-html.js";
import {repeat} from "./lit/directives/repeat.js";
export {html, nothing, render, repeat, svg};

export const $ = (id) => document.getElementById(id);

let draw = () => {},
  due = false;

// onUpdate sets what draws the page.
export const onUpdate = (f) => (draw = f);

// update draws the page anew, once for all that has just changed.
export function update() {
  if (due) return;
  due = true;
  queueMicrotask(() => {
    due = false;
    draw();
  });
}

// keyed is a part that is made anew, with what was typed into it, where its key is another one.
export const keyed = (key, part) => repeat([key], (k) => k, () => part);

export const icon = (name) => html`<svg aria-hidden="true"><use href=${"#i-" + name}></use></svg>`;

export const run = document.documentElement.dataset.run; // numbers of pictures may begin anew with the next one
export const looks = "looks" in document.documentElement.dataset; // the token of this visitor changes nothing
export const clipPicture = (sighting, n) => "clip/" + sighting + "/" + n + "?run=" + run;

const there = (e) => (e.target.hidden = false);
const missing = (e) => (e.target.hidden = true);

// image is a picture that is not shown where there is none.
export const image = (src, alt) => html`<img alt=${alt} src=${src} @load=${there} @error=${missing}>`;

// face is the picture of a face, or a drawing where there is none.
export const face = (id, alt, src) => html`<div class="face">${icon("face")}${
  id ? image(src || "face/" + id + "?run=" + run, alt) : html`<span class="skip">${alt}: no picture</span>`
}</div>`;

// portrait is the picture of a stored face.
export const portrait = (p, alt) => face(p.face || p.learned, alt, p.learned ? "learned/" + p.learned : "");

// button is a button, which a single key may press, too.
export const button = (text, click, type = "", more = {}) => html`<button type="button" class=${type}
  id=${more.id || nothing} data-press=${more.key || nothing} ?disabled=${more.disabled} title=${more.title || nothing}
  aria-label=${more.label || nothing} aria-expanded=${more.expanded ?? nothing} @click=${click}>${text}${
    more.key ? html` <kbd aria-hidden="true">${more.key.toUpperCase()}</kbd>` : ""}</button>`;

// pick is a picture, with a line below it, that can be chosen.
export const pick = (picture, under, click, more = {}) => html`<li><button type="button" class="bare pick"
  aria-pressed=${more.pressed ?? nothing} aria-expanded=${more.expanded ?? nothing} @click=${click}>${picture}${
    under ? html`<span class="under">${under}</span>` : ""}</button></li>`;

// best are the pictures by which somebody is known best.
export const best = (ids, alt) => html`<ul class="best">${ids.map(
  (id, i) => html`<li>${face(id, alt + ", picture " + (i + 1))}</li>`)}</ul>`;

// naming is a form that asks for a name.
export const naming = (label, button, say, type = "main") => html`<form class="answer" @submit=${async (e) => {
  e.preventDefault();
  const form = e.target,
    input = form.querySelector("input"),
    name = input.value.trim();
  if (!name) return;
  input.blur();
  if (await say(name)) form.reset();
}}><input type="text" required maxlength="100" autocomplete="off" autocapitalize="words" aria-label=${label}
  placeholder="Name" list="names" data-press="n"><button class=${type}>${button}</button></form>`;

const language = "en-GB"; // the words of the page are English
const time = (more) => (t) =>
  new Date(t).toLocaleTimeString(language, {hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...more});
export const clock = time({}),
  exact = time({second: "2-digit"});

// dayKey is the same for two times of one day of this browser's: 2026-11-25.
export function dayKey(t) {
  const d = new Date(t),
    two = (n) => String(n).padStart(2, "0");
  return d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate());
}

// midnight is the beginning of a day, or of one so many days later.
export function midnight(key, days = 0) {
  const d = new Date(key + "T00:00");
  d.setDate(d.getDate() + days);
  return d;
}

export function day(t) {
  const today = dayKey(Date.now());
  if (dayKey(t) === today) return "Today";
  if (dayKey(t) === dayKey(midnight(today, -1))) return "Yesterday";
  const date = new Date(t);
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString(language, {weekday: "long", day: "numeric", month: "long", year: year});
}

export const when = (t) =>
  (dayKey(t) === dayKey(Date.now()) ? "" : day(t).replace(/^Yesterday$/, "yesterday") + " ") + clock(t);
// until says until when something was, and nothing for what was over within a minute.
export const until = (s, live) => (s.live ? live : clock(s.first) === clock(s.last) ? "" : " to " + clock(s.last));
// span says from when to when.
export const span = (s) => when(s.first) + until(s, ", still in view");

export const many = (n, one, more) => n + " " + (n === 1 ? one : more || one + "s");

export const personLink = (name) => "#person/" + encodeURIComponent(name);

// cut returns a name that fits into a line; titles have all of it. One that is written from right to left gets marks
// that keep it apart from the words around it.
export function cut(name) {
  const short = name.replace(/^(.{39}).{2,}$/su, "$1…");
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(short) ? "\u2068" + short + "\u2069" : short;
}

// sentence returns text as one.
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.?!…]$/.test(text) ? "" : ".");

// list joins names as a sentence does.
export const list = (names) =>
  names.length < 2 ? names.join("") : names.slice(0, -1).join(", ") + " and " + names.at(-1);
