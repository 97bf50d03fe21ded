// Live pictures of the cameras.

import {$, cut, keyed, make, sentence, when} from "./dom.js";

// drawCamera shows a camera; what changes with every frame is put in by see.
function drawCamera(c) {
  const img = make("img", {alt: "What " + c.camera + " sees", hidden: true});
  img.onload = () => {
    img.hidden = false;
  };
  img.onerror = () => {
    img.hidden = true;
  };
  const facts = make("dl", {className: "facts"});
  return make(
    "figure",
    {className: "camera"},
    make("div", {className: "frame"}, img, make("div", {className: "none"})),
    make("figcaption", {}, make("b", {}, c.camera), " ", make("span", {className: "who"}), facts),
  );
}

const label = (s) => s.name || (s.ignored ? "ignored" : s.group ? "unknown " + s.group : "?");

function see(figure, c, large) {
  const frame = figure.querySelector(".frame"),
    img = frame.querySelector("img");
  if (c.up && !document.hidden) img.src = "camera/" + encodeURIComponent(c.camera) + "?" + Date.now();
  if (!c.up) img.hidden = true;
  frame.querySelector(".none").textContent = img.hidden
    ? c.up
      ? "…"
      : c.error
        ? sentence(c.error)
        : "No picture"
    : "";
  for (const b of frame.querySelectorAll(".box")) b.remove();
  if (c.size[0] > 0) {
    frame.style.aspectRatio = c.size.join("/");
    for (const s of img.hidden ? [] : c.seen.filter((s) => s.box[2] > 0)) {
      const [left, top, right, bottom] = s.box;
      const box = make(
        "div",
        {className: s.name ? "box known" : "box", title: s.reason || ""},
        make("b", {}, label(s)),
      );
      Object.assign(box.style, {
        left: (100 * left) / c.size[0] + "%",
        top: (100 * top) / c.size[1] + "%",
        width: (100 * (right - left)) / c.size[0] + "%",
        height: (100 * (bottom - top)) / c.size[1] + "%",
      });
      frame.append(box);
    }
  }
  const names = c.seen.map(
    (s) =>
      (cut(s.name) || "somebody unknown") +
      (s.trust === "likely" ? ", not confirmed" : "") +
      (s.reason ? " (" + s.reason + ")" : ""),
  );
  const who = figure.querySelector(".who");
  who.textContent = c.up ? names.join(", ") || "nobody" : c.error ? "down" : "ended";
  who.title = who.textContent;
  const facts = figure.querySelector(".facts");
  facts.hidden = !large;
  if (!large) return;
  const rows = [
    [
      "State",
      c.up
        ? "connected since " + when(c.since)
        : c.error
          ? "down since " + when(c.since) + ": " + sentence(c.error) + " It is tried again."
          : "ended",
    ],
    ["Speed", c.up ? c.rate.toFixed(1) + " frames a second" : "none"],
    ["Frames", c.frames + " looked at, " + c.dropped + " passed over"],
  ];
  if (facts.children.length === 0) facts.append(...rows.flatMap(([k]) => [make("dt", {}, k), make("dd", {})]));
  rows.forEach(([, v], i) => {
    const dd = facts.children[2 * i + 1];
    if (dd.textContent !== v) dd.textContent = v;
  });
}

// look shows the cameras in a box.
export function look(id, now) {
  const box = $(id);
  keyed(
    box,
    now.cameras.map((c) => ({camera: c.camera})),
    (c) => c.camera,
    drawCamera,
  );
  for (const c of now.cameras) {
    see(
      [...box.children].find((e) => e.dataset.key === c.camera),
      c,
      box.classList.contains("large"),
    );
  }
}
