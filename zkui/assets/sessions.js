// Sessions: how many locks each holds and waits for, and which wait for each other.

import { el, put, attr, mark } from "./dom.js";
import { count, brief, named } from "./format.js";
import { Table } from "./table.js";
import { sessionAddress } from "./routes.js";
import { deadlocks } from "./troubles.js";

// TAGS is how many locks' names are in a row.
const TAGS = 3;

export function open(box, query, feed, page) {
  const cycles = el("div");
  const showCycles = () => cycles.replaceChildren(...deadlocks(feed.deadlocks));
  showCycles();
  return new Table(box, query, page, {
    title: "Sessions", thing: "session", hint: "Filter by session, owner, lock", columns: ["Owner", "Session", "Holds", "Waits for"],
    empty: [el("strong", { text: "No session has a lock" })], above: cycles,
    name: "sessions", items: (answer) => answer.sessions.map((s) => ({ ...s, holds: s.holds ?? [], waits: s.waits ?? [] })),
    text: (s) => [s.id, s.who, ...s.holds, ...s.waits],
    reload: (what) => { if (what === "troubles") showCycles(); return what === "locks"; }, link: (s) => sessionAddress(s.id),
    key: (s) => s.id, make, show,
  });
}

function make() {
  const parts = { link: el("a", { class: "who", "data-go": true }), id: el("span", { class: "cell mono", role: "cell" }), holds: el("span", { class: "tags", role: "cell" }), waits: el("span", { class: "tags", role: "cell" }) };
  const row = el("div", { class: "row", role: "row" }, el("span", { class: "cell", role: "cell" }, parts.link), parts.id, parts.holds, parts.waits);
  row.parts = parts;
  return row;
}

function show(row, s) {
  const p = row.parts;
  attr(p.link, "href", sessionAddress(s.id));
  put(p.link, brief(s.who) || s.id);
  put(p.id, s.id);
  tags(p.holds, s.holds, "held");
  tags(p.waits, s.waits, "wait");
}

// tags names some locks, and counts the rest.
function tags(node, paths, cls) {
  const key = paths.join("\n");
  if (node.key === key) return;
  node.key = key;
  mark(node, "dimmed", paths.length === 0);
  const some = paths.slice(0, TAGS).map((p) => el("span", { class: `badge ${cls} path`, title: brief(p) }, el("bdi", { text: brief(named(p)) })));
  if (paths.length > TAGS) some.push(el("span", { class: "dimmed", text: `+${count(paths.length - TAGS)}` }));
  node.replaceChildren(...(some.length ? some : ["–"]));
}
