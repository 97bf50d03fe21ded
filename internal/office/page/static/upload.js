// Pictures that enrol somebody: dropped, chosen, or taken with the camera of a phone.

import {enrol} from "./api.js";
import {html, update} from "./dom.js";

// uploads returns a place for pictures. Path returns where they go, the parameters, and the name of the person, or null
// while somebody has to say more. Afterwards it says of each picture what is wrong with it.
export function uploads(label, path) {
  let results = [],
    busy = false,
    over = false;
  const send = async (files, input) => {
    const to = path();
    if (!to || files.length === 0) return;
    busy = true;
    update();
    results = (await enrol(to.path, to.values, files, to.who)) || [];
    if (input) input.value = "";
    busy = false;
    update();
  };
  const drag = (on) => (e) => {
    e.preventDefault();
    over = on;
    update();
  };
  const drop = (e) => {
    drag(false)(e);
    send([...e.dataTransfer.files]);
  };
  const result = (p) => html`<li><b>${p.file}</b>${p.enrolled ? "enrolled" : p.wrong}</li>`;
  return () => html`<div class=${over ? "drop over" : "drop"} @dragover=${drag(true)} @dragleave=${drag(false)}
      @drop=${drop}>
    <label class="choose">${label} <span class="button">Choose pictures</span><input type="file" multiple
      ?disabled=${busy} accept="image/jpeg,image/png,image/webp"
      @change=${(e) => send([...e.target.files], e.target)}></label>
    <div role="status">${
      busy ? "Looking at the pictures …" : html`<ul class="plain small">${results.map(result)}</ul>`}</div></div>`;
}
