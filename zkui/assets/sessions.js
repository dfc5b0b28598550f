// Sessions: how many locks each holds and waits for, and which wait for each other.

import { el, icon, put, attr, mark } from "./dom.js";
import { count, things, brief, named } from "./format.js";
import { Rows } from "./rows.js";
import { Keys } from "./keys.js";
import { ask, json, sessionAddress } from "./routes.js";
import { cycle } from "./troubles.js";

// EVERY is the least time between two requests for the sessions, in milliseconds, while
// locks change.
const EVERY = 1000;

// TAGS is how many locks' names are in a row.
const TAGS = 4;

export function open(box, query, feed, page) {
  return new Sessions(box, query, feed, page);
}

class Sessions {
  constructor(box, query, feed, page) {
    this.feed = feed;
    this.page = page;
    this.title = "Sessions";
    this.all = [];
    this.find = query.get("q") ?? "";
    this.cycles = el("div");
    this.input = el("input", {
      class: "field", id: "filter", type: "search", placeholder: "Filter by session, owner, lock", "aria-label": "Filter", spellcheck: "false", autocomplete: "off",
      input: () => { this.find = this.input.value; this.page.remember(new URLSearchParams(this.find ? { q: this.find } : {})); this.show(); },
      keydown: (e) => { if (e.key === "Escape") { this.input.blur(); e.stopPropagation(); } },
    });
    this.input.value = this.find;
    this.shown = el("span", { class: "shown", role: "status" });
    this.body = el("div", { class: "rows", role: "rowgroup" });
    this.none = el("div", { class: "none paper", hidden: true });
    const head = ["Owner", "Session", "Holds", "Waits for"].map((h) => el("span", { role: "columnheader", text: h }));
    box.replaceChildren(el("h1", { class: "hidden", text: "Sessions" }), this.cycles,
      el("div", { class: "tools" }, el("div", { class: "seek" }, icon("search"), this.input, el("kbd", { text: "/" })), this.shown),
      this.table = el("div", { class: "table sessions paper", role: "table", "aria-label": "Sessions" }, el("div", { class: "head", role: "row" }, head), this.body), this.none);
    this.rows = new Rows(this.body, { key: (s) => s.id, make, show });
    this.keys = new Keys(this.rows, (s) => s.id);
    this.showCycles();
    this.take();
  }

  // take requests the sessions, and once more if something changes meanwhile.
  async take() {
    if (this.asking) { this.again = true; return; }
    this.asking = true;
    this.again = false;
    try {
      const answer = await ask(json("sessions"));
      this.all = answer.sessions.map((s) => ({ ...s, holds: s.holds ?? [], waits: s.waits ?? [] }));
      this.known = true;
      if (!this.closed) this.show();
    } catch {
      this.again = true; // the feed says that the server is away
    }
    setTimeout(() => { this.asking = false; if (this.again && !this.closed) this.take(); }, EVERY);
  }

  update(what) {
    if (what === "locks") this.take();
    if (what === "troubles") this.showCycles();
  }

  showCycles() { this.cycles.replaceChildren(...this.feed.deadlocks.map(cycle)); }

  show() {
    const words = this.find.toLowerCase().split(/\s+/).filter(Boolean);
    const items = this.all.filter((s) => {
      const text = [s.id, s.who, ...s.holds, ...s.waits].join("\n").toLowerCase();
      return words.every((w) => text.includes(w));
    });
    this.table.hidden = items.length === 0;
    this.rows.set(items);
    put(this.shown, items.length === this.all.length ? things(items.length, "session") : `${count(items.length)} of ${things(this.all.length, "session")}`);
    this.none.hidden = items.length > 0 || !this.known;
    this.none.replaceChildren(el("strong", { text: this.all.length ? "No session matches" : "No session has a lock" }));
  }

  tick() {}

  key(e) {
    if (e.key === "/") this.input.focus();
    else if (e.key === "Enter" && this.keys.item()) this.page.go(sessionAddress(this.keys.item().id));
    else return this.keys.key(e);
    return true;
  }

  close() {
    this.closed = true;
    this.rows.end();
  }
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
  const some = paths.slice(0, TAGS).map((p) => el("span", { class: `badge ${cls}`, title: brief(p), text: brief(named(p)) }));
  if (paths.length > TAGS) some.push(el("span", { class: "dimmed", text: `+${count(paths.length - TAGS)}` }));
  node.replaceChildren(...(some.length ? some : ["–"]));
}
