// The list of all locks: filter, sort, and one row each.

import { el, icon, put, mark, attr, flash } from "./dom.js";
import { span, measured, count, things, split, brief, layoutWords } from "./format.js";
import { copyable } from "./sheet.js";
import { Rows } from "./rows.js";
import { Keys } from "./keys.js";
import { figure } from "./figures.js";
import { spark } from "./chart.js";
import { lockAddress } from "./routes.js";
import { rank, grave, reason, deadlocks } from "./troubles.js";

// LONG is a wait that is shown in color.
const LONG = 5 * 60_000;

// CYCLES is how many deadlocks are drawn. The others are on the page of the sessions.
const CYCLES = 3;

// FEW is how many locks need no groups.
const FEW = 20;

// REASONS is how many troubles of a lock are in its row.
const REASONS = 2;

// kinds are the filters of the list.
const kinds = {
  all: ["All", () => true],
  queued: ["Queued", (l) => l.waiting > 0],
  free: ["Unheld", (l) => l.holders === 0],
  warned: ["In trouble", (l, troubles) => troubles.has(l.path)],
};

const held = (l) => l.heldSince ?? Infinity;
const by = (value) => (a, b) => value(a) - value(b);
const text = (value) => (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);

// orders are the columns, and how each sorts when it is first selected: the longest or
// most first, and names from a to z. The first order has no column.
const orders = {
  trouble: ["Trouble first", (a, b) => a.rank - b.rank],
  path: ["Lock", text((l) => l.path)],
  who: ["Holder", text((l) => l.who ?? "\uffff")],
  held: ["Held for", by(held)],
  waiting: ["Queue", by((l) => -l.waiting)],
  oldest: ["Longest wait", by((l) => l.oldest ?? Infinity)],
  next: ["Next waiter", text((l) => l.next ?? "\uffff")],
};

// matches reports whether all of the words are in the text of a row.
export function matches(l, words) {
  return words.every((w) => l.text.includes(w));
}

export function open(box, query, feed, page) {
  const list = new List(box, query, feed, page);
  list.update();
  return list;
}

class List {
  constructor(box, query, feed, page) {
    this.feed = feed;
    this.page = page;
    this.title = "Locks";
    this.find = query.get("q") ?? "";
    this.kind = Object.hasOwn(kinds, query.get("only") ?? "") ? query.get("only") : "all";
    this.order = Object.hasOwn(orders, query.get("sort") ?? "") ? query.get("sort") : "trouble";
    this.reversed = query.get("desc") === "1";
    this.grouped = query.get("group") === "1";
    this.opened = new Set(); // the groups that were opened or closed by hand
    this.body = el("div", { class: "rows", role: "rowgroup" });
    this.table = el("div", { class: "table locks paper", role: "table", "aria-label": "Locks" }, this.makeHead(), this.body);
    this.none = el("div", { class: "none paper", hidden: true });
    this.cycles = el("div");
    box.replaceChildren(el("h1", { class: "hidden", text: "Locks" }), this.cycles, this.makeFigures(), this.makeTools(), this.table, this.none);
    this.rows = new Rows(this.body, {
      key: keyOf, make: () => makeRow((group) => this.toggle(group)),
      show: (row, l) => { if (!showGroup(row, l)) showRow(row, l, this.feed.troubles.get(l.path) ?? [], this.feed.now()); },
      tick: (row, l) => { if (!l.group) tickRow(row, l, this.feed.now()); },
    });
    this.keys = new Keys(this.rows, keyOf);
  }

  makeFigures() {
    this.spark = spark();
    this.held = figure("Held");
    this.waits = figure("Waiting");
    this.longest = figure("Longest wait");
    this.grants = figure("Grants", this.spark.node);
    this.longest.link = el("a", { class: "figure paper" }, ...this.longest.node.childNodes);
    return el("div", { class: "figures" }, this.held.node, this.waits.node, this.longest.link, this.grants.node);
  }

  makeTools() {
    this.input = el("input", {
      class: "field", id: "filter", type: "search", placeholder: "Filter by lock, holder, command, token",
      "aria-label": "Filter", autocomplete: "off", spellcheck: "false",
      input: () => { this.find = this.input.value; this.changed(); },
      keydown: (e) => this.inField(e),
    });
    this.input.value = this.find;
    this.chips = Object.entries(kinds).map(([id, [label]]) => {
      const n = el("span", { class: "n" });
      const chip = el("button", { type: "button", "data-only": id, click: () => { this.kind = id; this.changed(); } }, label, n);
      return { id, chip, n };
    });
    this.groups = el("button", { class: "button group-by", type: "button", text: "Group by prefix", click: () => { this.grouped = !this.grouped; this.changed(); } });
    this.select = el("select", { class: "field order", "aria-label": "Sort by", change: () => this.sort(this.select.value, false) },
      Object.entries(orders).map(([id, [label]]) => el("option", { value: id, text: label })));
    this.shown = el("span", { class: "shown", role: "status" });
    return el("div", { class: "tools" },
      el("div", { class: "seek" }, icon("search"), this.input, el("kbd", { text: "/" })),
      el("div", { class: "chips", role: "group", "aria-label": "Show" }, this.chips.map((c) => c.chip)), this.groups, this.select, this.shown);
  }

  makeHead() {
    this.heads = Object.entries(orders).slice(1).map(([id, [label]]) => {
      const button = el("button", { type: "button", click: () => this.sort(id, this.order === id && !this.reversed) }, label);
      const cell = el("span", { role: "columnheader", class: id === "held" || id === "oldest" ? "number" : null, "data-sort": id }, button);
      return { id, cell, button, label };
    });
    return el("div", { class: "head", role: "row", "aria-rowindex": 1 }, el("span", { role: "columnheader" }, el("span", { class: "hidden", text: "State" })), this.heads.map((h) => h.cell));
  }

  sort(order, reversed) {
    this.order = order;
    this.reversed = reversed;
    this.changed();
  }

  // inField is what keys do in the filter: Escape empties it, then leaves it.
  inField(e) {
    if (e.key === "Escape") {
      if (this.find) { this.find = this.input.value = ""; this.changed(); } else this.input.blur();
    } else if (e.key === "Enter" || e.key === "ArrowDown") {
      e.preventDefault();
      this.keys.move(0);
    } else return;
    e.stopPropagation();
  }

  showAll() {
    this.find = this.input.value = "";
    this.kind = "all";
    this.changed();
  }

  // changed keeps the filter in the address, so that it can be shared.
  changed() {
    const q = new URLSearchParams();
    if (this.find) q.set("q", this.find);
    if (this.kind !== "all") q.set("only", this.kind);
    if (this.order !== "trouble") q.set("sort", this.order);
    if (this.reversed) q.set("desc", "1");
    if (this.grouped) q.set("group", "1");
    this.page.remember(q);
    this.update();
  }

  // update shows the feed's locks as they are now.
  update() {
    const all = [...this.feed.locks.values()], troubles = this.feed.troubles;
    for (const l of all) l.rank = rank(troubles.get(l.path));
    const words = this.find.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length ? all.filter((l) => matches(l, words)) : all;
    const items = found.filter((l) => kinds[this.kind][1](l, troubles));
    const order = orders[this.order][1], tie = orders.path[1], turn = this.reversed ? -1 : 1;
    items.sort((a, b) => turn * order(a, b) || tie(a, b));
    const lines = this.grouped ? this.inGroups(items, words.length > 0) : items;
    this.table.hidden = lines.length === 0;
    this.rows.set(lines);
    attr(this.table, "aria-rowcount", lines.length + 1);
    attr(this.groups, "aria-pressed", String(this.grouped));
    this.groups.hidden = all.length <= FEW && !this.grouped;
    this.showTools(found, items, all);
    this.showFigures(all);
    this.showNone(items, all);
    this.showCycles();
  }

  // inGroups gathers locks by prefix, in the order of the first of each, and shows those of
  // the open groups. A filter opens all.
  inGroups(items, filtered) {
    const lines = [];
    for (const [group, locks] of Map.groupBy(items, (l) => prefixOf(l.path, this.feed.status?.prefix))) {
      if (locks.length === 1) {
        lines.push(...locks);
        continue;
      }
      const open = filtered !== this.opened.has(group);
      const sum = (f) => locks.reduce((n, l) => n + f(l), 0);
      lines.push({ group, open, size: locks.length, held: sum((l) => (l.holders > 0 ? 1 : 0)), waiting: sum((l) => l.waiting), warned: sum((l) => (this.feed.troubles.has(l.path) ? 1 : 0)), grave: locks.some((l) => grave(this.feed.troubles.get(l.path))) });
      if (open) lines.push(...locks);
    }
    return lines;
  }

  toggle(group) {
    if (!this.opened.delete(group)) this.opened.add(group);
    this.update();
  }

  showCycles() {
    const found = this.feed.deadlocks;
    if (this.drawn === found) return;
    this.drawn = found;
    const more = found.length > CYCLES && el("a", { class: "inline", href: "sessions", "data-go": true, text: `All ${things(found.length, "deadlock")}` });
    this.cycles.replaceChildren(...deadlocks(found.slice(0, CYCLES), more));
  }

  showTools(found, items, all) {
    for (const { id, chip, n } of this.chips) {
      attr(chip, "aria-pressed", id === this.kind);
      put(n, !this.missing() ? count(found.filter((l) => kinds[id][1](l, this.feed.troubles)).length) : "");
    }
    for (const { id, cell, button, label } of this.heads) {
      const on = id === this.order;
      attr(cell, "aria-sort", on ? (this.reversed ? "descending" : "ascending") : null);
      button.replaceChildren(label, ...(on ? [icon(this.reversed ? "up" : "down")] : []));
    }
    this.select.value = this.order;
    put(this.shown, items.length === all.length || this.missing() ? "" : `${count(items.length)} of ${things(all.length, "lock")}`);
  }

  showFigures(all) {
    const missing = this.missing();
    if (missing) {
      for (const f of [this.held, this.waits, this.longest, this.grants]) f.set({ text: "–", below: missing });
      return;
    }
    const taken = all.filter((l) => l.holders > 0);
    const queued = all.filter((l) => l.waiting > 0);
    this.held.set({ text: count(taken.length), of: `of ${things(all.length, "lock")}`, below: this.feed.status ? `below ${this.feed.status.prefix}` : "" });
    this.waits.set({ text: count(queued.reduce((n, l) => n + l.waiting, 0)), of: "in queues", below: queued.length ? `for ${things(queued.length, "lock")}` : "no waiters" });
    this.first = queued.reduce((a, b) => ((b.oldest ?? Infinity) < (a?.oldest ?? Infinity) ? b : a), undefined);
    attr(this.longest.link, "href", this.first ? lockAddress(this.first.path) : null);
    attr(this.longest.link, "data-go", this.first ? "" : null);
    this.showGrants();
    this.showLongest();
  }

  // missing says why there is nothing to count yet, or nothing.
  missing() {
    if (!this.feed.boot) return this.feed.link === "lost" ? "no connection" : "connecting…";
    return this.feed.locks.size === 0 && !this.feed.status?.walked ? "loading…" : "";
  }

  showGrants() {
    if (this.missing()) return;
    const h = this.feed.history;
    if (!h) return;
    const wait = h.wait.count ? `wait p50 ${measured(h.wait.p50)}, p99 ${measured(h.wait.p99)}` : "no waits yet";
    this.grants.set({ text: count(h.grants), of: h.losses ? things(h.losses, "loss", "losses") : "", below: wait, alarm: h.losses > 0 });
    this.spark.set(h.perMinute(this.feed.now()));
  }

  showLongest() {
    if (this.missing()) return;
    const l = this.first;
    this.longest.set(l?.oldest ? { text: span(this.feed.now() - l.oldest), below: l.path } : { text: "–", below: "no waiters" });
  }

  showNone(items, all) {
    this.none.hidden = items.length > 0;
    if (items.length > 0) return;
    const [head, more] = all.length > 0 ? ["No lock matches", el("p", {}, el("button", { class: "button", type: "button", text: "Clear the filter", click: () => this.showAll() }))]
      : this.feed.status?.walked ? ["No lock is held", `No client holds or waits for a lock below ${this.feed.status.prefix}.`]
      : this.feed.boot ? ["Loading locks", "The first listing is in progress."] : ["Connecting", "The page waits for its server."];
    const prefix = this.feed.status?.prefix;
    const first = all.length === 0 && this.feed.status?.walked ? [
      el("p", {}, "Hold one for a minute:"), el("p", { class: "offer" }, ...copyable(["zklock run", ...layoutWords(this.feed.rights?.layout), "demo -- sleep 60"].join(" "), this.page.say)),
      prefix !== "/" && el("p", {}, "To look for locks of Curator, kazoo, and go-zookeeper at all paths, show the whole tree:"),
      prefix !== "/" && el("p", { class: "offer" }, ...copyable("zklock ui /", this.page.say)),
    ].filter(Boolean) : [];
    this.none.replaceChildren(el("strong", { text: head }), more, ...first);
  }

  tick() {
    this.rows.tick();
    this.showLongest();
  }

  // key handles a key, and reports whether it had an effect.
  key(e) {
    if (e.key === "/") this.input.focus();
    else if (e.key === "Escape" && (this.find || this.kind !== "all")) this.showAll();
    else if (e.key === "Enter" && this.keys.item()?.group) this.toggle(this.keys.item().group);
    else if (e.key === "Enter" && this.keys.item()) this.page.go(lockAddress(this.keys.item().path));
    else return this.keys.key(e);
    return true;
  }

  close() { this.rows.end(); }
}

// PIPS is how many waiters are drawn one by one.
const PIPS = 8;

// keyOf tells lines apart; no path begins with a space.
const keyOf = (l) => (l.group ? ` ${l.group}` : l.path);

// prefixOf is the group of a lock: the first level below the page's prefix, or, for a lock
// at that level, its name without the number at its end.
export function prefixOf(path, prefix = "") {
  const root = prefix === "/" ? "" : prefix, rest = path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path.slice(1);
  const at = rest.indexOf("/");
  return `${path.slice(0, path.length - rest.length)}${at >= 0 ? rest.slice(0, at + 1) : rest.replace(/\d+$/, "…")}`;
}

// showGroup fills the row of a group, and reports whether the item is one.
function showGroup(row, l) {
  const p = row.parts;
  mark(row, "group", l.group);
  p.group.hidden = !l.group;
  p.toggle.of = l.group;
  if (!l.group) return false;
  row.shown = undefined;
  mark(row, "warned", l.warned > 0);
  mark(row, "grave", l.grave);
  attr(p.toggle, "aria-expanded", String(l.open));
  put(p.groupName, brief(l.group));
  put(p.groupAbout, [things(l.size, "lock"), `${count(l.held)} held`, l.waiting && `${count(l.waiting)} waiting`, l.warned && `${count(l.warned)} in trouble`].filter(Boolean).join(" · "));
  return true;
}

function makeRow(toggle) {
  const parts = {
    sign: el("span", { class: "sign" }), dir: el("span", { class: "dir" }), leaf: el("span", { class: "leaf" }), kind: el("span"),
    who: el("span", { class: "who" }), command: el("span", { class: "sub" }),
    link: el("a", { class: "name path", "data-go": true }), why: el("span", { class: "why" }),
    held: el("span"), heldSub: el("span", { class: "sub" }),
    n: el("span", { class: "n" }), pips: Array.from({ length: PIPS }, () => el("i")), rest: el("span", { class: "rest" }),
    oldest: el("span"), next: el("span"),
  };
  parts.queue = el("span", { class: "pips", role: "cell" }, parts.n, parts.pips, parts.rest);
  const cell = (...inside) => el("span", { class: "cell", role: "cell" }, ...inside);
  parts.link.append(el("bdi", {}, parts.dir, parts.leaf));
  parts.groupName = el("span", { class: "name leaf" });
  parts.groupAbout = el("span", { class: "dimmed" });
  parts.toggle = el("button", { class: "toggle", type: "button", click: () => toggle(parts.toggle.of) }, icon("open"), parts.groupName, parts.groupAbout);
  parts.group = el("span", { class: "group-cell", role: "cell", hidden: true }, parts.toggle);
  const row = el("div", { class: "row", role: "row" },
    el("span", { role: "cell" }, parts.sign),
    cell(parts.link, el("span", { class: "sub" }, parts.kind, parts.why)), cell(parts.who, parts.command),
    el("span", { class: "cell number", role: "cell" }, parts.held, parts.heldSub), parts.queue,
    el("span", { class: "cell number", role: "cell" }, parts.oldest), cell(parts.next), parts.group);
  row.parts = parts;
  return row;
}

// kindOf describes a lock that is not simply held by one client.
function kindOf(l) {
  const said = [];
  if (l.kind === "semaphore") said.push(l.permits ? `semaphore, ${l.holders} of ${l.permits} permits` : `semaphore, ${things(l.holders, "permit")}`);
  else if (l.kind === "node") said.push("node");
  else if (l.mode === "shared") said.push(`shared by ${l.others + 1}`);
  return said.join(" · ");
}

function showRow(row, l, troubles, now) {
  const p = row.parts;
  const [dir, leaf] = split(brief(l.path));
  attr(p.link, "href", lockAddress(l.path));
  put(p.dir, dir);
  put(p.leaf, leaf);
  put(p.kind, kindOf(l));
  showReasons(row, l, troubles);
  mark(p.sign, "free", l.holders === 0);
  mark(p.sign, "shared", l.mode === "shared" || l.mode === "permit");
  const who = l.holders ? brief(l.who ?? "") + (l.others ? ` and ${things(l.others, "other")}` : "") : "free";
  // A hand-over is highlighted. A row that now shows another lock is not.
  if (row.shown === l.path && row.token !== l.token && l.token) flash(row);
  row.shown = l.path;
  row.token = l.token;
  put(p.who, who);
  mark(p.who, "dimmed", l.holders === 0);
  put(p.command, brief(l.command ?? ""));
  showQueue(p, l);
  put(p.next, brief(l.next ?? ""));
  tickRow(row, l, now);
}

// showReasons says why a lock is in trouble.
function showReasons(row, l, troubles) {
  mark(row, "warned", troubles.length > 0);
  mark(row, "grave", grave(troubles));
  const { why } = row.parts;
  if (why.of === l.path && why.shown === troubles) return;
  why.of = l.path;
  why.shown = troubles;
  const more = troubles.length > REASONS && el("span", { text: `+${troubles.length - REASONS}` });
  why.replaceChildren(...[...troubles.slice(0, REASONS).map((t) => reason(l.path, t)), more].filter(Boolean));
}

function showQueue(p, l) {
  mark(p.queue, "none-waits", l.waiting === 0);
  put(p.n, count(l.waiting));
  p.pips.forEach((pip, i) => { pip.hidden = i >= l.waiting; });
  put(p.rest, l.waiting > PIPS ? `+${count(l.waiting - PIPS)}` : "");
}

function tickRow(row, l, now) {
  const p = row.parts;
  put(p.held, l.holders ? span(now - l.heldSince) : "–");
  put(p.heldSub, l.holders && !l.granted ? "includes the wait" : "");
  put(p.oldest, l.oldest ? span(now - l.oldest) : "–");
  mark(p.oldest, "wait-text", l.oldest && now - l.oldest >= LONG);
  mark(p.oldest, "dimmed", !l.oldest);
}
