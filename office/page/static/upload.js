// Pictures that enrol somebody: dropped, chosen, or taken with the camera of a phone.

import {enrol} from "./api.js";
import {make} from "./dom.js";

// upload returns a place for pictures. Path returns where they go, the parameters, and the name of the person, or null
// while somebody has to say more. Afterwards it says of each picture what is wrong with it.
export function upload(label, path) {
  const input = make("input", {type: "file", multiple: true, accept: "image/jpeg,image/png,image/webp"});
  const results = make("ul", {className: "plain small"});
  const box = make(
    "div",
    {className: "drop"},
    make("label", {}, make("b", {}, label), " Drop them here, or ", input),
    make("div", {role: "status"}, results),
  );
  const send = async (files) => {
    const to = path();
    if (!to || files.length === 0) return;
    input.disabled = true;
    results.replaceChildren(make("li", {}, "Looking at the pictures …"));
    const pictures = (await enrol(to.path, to.values, files, to.who)) || [];
    results.replaceChildren(
      ...pictures.map((p) => make("li", {}, make("b", {}, p.file), p.enrolled ? "enrolled" : p.wrong)),
    );
    input.value = "";
    input.disabled = false;
  };
  input.onchange = () => send([...input.files]);
  box.ondragover = (e) => {
    e.preventDefault();
    box.classList.add("over");
  };
  box.ondragleave = () => box.classList.remove("over");
  box.ondrop = (e) => {
    e.preventDefault();
    box.classList.remove("over");
    send([...e.dataTransfer.files]);
  };
  return box;
}
