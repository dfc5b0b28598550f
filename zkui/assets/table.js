// A table with a filter, for the items of one address: the log, and the sessions.

import { el, icon, put, attr, mark } from "./dom.js";
import { count, things } from "./format.js";
import { Rows } from "./rows.js";
import { Keys } from "./keys.js";
import { ask, json } from "./routes.js";

// EVERY is the least time between two requests for the items, in milliseconds.
const EVERY = 1000;

export class Table {
  // options has
  //   title, thing         the name of the page, and of one item
  //   hint, columns        the text in the empty filter, and the heads of the columns
  //   empty                elements that stand for a table without any item
  //   above                an element above the table
  //   kinds, kindOf(item)  labels of the kinds of items, by id, and the id of an item's kind
  //   name, parameters     the address of the items
  //   items(answer)        the items of the address's answer
  //   text(item)           the words that the filter finds
  //   reload(what)         whether a change in the feed changes the items
  //   link(item)           where Enter goes
  //   key, make, show      as for Rows
  constructor(box, query, page, options) {
    this.page = page;
    this.options = options;
    this.title = options.title;
    this.all = [];
    this.find = query.get("q") ?? "";
    this.kind = Object.hasOwn(options.kinds ?? {}, query.get("event") ?? "") ? query.get("event") : "";
    this.input = el("input", {
      class: "field", id: "filter", type: "search", placeholder: options.hint, "aria-label": "Filter", spellcheck: "false", autocomplete: "off",
      input: () => { this.find = this.input.value; this.changed(); },
      keydown: (e) => { if (e.key === "Escape") { this.input.blur(); e.stopPropagation(); } },
    });
    this.input.value = this.find;
    this.chips = options.kinds && [["", "All"], ...Object.entries(options.kinds)].map(([id, label]) =>
      el("button", { type: "button", "data-event": id, text: label, click: () => { this.kind = id; this.changed(); } }));
    this.shown = el("span", { class: "shown", role: "status" });
    this.body = el("div", { class: "rows", role: "rowgroup" });
    this.none = el("div", { class: "none paper", hidden: true });
    const head = options.columns.map((h) => el("span", { role: "columnheader", text: h }));
    this.table = el("div", { class: `table ${options.name} paper`, role: "table", "aria-label": this.title }, el("div", { class: "head", role: "row", "aria-rowindex": 1 }, head), this.body);
    box.replaceChildren(el("h1", { class: "hidden", text: this.title }), options.above ?? "",
      el("div", { class: "tools" }, el("div", { class: "seek" }, icon("search"), this.input, el("kbd", { text: "/" })),
        this.chips && el("div", { class: "chips", role: "group", "aria-label": "Show" }, this.chips), this.shown), this.table, this.none);
    this.rows = new Rows(this.body, options);
    this.keys = new Keys(this.rows, options.key);
    this.show();
    this.take();
  }

  changed() {
    const q = new URLSearchParams(this.options.parameters);
    if (this.find) q.set("q", this.find);
    if (this.kind) q.set("event", this.kind);
    this.page.remember(q);
    this.show();
  }

  // take requests the items, and once more if something changes meanwhile.
  async take() {
    if (this.asking) { this.again = true; return; }
    this.asking = true;
    this.again = false;
    try {
      this.all = this.options.items(await ask(json(this.options.name, this.options.parameters)));
      for (const item of this.all) item.text = this.options.text(item).filter(Boolean).join("\n").toLowerCase();
      this.known = true;
      if (!this.closed) this.show();
    } catch {
      this.again = true; // the feed says that the server is away
    }
    setTimeout(() => { this.asking = false; if (this.again && !this.closed) this.take(); }, EVERY);
  }

  update(what) { if (this.options.reload(what)) this.take(); }

  show() {
    const { thing, kindOf, empty } = this.options;
    const words = this.find.toLowerCase().split(/\s+/).filter(Boolean);
    const items = this.all.filter((item) => (!this.kind || kindOf(item) === this.kind) && words.every((w) => item.text.includes(w)));
    for (const chip of this.chips ?? []) attr(chip, "aria-pressed", String(chip.dataset.event === this.kind));
    attr(this.table, "aria-rowcount", items.length + 1);
    this.table.hidden = items.length === 0;
    this.rows.set(items);
    put(this.shown, !this.known ? "" : items.length === this.all.length ? things(items.length, thing) : `${count(items.length)} of ${things(this.all.length, thing)}`);
    this.none.hidden = items.length > 0;
    mark(this.none, "loading", !this.known);
    this.none.replaceChildren(...(!this.known ? [el("strong", { text: `Loading ${this.title.toLowerCase()}` })] : this.all.length ? [el("strong", { text: `No ${thing} matches` })] : empty));
  }

  tick() {}

  key(e) {
    if (e.key === "/") this.input.focus();
    else if (e.key === "Enter" && this.keys.item()) this.page.go(this.options.link(this.keys.item()));
    else return this.keys.key(e);
    return true;
  }

  close() {
    this.closed = true;
    this.rows.end();
  }
}
