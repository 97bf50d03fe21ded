// What the cameras see.

import {data} from "./api.js";
import {cut, html, image, nothing, repeat, sentence, update, when} from "./dom.js";

// somebody is whether anybody is in a camera's view.
export const somebody = (c) => c.up && c.seen.length > 0;

const pictures = new Map(); // by camera: the address of the picture, and when it was asked for
const often = 1000,
  seldom = 10000; // milliseconds between two pictures, with somebody in view and without

// look asks for pictures of the cameras that a view shows: often where somebody is.
export function look(cameras) {
  if (document.hidden) return;
  for (const c of cameras) {
    const p = pictures.get(c.camera) || {at: 0};
    if (!c.up || Date.now() - p.at < (p.missing || somebody(c) ? often : seldom) - 50) continue;
    const src = "camera/" + encodeURIComponent(c.camera) + "?" + Date.now();
    pictures.set(c.camera, {src: src, at: Date.now(), missing: p.missing ?? true});
    update();
  }
}

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
  const p = (c.up && pictures.get(c.camera)) || {missing: true};
  const seen = p.missing || !c.size[0] ? [] : c.seen.filter((s) => s.box[2] > 0);
  const names = c.up ? c.seen.map(who).join(", ") || "nobody" : c.error ? "down" : "ended";
  const done = (missing) => () => {
    p.missing = missing;
    update();
  };
  return html`<figure class="camera"><div class="frame" .style=${c.size[0] ? "aspect-ratio:" + c.size.join("/") : ""}>${
    p.src ? html`<img alt=${"What " + c.camera + " sees"} src=${p.src} ?hidden=${p.missing}
      @load=${done(false)} @error=${done(true)}>` : nothing}
    <div class="none">${p.missing ? (c.up ? "…" : c.error ? sentence(c.error) : "No picture") : ""}</div>
    ${seen.map((s) => box(s, c.size))}</div>
    <figcaption><b>${c.camera}</b> <span class="who" title=${names}>${names}</span>${
      large ? html`<dl class="facts"><dt>State</dt><dd>${state(c)}</dd>
        <dt>Speed</dt><dd>${c.up ? c.rate.toFixed(1) + " frames a second" : "none"}</dd>
        <dt>Frames</dt><dd>${c.frames} looked at, ${c.dropped} passed over</dd></dl>` : ""}</figcaption></figure>`;
}

export const figures = (cameras, large) => repeat(cameras, (c) => c.camera, (c) => figure(c, large));

export const title = "Cameras",
  needs = [],
  live = true;
export const each = () => look(data.cameras);
export const draw = () => html`<h1 tabindex="-1">Cameras</h1>
  <div id="camera-list" class="cameras large">${figures(data.cameras, true)}</div>`;
