// The bars of a day: who was there when.

import {data} from "./api.js";
import {faceOf, openVisit, whose} from "./visit.js";
import {clock, face, html, keyed, midnight, personLink, svg, until, update} from "./dom.js";

const shortest = 15 / 1440; // the part of a day that is shown at most enlarged: a quarter of an hour
const views = new Map(); // by day, what of it is shown: its beginning and length, as parts of it

// bars draws the visits of a day, a line for each person or stranger, with their pictures and names where these are
// wanted. The wheel, two fingers and keys enlarge a part of the day, and move it.
export function bars(visits, key, named) {
  const from = midnight(key).getTime(),
    length = midnight(key, 1) - from;
  const [at, part] = views.get(key) || [0, 1];
  const set = (a, p) => {
    const size = Math.min(1, Math.max(shortest, p));
    views.set(key, [Math.min(1 - size, Math.max(0, a)), size]);
    update();
  };
  // zoom enlarges around a place, given as a part of the width.
  const zoom = (factor, place) => {
    const size = Math.min(1, Math.max(shortest, part * factor));
    set(at + (part - size) * place, size);
  };
  const end = (v) => (v.live ? Date.now() : Date.parse(v.last));
  const line = ([who, own]) => {
    const v = own[0],
      text = own.map((x) => clock(x.first) + until(x, " until now")).join(", "),
      once = who === "\nonce",
      label = v.name || (once ? own.length + " strangers, once each" : "Person " + v.group);
    const link = v.name ? personLink(v.name) : once ? "#inbox/all" : "#inbox/stranger-" + v.group,
      id = faceOf(v) || data.people.find((p) => p.name === v.name)?.face;
    const bar = (x) => {
      const a = Math.max(Date.parse(x.first), from),
        b = Math.min(end(x), from + length),
        wide = Math.max(4, (1440 * (b - a)) / length);
      const rect = (kind) => svg`<rect class=${kind} x=${(1440 * (a - from)) / length} y="2" height="6" width=${wide}></rect>`;
      return svg`<g @click=${() => openVisit(x)}>${rect("")}${rect("touch")}</g>`;
    };
    const name = html`<a class="who" href=${link} title=${label}>${face(id, "")}<span class="clip">${label}</span></a>`;
    return html`${named ? name : ""}
      <svg viewBox=${[1440 * at, 0, 1440 * part, 10].join(" ")} preserveAspectRatio="none" role="img"
        class=${v.name ? "" : "stranger"} aria-label=${label + " was there " + text}>${own.map(bar)}</svg>`;
  };
  const place = (box, x) => {
    const r = box.querySelector("svg[viewBox]").getBoundingClientRect();
    return Math.min(1, Math.max(0, (x - r.left) / r.width));
  };
  const wheel = {
    passive: false,
    handleEvent(e) {
      if (part === 1 && e.deltaY > 0) return; // all is shown: the page scrolls
      e.preventDefault();
      zoom(1.002 ** e.deltaY, place(e.currentTarget, e.clientX));
    },
  };
  const keys = (e) => {
    const does = {"+": () => zoom(0.5, 0.5), "-": () => zoom(2, 0.5), 0: () => set(0, 1),
      ArrowLeft: () => set(at - 0.25 * part, part), ArrowRight: () => set(at + 0.25 * part, part)}[e.key];
    if (e.target !== e.currentTarget || !does || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    does();
  };
  const move = (e) => {
    const box = e.currentTarget,
      was = [...fingers.values()],
      middle = (all) => all.reduce((sum, x) => sum + x, 0) / all.length;
    if (!fingers.has(e.pointerId)) return;
    fingers.set(e.pointerId, e.clientX);
    const is = [...fingers.values()];
    const factor = is.length === 2 ? Math.abs(was[0] - was[1]) / Math.max(1, Math.abs(is[0] - is[1])) : 1;
    const size = Math.min(1, Math.max(shortest, part * factor));
    set(at - part * (place(box, middle(is)) - place(box, middle(was))) + (part - size) * place(box, middle(is)), size);
  };
  const lift = (e) => fingers.delete(e.pointerId);
  const press = (e) => fingers.set(e.pointerId, e.clientX);
  return keyed(key, html`<div class=${named ? "bars" : "bars alone"} tabindex="0" role="group"
      aria-label="The day by person. Plus and minus enlarge it, the arrows move it, 0 shows all of it."
      @wheel=${wheel} @keydown=${keys} @pointerdown=${press} @pointermove=${move} @pointerup=${lift}
      @pointercancel=${lift} @pointerleave=${lift}>
    ${[...Map.groupBy(visits, rowOf(visits))].map(line)}
    <div class="hours" aria-hidden="true">${[0, 1, 2, 3, 4].map((i) => html`<span>${
      i === 4 && at + part === 1 ? "24:00" : clock(from + length * (at + (part * i) / 4))}</span>`)}</div></div>`);
}

// rowOf returns what the row of a visit is: strangers who were there once share one, if there are several.
function rowOf(visits) {
  const own = Map.groupBy(visits, whose),
    once = (v) => !v.name && own.get(whose(v)).length === 1,
    many = visits.filter(once).length > 1;
  return (v) => (many && once(v) ? "\nonce" : whose(v));
}

const fingers = new Map(); // on a chart, by their number: where they are
