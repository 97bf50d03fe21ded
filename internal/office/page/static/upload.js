// Pictures that enrol somebody: dropped, chosen, or taken with the camera of a phone.

import {enrol} from "./api.js";
import {html, update} from "./dom.js";

// uploads returns a place for pictures. Path returns where they go, the parameters, and the name of the person, or null
// while somebody has to say more. Afterwards it says of each picture what is wrong with it.
export function uploads(label, path) {
  return pictures(label, async (files) => {
    const to = path();
    return to && ((await enrol(to.path, to.values, files, to.who)) || []).map((p) => html`<li><b>${p.file}</b>${
      p.enrolled ? "enrolled" : p.wrong}</li>`);
  });
}

// pictures returns a place for pictures: look gets those that are dropped there or chosen, and returns what is to be
// shown then, or null for what was shown before.
export function pictures(label, look) {
  let shown = "",
    busy = false,
    over = false;
  const send = async (files, input) => {
    if (files.length === 0) return;
    busy = true;
    update();
    shown = (await look(files)) || shown;
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
  return () => html`<div class=${over ? "drop card aim" : "drop card"} @dragover=${drag(true)} @dragleave=${drag(false)}
      @drop=${drop}>
    <label class="choose row">${label} <span class="button">Choose pictures</span><input type="file" multiple
      ?disabled=${busy} accept="image/jpeg,image/png,image/webp"
      @change=${(e) => send([...e.target.files], e.target)}></label>
    <div role="status">${
      busy ? "Looking at the pictures …" : html`<ul class="plain small">${shown}</ul>`}</div></div>`;
}
