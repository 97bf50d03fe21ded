// Drawing a part of a camera's picture. What is drawn is a line for the file of the office.

import {sheet} from "./api.js";
import {button, html, many, svg, update} from "./dom.js";

const reach = 16; // pixels around a corner in which it is taken

// points are corners as an svg has them.
const points = (all) => all.map(([x, y]) => x + "," + y).join(" ");

// outlines are the zones of a camera.
export const outlines = (zones) => html`<svg class="zones" viewBox="0 0 1 1" preserveAspectRatio="none" role="img"
  aria-label=${"Zones: " + zones.map((z) => z.name).join(", ")}>${zones.map((z) => svg`<polygon points=${
    points(z.area.map((c) => [c.x, c.y]))}><title>${z.name}</title></polygon>`)}</svg>`;

// drawArea opens a sheet over the picture of a camera, which src returns, as it is at the moment.
export function drawArea(camera, size, src) {
  let corners = [],
    at = [0.5, 0.5], // the cross, which keys move
    held = null, // the corner under the finger
    name = "";
  const part = (n) => Math.round(1000 * Math.min(1, Math.max(0, n))) / 1000;
  const place = (e) => {
    const r = e.currentTarget.getBoundingClientRect();
    return {
      at: [part((e.clientX - r.left) / r.width), part((e.clientY - r.top) / r.height)],
      far: ([x, y]) => Math.hypot(x * r.width + r.left - e.clientX, y * r.height + r.top - e.clientY),
    };
  };
  const press = (e) => {
    const p = place(e);
    held = corners.find((c) => p.far(c) < reach);
    if (!held) corners.push((held = p.at));
    e.currentTarget.setPointerCapture(e.pointerId);
    update();
  };
  const move = (e) => {
    if (held) held.splice(0, 2, ...place(e).at);
    if (held) update();
  };
  const lift = () => (held = null);
  const keys = (e) => {
    const step = e.shiftKey ? 0.1 : 0.01,
      go = (x, y) => (at = [part(at[0] + x), part(at[1] + y)]);
    const does = {ArrowLeft: () => go(-step, 0), ArrowRight: () => go(step, 0), ArrowUp: () => go(0, -step),
      ArrowDown: () => go(0, step), Enter: () => corners.push([...at]), Backspace: () => corners.pop()}[e.key];
    if (!does || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    does();
    update();
  };
  const percent = (n) => Math.round(100 * n) + " %";
  const lines = () => {
    const area = corners.map((c) => c.join(",")).join(" ");
    return name ? `zones:\n  ${JSON.stringify(name)}: ${area}` : `mask:\n  - ${area}`;
  };
  const copy = (e) => {
    const text = e.target.closest(".lines").querySelector("textarea");
    text.select();
    document.execCommand("copy"); // navigator.clipboard is not there without https
  };
  const cross = ([x, y]) => svg`<path class="cross" d=${`M${x - 0.03} ${y}h.06M${x} ${y - 0.04}v.08`}></path>`;
  const corner = ([x, y]) => svg`<path class="corner" d=${`M${x} ${y}h0`}></path>`;
  const draw = () => html`<h2>A part of what ${camera} sees</h2>
    <p class="soft small">Press on the corners, one after another, and pull them where they belong. With the keyboard:
      arrows move the cross (Shift: further), Enter sets a corner, Backspace removes the last one.</p>
    <div class="frame draw" tabindex="0" role="group" aria-label="The picture, to be drawn on" @keydown=${keys}
      .style=${"aspect-ratio:" + size.join("/")} @pointerdown=${press} @pointermove=${move} @pointerup=${lift}
      @pointercancel=${lift}><img alt="" draggable="false" src=${src()}><svg class="zones" aria-hidden="true"
      viewBox="0 0 1 1" preserveAspectRatio="none"><polygon points=${points(corners)}></polygon>${
      corners.map(corner)}${cross(at)}</svg></div>
    <p role="status" class="soft small">${many(corners.length, "corner")}; the cross is ${percent(at[0])} from the left and
      ${percent(at[1])} from the top.</p>
    <p class="row">${button("Remove the last corner", () => (corners.pop(), update()), "", {disabled: !corners.length})}
      <label>Zone <input type="text" maxlength="100" autocomplete="off" placeholder="no name: nobody looks at it"
        @input=${(e) => ((name = e.target.value.trim()), update())}></label></p>
    ${corners.length < 3 ? "" : html`<div class="lines"><label>Lines for ${camera} in the office's file
      <textarea readonly rows="2" .value=${lines()}></textarea></label>${button("Copy", copy)}
      <p class="soft small">Write them below the name and the source of this camera, and start the office anew.</p></div>`}`;
  sheet(draw, "A part of a picture");
}
