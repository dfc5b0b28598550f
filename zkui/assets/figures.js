// The large figures above a table.

import { el, put, mark } from "./dom.js";

// figure makes one: a label, a value with a unit, and a line below. set changes
// them; a href makes it a link.
export function figure(label, drawing) {
  const value = el("span"), unit = el("small"), more = el("span", { class: "more" });
  const node = el("div", { class: "figure paper" },
    el("span", { class: "label", text: label }), el("span", { class: "value" }, value, " ", unit), more, drawing);
  const set = ({ text, of = "", below = "", alarm = false }) => {
    put(value, text);
    put(unit, of);
    put(more, below);
    mark(node, "alarm", alarm);
  };
  return { node, set };
}
