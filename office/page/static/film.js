// The film of a sighting: its pictures, two a second, in place. They come as they are; the office encodes no video.

import {make} from "./dom.js";

// film returns a player that is closed until somebody opens it. The first picture is its poster.
export function film(s) {
  const box = make("details", {className: "film"}, make("summary", {}, "Film of the first seconds"));
  box.ontoggle = () => {
    if (box.open && box.children.length === 1) box.append(...player(s, box));
  };
  return box;
}

function player(s, box) {
  const at = make("input", {type: "range", min: 0, max: s.clip - 1, value: 0, "aria-label": "Place in the film"});
  const img = make("img", {alt: "The film at this place", src: "clip/" + s.id + "/0"});
  const button = make("button", {type: "button"});
  let timer = 0;
  const show = () => {
    img.src = "clip/" + s.id + "/" + at.value;
  };
  const play = (on) => {
    clearInterval(timer);
    timer = 0;
    if (on) {
      if (at.value === at.max) at.value = 0;
      timer = setInterval(() => {
        if (at.value === at.max || !box.open || !box.isConnected) return play(false);
        at.value++;
        show();
      }, 500);
    }
    button.textContent = on ? "Pause" : "Play";
  };
  button.onclick = () => play(!timer);
  at.oninput = () => {
    play(false);
    show();
  };
  play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  return [
    img,
    make("div", {className: "row"}, button, at, make("a", {href: "clip/" + s.id, className: "small"}, "Save")),
  ];
}
