// The last events: who acquired, released, or lost which lock, and when.

import { el, put, attr, mark } from "./dom.js";
import { measured, brief, clock } from "./format.js";
import { Table } from "./table.js";
import { lockAddress, sessionAddress } from "./routes.js";

// kinds are the events, with what they are called and the class of their badges.
const kinds = {
  acquired: ["acquired", "held"], released: ["released", ""], lost: ["lost", "bad"], broken: ["broken", "bad"], "release-requested": ["release requested", "wait"],
};

// named is what an event is called.
const named = (e) => (Object.hasOwn(kinds, e.event) ? kinds[e.event] : [e.event, ""]);

// detail says how long the wait or the hold was that an event ended, or which client
// requested a release, and why. Any client can write the last two.
function detail(e) {
  if (e.event === "release-requested") return `${e.by ? `by ${e.by}` : ""}${e.reason ? `: ${e.reason}` : ""}`.replace(/^: /, "");
  return e.seconds ? `${e.event === "acquired" ? "after a wait of" : "held for"} ${measured(e.seconds * 1000)}` : "";
}

// badge names an event.
export function badge(e) {
  const [text, cls] = named(e);
  return el("span", { class: `badge ${cls}`, text });
}

// lastEvents lists events of one lock.
export function lastEvents(events, now) {
  return events.map((e) => el("li", {}, el("time", { text: clock(Date.parse(e.at), now) }), badge(e),
    e.session ? el("a", { href: sessionAddress(e.session), "data-go": true, text: brief(e.who ?? e.session) }) : el("span", { class: "dimmed", text: "unknown: too short to be read" }),
    el("span", { class: "dimmed", text: detail(e) })));
}

export function open(box, query, feed, page) {
  const path = query.get("path");
  return new Table(box, query, page, {
    title: "Log", thing: "event", hint: "Filter by lock, holder, token, reason", columns: ["Time", "Event", "Lock", "Holder", "Details"],
    empty: [el("strong", { text: "No events yet" }), "Acquires, releases, losses, and release requests appear here as they happen."],
    kinds: Object.fromEntries(Object.entries(kinds).map(([id, [label]]) => [id, label[0].toUpperCase() + label.slice(1)])), kindOf: (e) => e.event,
    name: "log", parameters: path ? { path } : {}, items: (answer) => answer.log ?? [],
    text: (e) => [e.path, e.who, e.by, e.reason, e.session, e.token, e.event],
    reload: (what) => what === "locks" || what === "history", link: (e) => lockAddress(e.path),
    key: (e) => e.number, make, show: (row, e) => show(row, e, feed.now()),
  });
}

function make() {
  const parts = { at: el("time"), badge: el("span", { class: "badge" }), path: el("bdi"), link: el("a", { class: "name path", "data-go": true }), who: el("span"), detail: el("span") };
  parts.link.append(parts.path);
  const cell = (inside) => el("span", { class: "cell", role: "cell" }, inside);
  const row = el("div", { class: "row", role: "row" }, cell(parts.at), cell(parts.badge), cell(parts.link), cell(parts.who), cell(parts.detail));
  row.parts = parts;
  return row;
}

function show(row, e, now) {
  const p = row.parts, [text, cls] = named(e);
  put(p.at, clock(Date.parse(e.at), now));
  put(p.badge, text);
  attr(p.badge, "class", `badge ${cls}`);
  put(p.path, brief(e.path));
  attr(p.link, "href", lockAddress(e.path));
  put(p.who, e.who ? brief(e.who) : "unknown: too short to be read");
  mark(p.who, "dimmed", !e.who);
  put(p.detail, detail(e));
  attr(p.detail, "title", detail(e) || null);
}
