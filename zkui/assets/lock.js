// One lock: its holders, its queue, and its history.

import { el, icon, put, attr, mark } from "./dom.js";
import { span, measured, count, things, split, clock, legible } from "./format.js";
import { Queue, FIRST } from "./queue.js";
import { charts } from "./charts.js";
import { details, fact, copyable, messages } from "./sheet.js";
import { release } from "./release.js";
import { ask, json, sessionAddress } from "./routes.js";
import { timed } from "./feed.js";
import { explained, deadlocks } from "./troubles.js";
import { lastEvents } from "./log.js";

export { FIRST };

export function open(box, query, feed, page) {
  return new LockPage(box, query.get("path") ?? "", feed, page);
}

class LockPage {
  constructor(box, path, feed, page) {
    this.feed = feed;
    this.page = page;
    this.path = path;
    this.title = path;
    this.name = el("h1");
    this.showName();
    this.badges = el("div", { class: "badges" });
    this.troubles = el("div", { id: "trouble" });
    this.holder = el("section", { class: "holder paper", "aria-label": "Holder" });
    this.charts = charts(150);
    this.totals = el("dl", { class: "facts totals" });
    this.queue = new Queue({
      now: () => feed.now(), more: (n) => feed.more(n),
      open: (e) => this.details(e),
    });
    box.replaceChildren(
      el("nav", { class: "crumbs", "aria-label": "Back" }, el("a", { href: "./", "data-back": true }, icon("back"), "All locks")),
      el("div", { class: "top" }, this.name, this.badges),
      this.troubles,
      el("div", { class: "two" }, el("div", {}, this.holder, this.queue.node, this.makeLog()),
        el("div", { class: "side" }, el("section", { class: "paper", "aria-label": "History" },
          el("div", { class: "section" }, el("h2", { text: "History" }), this.since = el("p")), this.totals), el("div", { class: "paper" }, this.charts.node))));
    this.holder.append(el("p", { class: "under", text: "Loading the lock…" }));
    this.scrolled = false;
    if (feed.troubles.size) this.showTroubles();
  }

  makeLog() {
    this.events = el("ol", { class: "events" });
    this.logLink = el("a", { "data-go": true, text: "Log" });
    return this.log = el("section", { class: "paper", "aria-label": "Last events" }, el("div", { class: "section" }, el("h2", { text: "Last events" }), el("p", {}, this.logLink)), this.events);
  }

  showLog(lock) {
    this.log.hidden = lock.log.length === 0;
    attr(this.logLink, "href", `log?q=${encodeURIComponent(lock.path)}`);
    this.events.replaceChildren(...lastEvents(lock.log, this.feed.now()));
  }

  showName() {
    const [dir, leaf] = split(this.path);
    this.name.replaceChildren(el("span", { class: "dir", text: dir }), legible(leaf));
  }

  // holders lists each holder once: a hold of three permits has three entries.
  holders() {
    const seen = new Set();
    return this.feed.lock.entries.filter((e) => {
      const key = `${e.session} ${e.token}`;
      const first = e.holder && !seen.has(key);
      if (e.holder) seen.add(key);
      return first;
    });
  }

  update(what) {
    const lock = this.feed.lock;
    if (what === "troubles") this.showTroubles();
    if (!lock || what !== "lock") return;
    if (lock.path !== this.path) { // a name without a slash stands for a path
      this.path = lock.path;
      this.showName();
      this.showTroubles();
    }
    this.showHead(lock);
    this.showHolder(lock);
    this.queue.set(lock, this.one);
    this.showLog(lock);
    this.showPast(lock.past);
  }

  showHead(lock) {
    const holders = this.holders();
    const all = [];
    const badge = (cls, text) => all.push(el("span", { class: `badge ${cls}`, text }));
    if (holders.length === 0) badge("", lock.unknown ? "no known holder" : "not held");
    else if (holders.some((e) => e.safe?.jeopardy)) badge("bad", "held, in jeopardy");
    else if (lock.kind === "semaphore") badge("share", lock.permits ? `${count(lock.holders)} of ${things(lock.permits, "permit")}` : things(lock.holders, "permit"));
    else if (holders.some((e) => e.mode === "shared")) badge("share", "shared");
    else badge("held", "held");
    if (lock.waiting) badge("wait", `${count(lock.waiting)} waiting`);
    if (lock.kind !== "queue") badge("", lock.kind);
    for (const layout of lock.layouts ?? []) badge("", layout);
    this.badges.replaceChildren(...all);
  }

  // showTroubles explains what is wrong with the lock. The first time, it scrolls to the
  // reason that the address names.
  showTroubles() {
    const cycles = this.feed.deadlocks.filter((steps) => steps.some((s) => s.waits === this.path));
    this.troubles.replaceChildren(...deadlocks(cycles), ...explained(this.feed.troubles.get(this.path) ?? []));
    if (!this.scrolled && location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "center" });
    this.scrolled = true;
  }

  details(e) { details(e, this.feed.now(), this.page, () => this.buttons(e)); }

  buttons(e, first) {
    const button = (name, label, cls) => el("button", {
      class: `button ${cls}`, type: "button", "data-act": name,
      click: () => release(e, { lock: () => this.feed.lock, rights: this.feed.rights, page: this.page, at: name === "break" }),
    }, label);
    return el("div", { class: "acts" }, first, button("revoke", "Ask for release…", ""), button("break", "Break…", "danger"));
  }

  showHolder(lock) {
    const holders = this.holders();
    const first = holders[0];
    this.one = holders.length === 1 ? first : undefined;
    const jeopardy = holders.some((e) => e.safe?.jeopardy);
    mark(this.holder, "free", !first && !lock.unknown);
    mark(this.holder, "shared", first && first.mode !== "exclusive");
    mark(this.holder, "bad", jeopardy);
    this.heldFor = el("span");
    this.deadline = el("span");
    if (lock.unknown) this.holder.replaceChildren(el("h2", { text: "No known holder" }), el("p", { class: "under", text: `It may be held: ${lock.unknown}.` }));
    else if (!first) this.holder.replaceChildren(el("h2", { text: "Not held" }), el("p", { class: "under", text: lock.waiting ? "Clients wait for it: see the queue." : "The next acquire gets it at once." }));
    else if (holders.length > 1) this.holder.replaceChildren(...this.several(lock, holders));
    else this.holder.replaceChildren(...this.single(lock, first));
    this.tick();
  }

  several(lock, holders) {
    const what = lock.kind === "semaphore" ? "hold permits" : "hold it together";
    const left = lock.permits ? `${count(lock.holders)} of ${things(lock.permits, "permit")} in use` : "Each has its own token; choose one in the queue to see it.";
    return [el("h2", { text: `${count(holders.length)} ${what}` }), el("p", { class: "under", text: left }), lock.permits ? gauge(lock) : null].filter(Boolean);
  }

  single(lock, e) {
    const o = e.owner ?? {};
    const under = [o.user, o.command, e.recipe?.library && `${e.recipe.library} ${e.recipe.kind ?? ""}`.trim()].filter(Boolean);
    const permits = lock.permits ? fact("Permits", `${count(lock.holders)} of ${count(lock.permits)}`) : null;
    return [
      el("div", { class: "upper" },
        el("div", {}, el("span", { class: "label", text: "Holder" }), el("h2", { text: e.who }), el("p", { class: "under", text: under.join(" · ") })),
        this.buttons(e, el("button", { class: "button", type: "button", "data-details": "", text: "Details…", click: () => this.details(e) }))),
      el("dl", { class: "facts" },
        fact(e.granted ? "Held for" : "Present for", this.heldFor, el("small", { text: e.granted ? `since ${clock(e.granted, this.feed.now())}` : `since ${clock(e.since, this.feed.now())}, including its wait` })),
        fact("Fencing token", ...copyable(e.token, this.page.say)),
        e.safe ? fact("Deadline", this.deadline, el("small", { text: "until another client can hold, if the servers fall silent" })) : null,
        fact("Session", e.session === "0x0" ? "none" : el("a", { class: "mono", href: sessionAddress(e.session), "data-go": true, text: e.session })),
        permits, messages(e, this.page.say)),
      e.data && e.data !== e.who ? el("pre", { class: "raw", text: e.data, "aria-label": "Owner’s data" }) : null,
    ].filter(Boolean);
  }

  showPast(past) {
    const time = (t) => (t.count ? `${measured(t.p50)} · ${measured(t.p99)}` : "–");
    put(this.since, `since ${clock(past.since, this.feed.now())}`);
    this.totals.replaceChildren(
      fact("Grants", count(past.grants)), fact("Losses", el("span", { class: past.losses ? "bad-text" : null, text: count(past.losses) })),
      fact("Wait p50 · p99", time(past.wait)), fact("Hold p50 · p99", time(past.hold)));
    this.charts.set(past, this.feed.now());
  }

  tick() {
    this.queue.tick();
    const e = this.one, now = this.feed.now();
    if (!e || !this.feed.lock) return;
    put(this.heldFor, span(now - (e.granted ?? e.since)));
    this.showDeadline();
    if (e.safe) this.renew();
  }

  showDeadline() {
    const { safe } = this.one;
    if (!safe) return;
    put(this.deadline, `${safe.jeopardy ? "in jeopardy: " : ""}${measured(Math.max(0, safe.until - this.feed.now()))} left`);
    mark(this.deadline, "bad-text", safe.jeopardy);
  }

  // renew asks for the deadline of the hold, if it is known. It moves with every
  // heartbeat, which the stream does not report.
  async renew() {
    if (this.renewing) return;
    this.renewing = true;
    try {
      const answer = await ask(json("lock", { path: this.path, entries: 1 }));
      const now = (answer.lock?.entries ?? []).map(timed).find((e) => e.node === this.one?.node);
      if (now && !this.closed) {
        const changed = this.one.safe?.jeopardy !== now.safe?.jeopardy;
        this.one.safe = now.safe;
        mark(this.holder, "bad", now.safe?.jeopardy);
        if (changed && this.feed.lock) this.showHead(this.feed.lock);
        this.showDeadline();
      }
    } catch {
      // The deadline comes nearer, as it does for the holder.
    }
    this.renewing = false;
  }

  key(e) {
    return this.queue.keys.key(e);
  }

  close() {
    this.closed = true;
    this.queue.close();
  }
}

// MOST is how many permits are drawn one by one.
const MOST = 60;

// gauge draws a semaphore's permits, with those in use filled.
function gauge(lock) {
  const drawn = Math.min(lock.permits, MOST), full = Math.round(drawn * Math.min(1, lock.holders / lock.permits));
  return el("div", { class: "gauge", "aria-hidden": "true" }, Array.from({ length: drawn }, (_, i) => el("i", { class: i < full ? "full" : null })));
}
