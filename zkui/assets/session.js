// One session: all locks that it holds or waits for.

import { el, icon, put, attr, mark } from "./dom.js";
import { span, brief, count } from "./format.js";
import { ask, json, lockAddress } from "./routes.js";
import { timed } from "./feed.js";
import { Rows } from "./rows.js";
import { Keys } from "./keys.js";
import { badges } from "./queue.js";
import { request } from "./sheet.js";

export function open(box, query, feed, page) {
  return new Session(box, query.get("id") ?? "", feed, page);
}

class Session {
  constructor(box, id, feed, page) {
    this.id = id;
    this.feed = feed;
    this.page = page;
    this.title = `Session ${id}`;
    this.who = el("span", { class: "badge" });
    this.about = el("p");
    this.none = el("div", { class: "none", hidden: true });
    this.body = el("div", { class: "rows", role: "list" });
    box.replaceChildren(
      el("nav", { class: "crumbs", "aria-label": "Back" }, el("a", { href: "sessions", "data-go": true }, icon("back"), "All sessions")),
      el("div", { class: "top" }, el("h1", { text: `Session ${id}` }), this.who),
      el("section", { class: "queue paper" }, el("div", { class: "section" }, el("h2", { text: "Locks" }), this.about), this.body, this.none));
    this.rows = new Rows(this.body, { key: (e) => e.node, make, show: (row, e) => show(row, e, feed.now()), tick: (row, e) => tick(row, e, feed.now()) });
    this.keys = new Keys(this.rows, (e) => e.node);
    this.take();
  }

  async take() {
    if (this.asking) { this.again = true; return; }
    this.asking = true;
    this.again = false;
    try {
      const answer = await ask(json("session", { id: this.id }));
      if (!this.closed) this.show(answer);
    } catch (err) {
      if (!this.known) this.say("This session cannot be loaded", err.message);
    }
    setTimeout(() => { this.asking = false; if (this.again && !this.closed) this.take(); }, 1000);
  }

  show(answer) {
    this.known = true;
    const entries = (answer.entries ?? []).map(timed);
    put(this.who, answer.session?.who ?? "");
    this.who.hidden = !answer.session?.who;
    put(this.about, entries.length ? `holds ${count(entries.filter((e) => e.holder).length)}, waits for ${count(entries.filter((e) => e.position > 0).length)}` : "");
    this.rows.setTall(entries.some((e) => e.revoked));
    this.rows.set(entries);
    this.none.hidden = entries.length > 0;
    if (!entries.length) this.say("It has no locks", "The session has ended, never existed, or holds no lock and waits for none.");
  }

  say(head, more) {
    this.none.hidden = false;
    this.none.replaceChildren(el("strong", { text: head }), more);
  }

  update(what) { if (what === "locks") this.take(); }
  tick() { this.rows.tick(); }

  key(e) {
    if (e.key === "Enter" && this.keys.item()) { this.page.go(lockAddress(this.keys.item().path)); return true; }
    return this.keys.key(e);
  }

  close() {
    this.closed = true;
    this.rows.end();
  }
}

function make() {
  const parts = { knot: el("span", { class: "knot" }), path: el("bdi"), link: el("a", { class: "who mono path", "data-go": true }), sub: el("span", { class: "sub" }), badges: el("span", { class: "badges" }), time: el("span"), unit: el("small") };
  parts.link.append(parts.path);
  const row = el("div", { class: "row stop", role: "listitem" },
    el("span", { class: "rail" }, parts.knot), el("span", { class: "cell" }, parts.link, parts.sub), parts.badges,
    el("span", { class: "passing" }, el("span", { class: "since" }, parts.time, " ", parts.unit)));
  row.parts = parts;
  return row;
}

function show(row, e, now) {
  const p = row.parts;
  attr(p.link, "href", lockAddress(e.path));
  mark(row, "first", true); // no rail: the locks are not one queue
  mark(row, "last", true);
  mark(row, "holds", e.holder);
  mark(row, "shared", e.mode !== "exclusive");
  p.knot.replaceChildren(e.holder ? icon("key") : String(e.position ?? "?"));
  put(p.path, brief(e.path));
  const place = e.holder ? `holds it with token ${e.token}` : e.position > 0 ? `position ${e.position}` : "stray";
  put(p.sub, brief(e.revoked ? `${place} · release ${request(e)}` : place));
  p.badges.replaceChildren(...badges(e));
  tick(row, e, now);
}

function tick(row, e, now) {
  put(row.parts.time, span(now - (e.granted ?? e.since)));
  put(row.parts.unit, e.holder ? (e.granted ? "held" : "here") : "waiting");
}
