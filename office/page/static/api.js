// What is asked of the office and said to it. All paths are relative: the page can be below any path of a server.

import {$, cut, make, many, sentence, show} from "./dom.js";

let again = async () => {};

// afterwards sets what is done when something was said.
export function afterwards(f) {
  again = f;
}

export async function get(path) {
  const r = await fetch("api/" + path, {cache: "no-store"});
  if (r.status === 401) location.href = "login";
  if (!r.ok) {
    const e = new Error((await r.text()).trim());
    e.status = r.status;
    throw e;
  }
  return r.json();
}

export const query = (path, values) =>
  path + "?" + new URLSearchParams(Object.entries(values).filter(([, v]) => v !== "" && v !== undefined));

// refused is an answer that says why something cannot be done.
class Refused extends Error {}

async function post(path, what) {
  const form = what instanceof FormData;
  const r = await fetch("api/" + path, {
    method: "POST",
    headers: form ? {} : {"Content-Type": "application/json"},
    body: form ? what : JSON.stringify(what),
  });
  if (r.status === 401) location.href = "login";
  if (!r.ok) throw new Refused((await r.text()).trim());
  return r.json();
}

// tell says something to the office and shows what came of it. It returns the answer, or null.
export async function tell(path, what, done) {
  try {
    const answer = await post(path, what);
    trouble("");
    toast(typeof done === "string" ? done : done(answer), answer.correction?.can_undo ? answer.correction : null);
    return answer;
  } catch (e) {
    trouble(e.message);
    return null;
  } finally {
    await again();
  }
}

// name says who a group is, and asks where the faces look like somebody else.
export async function name(group, who) {
  try {
    const answer = await post("name", {group: group, name: who});
    trouble("");
    toast("Named " + who + ".", answer.correction?.can_undo ? answer.correction : null);
    return true;
  } catch (e) {
    if (!(e instanceof Refused) || !/look like/.test(e.message)) {
      trouble(e.message);
      return false;
    }
    if (!(await ask(sentence(e.message), "Name them " + who + " all the same", "Do not name them"))) return false;
    return (await tell("name", {group: group, name: who, force: true}, "Named " + who + ".")) !== null;
  } finally {
    await again();
  }
}

// enrol sends pictures of somebody, and asks about those that look like somebody else. It returns what came of each
// picture, or null.
export async function enrol(path, values, files, who) {
  try {
    const send = (some, more) => {
      const form = new FormData();
      for (const f of some) form.append("picture", f);
      return post(query(path, {...values, ...more}), form);
    };
    let answer = await send(files);
    let {pictures, correction} = answer;
    const doubtful = [...pictures.keys()].filter((i) => /^it looks like/.test(pictures[i].wrong));
    const text = [...new Set(doubtful.map((i) => pictures[i].wrong.replace(/^it/, "A picture")))].join("; ");
    if (doubtful.length && (await ask(sentence(text), "Enrol it as " + who + " all the same", "Do not enrol it"))) {
      answer = await send(
        doubtful.map((i) => files[i]),
        {force: true},
      );
      doubtful.forEach((i, n) => (pictures[i] = answer.pictures[n]));
      correction = answer.correction || correction;
    }
    trouble("");
    const n = pictures.filter((p) => p.enrolled).length;
    if (n) toast(n + " of " + many(files.length, "picture") + " of " + cut(who) + " enrolled.", correction);
    return pictures;
  } catch (e) {
    trouble(e.message);
    return null;
  } finally {
    await again();
  }
}

// correct says that a sighting was somebody else, and asks whether the naming was wrong on which the mistake rests.
export async function correct(sighting, was, is) {
  const answer = await tell(
    "correct",
    {sighting: sighting, is: is},
    is ? "That was " + is + "." : "That was not " + was + ", and will not be again.",
  );
  if (
    answer?.naming &&
    (await ask("Was it wrong to name these faces " + answer.naming.name + "?", "Undo the naming", "Keep it"))
  ) {
    await tell("undo", {id: answer.naming.id}, "The naming is undone.");
  }
  return answer !== null;
}

export const undo = (c) => tell("undo", {id: c.id}, "Undone.");

let leaves = 0;

// trouble shows what went wrong, until something goes well, somebody closes it, or half a minute has passed.
export function trouble(text) {
  const box = $("trouble");
  clearTimeout(leaves);
  delete box.dataset.silent;
  show(box.firstChild, text && sentence(text));
  box.hidden = !text;
  if (!text) return;
  box.scrollIntoView({block: "nearest"});
  leaves = setTimeout(() => trouble(""), 30000);
}

$("trouble").lastChild.onclick = () => {
  trouble("");
  $("content").focus();
};

// silent says whether the office does not answer.
export function silent(e) {
  const box = $("trouble");
  if (e) {
    clearTimeout(leaves);
    show(box.firstChild, "The office does not answer: " + e.message);
    box.hidden = false;
    box.dataset.silent = "yes";
  } else if (box.dataset.silent) {
    trouble("");
  }
}

// toast says for a while what was done, with a button that undoes it where that can be.
export function toast(text, correction) {
  const box = make("div", {className: "toast"}, make("span", {className: "two"}, text));
  const close = () => {
    const held = box.contains(document.activeElement);
    box.remove();
    if (held) $("content").focus();
  };
  if (correction)
    box.append(
      make(
        "button",
        {
          type: "button",
          onclick: () => {
            close();
            undo(correction);
          },
        },
        "Undo",
      ),
    );
  box.append(make("button", {type: "button", onclick: close, "aria-label": "Close this message"}, "✕"));
  $("toasts").replaceChildren(box);
  const wait = () =>
    setTimeout(() => (box.matches(":hover,:focus-within") ? wait() : close()), correction ? 15000 : 7000);
  wait();
}

// ask asks for a decision, and returns whether it is yes.
export function ask(text, yes, no) {
  const dialog = $("ask"),
    row = dialog.querySelector(".row");
  $("ask-text").textContent = text;
  row.replaceChildren(
    make("button", {value: ""}, no || "Cancel"),
    make("button", {value: "yes", className: "main"}, yes),
  );
  dialog.returnValue = "";
  dialog.showModal();
  row.lastChild.focus();
  return new Promise((done) => {
    dialog.onclose = () => done(dialog.returnValue === "yes");
  });
}

// naming returns a form that asks for a name.
export function naming(label, button, say) {
  const input = make("input", {
    type: "text",
    required: true,
    maxLength: 100,
    autocomplete: "off",
    autocapitalize: "words",
    "aria-label": label,
    placeholder: "Name",
  });
  input.setAttribute("list", "names");
  return make(
    "form",
    {
      className: "answer",
      onsubmit: async (e) => {
        e.preventDefault();
        const name = input.value.trim();
        if (!name) return;
        input.blur();
        await say(name);
      },
    },
    input,
    button,
  );
}
