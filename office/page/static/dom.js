// Elements, times and words that all views share.

export const $ = (id) => document.getElementById(id);

// make returns an element with properties and children.
export function make(tag, properties, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(properties || {})) {
    if (k in e) e[k] = v;
    else e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
}

const svgNames = "http://www.w3.org/2000/svg";

// svg returns an element of a drawing.
export function svg(tag, attributes, ...children) {
  const e = document.createElementNS(svgNames, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

export const icon = (name) => svg("svg", {"aria-hidden": "true"}, svg("use", {href: "#i-" + name}));

// show puts text into an element, and nothing where it is there already: a screen reader says a text that changes.
export function show(e, text) {
  e.hidden = !text;
  if (e.textContent !== text) e.textContent = text;
}

// keyed shows a list: an element is made anew only where its item has changed, and not while somebody is at it.
export function keyed(list, items, key, draw) {
  const old = new Map([...list.children].map((e) => [e.dataset.key, e]));
  let at = list.firstChild;
  for (const item of items) {
    const id = String(key(item)),
      text = JSON.stringify(item);
    let e = old.get(id);
    old.delete(id);
    const busy =
      e &&
      ((e.contains(document.activeElement) && document.activeElement.matches("input,select")) ||
        e.querySelector("details[open],input:checked"));
    if (!e || (e.dataset.text !== text && !busy)) {
      const fresh = draw(item);
      fresh.dataset.key = id;
      fresh.dataset.text = text;
      if (e) {
        if (e === at) at = fresh;
        const held = e.contains(document.activeElement)
          ? [...e.querySelectorAll("a,button,summary")].indexOf(document.activeElement)
          : -1;
        e.replaceWith(fresh);
        if (held >= 0) fresh.querySelectorAll("a,button,summary")[held]?.focus();
      }
      e = fresh;
    }
    if (e === at) at = e.nextSibling;
    else list.insertBefore(e, at);
  }
  for (const e of old.values()) e.remove();
}

// portrait returns the picture that shows a stored face: its own, or one that is like it, which looks so.
export function portrait(p, alt) {
  const box = face(p.face, p.apart > 0 ? alt + ": a picture like it" : alt);
  if (p.apart > 0) {
    box.classList.add("like");
    box.title = "A picture like this face, at a distance of " + p.apart.toFixed(2);
  }
  return box;
}

// face returns the picture of a face, or a drawing where there is none.
export function face(id, alt) {
  const box = make("div", {className: "face"}, icon("face"));
  if (!id) {
    box.append(make("span", {className: "skip"}, alt + ": no picture"));
    return box;
  }
  const img = make("img", {alt: alt, src: "face/" + id});
  img.onerror = () => {
    img.hidden = true;
  };
  box.append(img);
  return box;
}

const language = "en-GB"; // the words of the page are English
export const clock = (t) =>
  new Date(t).toLocaleTimeString(language, {hour: "2-digit", minute: "2-digit", hourCycle: "h23"});
export const exact = (t) =>
  new Date(t).toLocaleTimeString(language, {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"});

// dayKey is the same for two times of one day of this browser's.
export const dayKey = (t) => new Date(t).toDateString();

export function day(t) {
  const date = new Date(t),
    yesterday = new Date();
  yesterday.setDate(yesterday.getDate() - 1);
  if (dayKey(date) === dayKey(Date.now())) return "Today";
  if (dayKey(date) === dayKey(yesterday)) return "Yesterday";
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString(language, {weekday: "long", day: "numeric", month: "long", year: year});
}

export const when = (t) =>
  (dayKey(t) === dayKey(Date.now()) ? "" : day(t).replace(/^Yesterday$/, "yesterday") + " ") + clock(t);

export const many = (n, one, more) => n + " " + (n === 1 ? one : more || one + "s");

export const personLink = (name) => "#person/" + encodeURIComponent(name);

// personCard links to a person, with the picture, the name and more of this person.
export const personCard = (p, ...more) =>
  make(
    "li",
    {},
    make(
      "a",
      {href: personLink(p.name)},
      face(p.face, p.name),
      make("div", {}, make("b", {className: "two"}, p.name), ...more),
    ),
  );

// cut returns a name that fits into a line; titles have all of it.
export const cut = (name) => (name.length > 40 ? name.slice(0, 39) + "…" : name);

// sentence returns text as one.
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.?!…]$/.test(text) ? "" : ".");

// list joins names as a sentence does.
export const list = (names) =>
  names.length < 2 ? names.join("") : names.slice(0, -1).join(", ") + " and " + names.at(-1);
