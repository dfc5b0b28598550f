// The queue of a lock, drawn in order: a rail with a stop for each entry, and the holders
// at its upper end.

import { el, icon, put, mark, attr } from "./dom.js";
import { span, brief, things } from "./format.js";
import { Rows } from "./rows.js";
import { Keys } from "./keys.js";
import { request } from "./sheet.js";

// FIRST is how many entries are requested at first. MORE is how many times as many are
// requested when the end of those becomes visible.
export const FIRST = 200;
const MORE = 4;

export class Queue {
  // options has now(), open(entry) and more(entries).
  constructor(options) {
    this.options = options;
    this.body = el("div", { class: "rows", role: "list" });
    this.about = el("p");
    this.end = el("p", { class: "queue-end" });
    this.notes = el("div");
    this.node = el("section", { class: "queue paper", "aria-label": "Queue" },
      el("div", { class: "section" }, el("h2", { text: "Queue" }), this.about), this.body, this.end, this.notes);
    this.rows = new Rows(this.body, {
      key: (e) => e.node, make: () => this.make(),
      show: (row, e, i) => this.show(row, e, i), tick: (row, e) => this.tickRow(row, e),
    });
    this.keys = new Keys(this.rows, (e) => e.node);
  }

  // set shows a lock's entries, except one, and placeholders for those that were not
  // requested yet.
  set(lock, without) {
    // The card of a single holder has all that the queue would say of it.
    const entries = without ? lock.entries.filter((e) => e !== without) : lock.entries;
    const missing = Math.max(0, (lock.total ?? lock.entries.length) - lock.entries.length);
    const items = entries.concat(Array.from({ length: missing }, (_, i) => ({ node: `?${i}`, missing: true })));
    this.asked = lock.entries.length;
    this.oldest = entries.reduce((t, e) => (e.position > 0 ? Math.min(t, e.since) : t), Infinity);
    put(this.about, lock.waiting ? `${things(lock.waiting, "waits", "wait")}, in order of arrival` : "");
    this.end.hidden = items.length > 0 || !!lock.unknown;
    put(this.end, lock.holders ? "No client waits for this lock." : "No client holds this lock or waits for it.");
    this.notes.replaceChildren(...(lock.notes ?? []).map((text) => el("p", { class: "queue-end", text: `Note: ${text}` })));
    this.rows.setTall(items.some((e) => e.revoked));
    this.rows.set(items);
  }

  make() {
    const parts = {
      knot: el("span", { class: "knot" }), link: el("button", { class: "open who", type: "button", click: () => { if (!row.item.missing) this.options.open(row.item); } }), sub: el("span", { class: "sub" }),
      badges: el("span", { class: "badges" }), time: el("span"), unit: el("small"), meter: el("i"),
    };
    const row = el("div", { class: "row stop", role: "listitem" },
      el("span", { class: "rail" }, parts.knot), el("span", { class: "cell" }, parts.link, parts.sub), parts.badges,
      el("span", { class: "passing" }, el("span", { class: "since" }, parts.time, " ", parts.unit), el("span", { class: "meter" }, parts.meter)));
    row.parts = parts;
    return row;
  }

  show(row, e, i) {
    const p = row.parts, items = this.rows.items;
    mark(row, "first", i === 0);
    mark(row, "last", i === items.length - 1);
    mark(row, "missing", e.missing);
    if (e.missing) { this.showMissing(p); return; }
    mark(row, "holds", e.holder);
    mark(row, "shared", e.mode === "shared" || e.mode === "permit");
    mark(row, "stray", e.position === -1);
    // Successive readers are granted together.
    mark(row, "with-last", together(items[i - 1], e));
    mark(row, "with-next", together(e, items[i + 1]));
    this.showKnot(p, e);
    put(p.link, brief(e.who));
    put(p.sub, brief([e.revoked && `release ${request(e)}`, e.owner?.user, e.owner?.command, recipe(e)].filter(Boolean).join(" · ")));
    p.badges.replaceChildren(...badges(e));
    attr(p.link, "aria-label", `${e.holder ? "holds" : e.position > 0 ? `position ${e.position}` : stray(e)}: ${e.who}`);
    this.tickRow(row, e);
  }

  showKnot(p, e) {
    const sign = e.holder ? "key" : e.position > 0 ? String(e.position) : "?";
    if (p.sign === sign) return;
    p.sign = sign;
    p.knot.replaceChildren(e.holder ? icon("key") : sign);
  }

  // showMissing requests the entries that became visible and are missing.
  showMissing(p) {
    put(p.link, "…");
    put(p.sub, "");
    p.badges.replaceChildren();
    put(p.time, "");
    put(p.unit, "");
    p.meter.style.transform = "scaleX(0)";
    this.showKnot(p, { position: -1 });
    if (this.pending === this.asked) return;
    this.pending = this.asked;
    this.options.more(this.asked * MORE);
  }

  tickRow(row, e) {
    if (e.missing) return;
    const p = row.parts, now = this.options.now();
    const since = e.holder ? e.granted ?? e.since : e.since;
    put(p.time, span(now - since));
    put(p.unit, e.holder ? (e.granted ? "held" : "here") : e.position > 0 ? "waiting" : "here");
    p.meter.style.transform = `scaleX(${e.position > 0 ? Math.min(1, (now - e.since) / Math.max(now - this.oldest, 1000)).toFixed(3) : 0})`;
  }

  tick() { this.rows.tick(); }
  close() { this.rows.end(); }
}

// together reports whether two neighbours are readers that wait or hold together.
function together(a, b) {
  return a?.mode === "shared" && b?.mode === "shared" && a.holder === b.holder;
}

// recipe names the library that wrote an entry, if it was not zklock.
function recipe(e) {
  const { library, kind } = e.recipe ?? {};
  return library && library !== "zklock" ? `${library} ${kind ?? ""}`.trim() : "";
}

// stray names an entry without a position: other entries belong to another lock.
const stray = (e) => e.recipe?.kind ? "other" : "stray";

// badges are what an entry is besides exclusive.
export function badges(e) {
  const all = [];
  if (e.revoked) all.push(el("span", { class: "badge wait", text: "release requested" }));
  if (e.mode === "shared") all.push(el("span", { class: "badge share", text: "shared" }));
  if (e.mode === "permit") all.push(el("span", { class: "badge share", text: "permit" }));
  if (e.position === -1) all.push(el("span", { class: "badge", text: stray(e) }));
  return all;
}
