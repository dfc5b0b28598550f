// The last events: who acquired, released, or lost which lock, and when.

import { el, icon, put, attr, mark } from "./dom.js";
import { measured, count, things, brief, clock } from "./format.js";
import { Rows } from "./rows.js";
import { Keys } from "./keys.js";
import { ask, json, lockAddress, sessionAddress } from "./routes.js";

// EVERY is the least time between two requests for the log, in milliseconds.
const EVERY = 1000;

// kinds are the events, with what they are called and the class of their badges.
const kinds = {
  acquired: ["acquired", "held"], released: ["released", ""], lost: ["lost", "bad"], broken: ["broken", "bad"], "release-requested": ["release requested", "wait"],
};

// named is what an event is called.
const named = (e) => (Object.hasOwn(kinds, e.event) ? kinds[e.event] : [e.event, ""]);

// took says how long the wait or the hold was that an event ended.
const took = (e) => (e.seconds ? `${e.event === "acquired" ? "after a wait of" : "held for"} ${measured(e.seconds * 1000)}` : "");

// badge names an event.
export function badge(e) {
  const [text, cls] = named(e);
  return el("span", { class: `badge ${cls}`, text });
}

// lastEvents lists events of one lock.
export function lastEvents(events, now) {
  return events.map((e) => el("li", {}, el("time", { text: clock(Date.parse(e.at), now) }), badge(e),
    e.session ? el("a", { href: sessionAddress(e.session), "data-go": true, text: brief(e.who ?? e.session) }) : el("span", { class: "dimmed", text: "unknown: too short to be read" }),
    el("span", { class: "dimmed", text: took(e) })));
}

export function open(box, query, feed, page) {
  return new Log(box, query, feed, page);
}

class Log {
  constructor(box, query, feed, page) {
    this.feed = feed;
    this.page = page;
    this.title = "Log";
    this.all = [];
    this.find = query.get("q") ?? "";
    this.kind = Object.hasOwn(kinds, query.get("event") ?? "") ? query.get("event") : "";
    this.path = query.get("path") ?? "";
    this.input = el("input", {
      class: "field", id: "filter", type: "search", placeholder: "Filter by lock, holder, token", "aria-label": "Filter", spellcheck: "false", autocomplete: "off",
      input: () => { this.find = this.input.value; this.changed(); },
      keydown: (e) => { if (e.key === "Escape") { this.input.blur(); e.stopPropagation(); } },
    });
    this.input.value = this.find;
    this.chips = [["", "All"], ...Object.entries(kinds).map(([id, [label]]) => [id, label[0].toUpperCase() + label.slice(1)])].map(([id, label]) =>
      el("button", { type: "button", "data-event": id, text: label, click: () => { this.kind = id; this.changed(); } }));
    this.shown = el("span", { class: "shown", role: "status" });
    this.body = el("div", { class: "rows", role: "rowgroup" });
    this.none = el("div", { class: "none paper", hidden: true });
    const head = ["Time", "Event", "Lock", "Holder", "Duration"].map((h) => el("span", { role: "columnheader", text: h }));
    this.table = el("div", { class: "table log paper", role: "table", "aria-label": "Log" }, el("div", { class: "head", role: "row", "aria-rowindex": 1 }, head), this.body);
    box.replaceChildren(el("h1", { class: "hidden", text: "Log" }),
      el("div", { class: "tools" }, el("div", { class: "seek" }, icon("search"), this.input, el("kbd", { text: "/" })),
        el("div", { class: "chips", role: "group", "aria-label": "Show" }, this.chips), this.shown), this.table, this.none);
    this.rows = new Rows(this.body, { key: (e) => e.number, make, show: (row, e) => show(row, e, feed.now()) });
    this.keys = new Keys(this.rows, (e) => e.number);
    this.take();
  }

  changed() {
    const q = new URLSearchParams();
    if (this.path) q.set("path", this.path);
    if (this.find) q.set("q", this.find);
    if (this.kind) q.set("event", this.kind);
    this.page.remember(q);
    this.show();
  }

  // take requests the log, and once more if something changes meanwhile.
  async take() {
    if (this.asking) { this.again = true; return; }
    this.asking = true;
    this.again = false;
    try {
      this.all = (await ask(json("log", this.path ? { path: this.path } : {}))).log ?? [];
      for (const e of this.all) e.text = [e.path, e.who, e.session, e.token, e.event].filter(Boolean).join("\n").toLowerCase();
      this.known = true;
      if (!this.closed) this.show();
    } catch {
      this.again = true; // the feed says that the server is away
    }
    setTimeout(() => { this.asking = false; if (this.again && !this.closed) this.take(); }, EVERY);
  }

  update(what) { if (what === "locks" || what === "history") this.take(); }

  show() {
    const words = this.find.toLowerCase().split(/\s+/).filter(Boolean);
    const items = this.all.filter((e) => (!this.kind || e.event === this.kind) && words.every((w) => e.text.includes(w)));
    for (const chip of this.chips) attr(chip, "aria-pressed", String(chip.dataset.event === this.kind));
    attr(this.table, "aria-rowcount", items.length + 1);
    this.table.hidden = items.length === 0;
    this.rows.set(items);
    put(this.shown, items.length === this.all.length ? things(items.length, "event") : `${count(items.length)} of ${things(this.all.length, "event")}`);
    this.none.hidden = items.length > 0 || !this.known;
    this.none.replaceChildren(...(this.all.length ? [el("strong", { text: "No event matches" })] : [el("strong", { text: "No events yet" }), "Acquires, releases, losses, and release requests appear here as they happen."]));
  }

  tick() {}

  key(e) {
    if (e.key === "/") this.input.focus();
    else if (e.key === "Enter" && this.keys.item()) this.page.go(lockAddress(this.keys.item().path));
    else return this.keys.key(e);
    return true;
  }

  close() {
    this.closed = true;
    this.rows.end();
  }
}

function make() {
  const parts = { at: el("time"), badge: el("span", { class: "badge" }), link: el("a", { class: "name", "data-go": true }), who: el("span"), took: el("span") };
  const cell = (inside) => el("span", { class: "cell", role: "cell" }, inside);
  const row = el("div", { class: "row", role: "row" }, cell(parts.at), cell(parts.badge), cell(parts.link), cell(parts.who), cell(parts.took));
  row.parts = parts;
  return row;
}

function show(row, e, now) {
  const p = row.parts, [text, cls] = named(e);
  put(p.at, clock(Date.parse(e.at), now));
  put(p.badge, text);
  attr(p.badge, "class", `badge ${cls}`);
  put(p.link, brief(e.path));
  attr(p.link, "href", lockAddress(e.path));
  put(p.who, e.who ? brief(e.who) : "unknown: too short to be read");
  mark(p.who, "dimmed", !e.who);
  put(p.took, took(e));
}
