// What the cameras see.

import {data} from "./api.js";
import {drawArea, outlines} from "./area.js";
import {button, cut, exact, html, repeat, sentence, update, when} from "./dom.js";

// somebody is whether anybody is in a camera's view.
export const somebody = (c) => c.up && c.seen.length > 0;

// pictures has for each camera the address of its picture, when it was taken and asked for, and whether the next one is
// on its way.
const pictures = new Map();
const often = 1000,
  seldom = 10000; // milliseconds between two requests, with somebody in view and without
const old = 5000, // milliseconds after which a picture shows its time
  longest = 60000; // for a picture to come

// look asks for pictures of the cameras that a view shows: often where somebody is, and never for the next one while
// the last is still coming, however slow the line is.
export function look(cameras) {
  if (document.hidden) return;
  for (const c of cameras) {
    const p = pictures.get(c.camera) || {at: 0};
    if (Date.now() - p.taken > old) update();
    if (!c.up || p.coming || Date.now() - p.at < (!p.src || somebody(c) ? often : seldom) - 50) continue;
    pictures.set(c.camera, p);
    bring(c.camera, p);
  }
}

async function bring(camera, p) {
  p.coming = true;
  p.at = Date.now();
  try {
    const r = await fetch("camera/" + encodeURIComponent(camera),
      {cache: "no-store", signal: AbortSignal.timeout(longest)});
    const there = r.status === 200 && URL.createObjectURL(await r.blob()),
      header = (name) => Date.parse(r.headers.get(name));
    if (r.ok) {
      if (p.src) URL.revokeObjectURL(p.src);
      p.src = there || "";
      p.taken = Date.now() - Math.max(0, header("Date") - header("Last-Modified") || 0); // clocks may differ
    }
  } catch {
    // the last picture stays, with its time
  }
  p.coming = false;
  update();
}

// age is the time over a picture that is not of this moment.
const age = (p) => (Date.now() - p.taken > old ? html`<time class="mark">${exact(p.taken)}</time>` : "");

const label = (s) => s.name || (s.ignored ? "ignored" : s.group ? "unknown " + s.group : "?");

// box is the frame around a face.
function box(s, [width, height]) {
  const [left, top, right, bottom] = s.box;
  const part = (n, of) => ((100 * n) / of).toFixed(2) + "%";
  const style = `left:${part(left, width)};top:${part(top, height)};width:${part(right - left, width)};height:${part(
    bottom - top, height)}`;
  return html`<div class=${s.name ? "box known" : "box"} title=${s.reason || ""} .style=${style}>
    <b>${label(s)}</b></div>`;
}

const who = (s) =>
  (cut(s.name) || "somebody unknown") +
  (s.trust === "likely" ? ", not confirmed" : "") +
  (s.reason ? " (" + s.reason + ")" : "");

const state = (c) =>
  c.up ? "connected since " + when(c.since)
  : c.error ? "down since " + when(c.since) + ": " + sentence(c.error) + " It is tried again."
  : "ended";

function figure(c, large) {
  const p = (c.up && pictures.get(c.camera)) || {};
  const seen = p.src && c.size[0] ? c.seen.filter((s) => s.box[2] > 0) : [];
  const names = c.up ? c.seen.map(who).join(", ") || "nobody" : c.error ? "down" : "ended";
  const none = c.up ? (somebody(c) || !p.at ? "…" : "No picture") : c.error ? sentence(c.error) : "No picture";
  return html`<figure class="camera card"><div class="frame" .style=${c.size[0] ? "aspect-ratio:" + c.size.join("/") : ""}>${
    p.src ? html`<img alt=${"What " + c.camera + " sees"} src=${p.src}>${age(p)}` : html`<div class="none">${none}</div>`}
    ${large && c.zones && p.src ? outlines(c.zones) : ""}${seen.map((s) => box(s, c.size))}</div>
    <figcaption><b>${c.camera}</b> <span class="two" title=${names}>${names}</span>${
      large ? html`<dl class="facts"><dt>State</dt><dd>${state(c)}</dd>
        <dt>Last</dt><dd>${c.last ? cut(c.last.name || "somebody unknown") + ", " + when(c.last.at) : "nobody since the start"}</dd>
        <dt>Speed</dt><dd>${c.up ? c.rate.toFixed(1) + " frames a second" : "none"}</dd>
        <dt>Frames</dt><dd>${c.frames} looked at, ${c.dropped} skipped</dd></dl>
        ${p.src ? button("Mask or zone …", () => drawArea(c.camera, c.size, () => p.src), "quiet") : ""}` : ""}</figcaption></figure>`;
}

export const figures = (cameras, large) => repeat(cameras, (c) => c.camera, (c) => figure(c, large));

export const title = "Cameras",
  needs = [],
  live = true;
export const each = () => look(data.cameras);
export const draw = () => html`<h1 tabindex="-1">Cameras</h1>
  ${data.cameras.length ? "" : html`<p class="soft">There is no camera.</p>`}
  <div id="camera-list" class="cameras large">${figures(data.cameras, true)}</div>`;
