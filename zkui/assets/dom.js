// Builds the page's elements. Data from the servers is inserted as text, never as HTML, and
// characters that reverse or hide text are escaped: any client can write names and owners'
// data.

import { legible } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

// el makes an element. Of props, "text" and "class" are what they say, a function
// becomes a listener, true an attribute without a value, and false, null and
// undefined nothing.
export function el(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

// svg creates an element of a drawing.
export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "text") node.replaceChildren(...levels(legible(String(value))));
    else if (name === "class") node.setAttribute("class", value);
    else if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : written(name, value));
  }
  node.append(...children.flat(2).filter((c) => c !== null && c !== undefined && c !== false).map((c) => (typeof c === "string" ? levels(legible(c)) : c)).flat());
  return node;
}

// RIGHT_TO_LEFT are the characters of scripts that are written from right to left.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

// levels returns what to insert for a text. Such characters would change the order in which a
// browser shows the levels of a path, so that two paths can look alike. The text of the
// elements that prevent it is the same.
function levels(s) {
  if (!s.includes("/") || !RIGHT_TO_LEFT.test(s)) return [s];
  return s.split(/(\/)/).filter(Boolean).map((part) => {
    if (part === "/") return part;
    const level = document.createElement("bdi");
    level.textContent = part;
    return level;
  });
}

// written is an attribute's value; those that are read by people are escaped.
function written(name, value) {
  return name === "title" || name === "aria-label" ? legible(String(value)) : String(value);
}

// put changes a node's text if it differs. Writing the same text again would cost a layout
// for each row of a table that ticks.
export function put(node, text) {
  const s = legible(String(text));
  if (node.textContent !== s) node.replaceChildren(...levels(s));
}

// mark sets or removes a class.
export function mark(node, name, on) {
  if (node.classList.contains(name) !== Boolean(on)) node.classList.toggle(name, Boolean(on));
}

// attr sets an attribute, or removes it for null.
export function attr(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== written(name, value)) node.setAttribute(name, written(name, value));
}

// flash shows for a moment that a node changed.
export function flash(node) {
  node.classList.remove("flash");
  void node.offsetWidth; // so that the animation begins anew
  node.classList.add("flash");
}

// icons are drawings on a field of 16 by 16, as paths.
const icons = {
  sun: "M8 4.8a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4M8 .8v1.6M8 13.6v1.6M2.9 2.9 4 4M12 12l1.1 1.1M.8 8h1.6M13.6 8h1.6M2.9 13.1 4 12M12 4l1.1-1.1",
  moon: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8",
  auto: "M8 1.6a6.4 6.4 0 1 0 0 12.8zM8 1.6a6.4 6.4 0 0 1 0 12.8",
  search: "M7 2.4a4.6 4.6 0 1 0 0 9.2 4.6 4.6 0 0 0 0-9.2M10.4 10.4 14 14",
  back: "M9.6 3.2 4.8 8l4.8 4.8",
  warn: "M8 2 1.6 13.2h12.8zM8 6.4v3.2M8 11.4v.2",
  copy: "M5.6 5.6h7.2v7.2H5.6zM10.4 5.4V3.2H3.2v7.2h2.2",
  key: "M10.4 2.4a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4M8.2 7.8 2.6 13.4M4.6 11.4l1.6 1.6",
  open: "M6 3.6 10.4 8 6 12.4",
  up: "M8 3.2v9.6M4.4 6.4 8 2.8l3.6 3.6",
  down: "M8 3.2v9.6M4.4 9.6 8 13.2l3.6-3.6",
};

// icon draws one of them, as wide as the text is high.
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    svg("path", { d: icons[name] }));
}
