// The history of all locks since the page's server started.

import { el, put } from "./dom.js";
import { count, measured, clock, things } from "./format.js";
import { figure } from "./figures.js";
import { charts } from "./charts.js";

export function open(box, query, feed) {
  const page = new History(box, feed);
  page.update("history");
  return page;
}

class History {
  constructor(box, feed) {
    this.feed = feed;
    this.title = "History";
    this.figures = { grants: figure("Grants"), wait: figure("Wait p50"), hold: figure("Hold p50"), losses: figure("Losses") };
    this.charts = charts(190);
    this.about = el("p");
    this.cost = el("p", { class: "cost" });
    box.replaceChildren(el("h1", { class: "hidden", text: "History" }),
      el("div", { class: "figures" }, Object.values(this.figures).map((f) => f.node)),
      el("div", { class: "section outside" }, el("h2", { text: "All locks" }), this.about), el("div", { class: "wide" }, this.charts.node),
      this.cost);
  }

  update(what) {
    const past = this.feed.history, now = this.feed.now();
    if (what === "status" || what === "history") this.showCost(this.feed.status);
    if (what !== "history" || !past) return;
    const f = this.figures;
    const time = (t) => ({ text: t.count ? measured(t.p50) : "–", below: t.count ? `p99 ${measured(t.p99)}, max ${measured(t.max)}` : "none yet" });
    f.grants.set({ text: count(past.grants), below: `${count(past.releases)} ended, ${count(past.gaveUp)} canceled` });
    f.wait.set(time(past.wait));
    f.hold.set(time(past.hold));
    f.losses.set({ text: count(past.losses), of: past.losses ? "not released" : "", below: past.losses ? `${count(past.broken)} of them broken here` : "none", alarm: past.losses > 0 });
    put(this.about, `seen from here since ${clock(past.since, now)}`);
    this.charts.set(past, now);
  }

  // showCost shows what watching costs the ensemble.
  showCost(s) {
    if (!s) return;
    put(this.cost, `Below ${s.prefix}. This page has sent the servers ${things(s.reads, "read")} for ${things(s.events, "event")}. It sends at most ${count(s.readRate)} reads a second, and at most ${count(s.walkReads)} for the first listing.`);
  }

  tick() {}
  key() { return false; }
  close() {}
}
