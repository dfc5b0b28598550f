// Locks in trouble: the reasons in words, where each is explained, and the cycle of a
// deadlock as a drawing.

import { el, svg, icon } from "./dom.js";
import { things } from "./format.js";
import { lockAddress, sessionAddress } from "./routes.js";

// ORDER has the kinds of trouble, the worst first, as the server has them.
const ORDER = ["deadlock", "jeopardy", "long-hold", "growing-queue", "release-requested", "warning"];

// GRAVE are the kinds that are drawn in red.
const GRAVE = new Set(["deadlock", "jeopardy"]);

// DRAWN is how many sessions of a deadlock are drawn as a ring.
const DRAWN = 8;

// explanations say what a reason means, and what to do.
const explanations = {
  jeopardy: "The holder has not heard from the servers for a third of its session timeout. If that continues to its deadline, the hold ends and the next waiter gets the lock.",
  "long-hold": "This holder has had the lock more than twice as long as 99 of 100 earlier holders. Look at the holder’s process; then request a release.",
  "growing-queue": "Clients arrive faster than the lock is released. Look at how long each holds it in the charts, or divide the work among several locks.",
  "release-requested": "The holder was asked to release the lock. It decides whether and when it does; clients of some libraries ignore the request.",
  warning: "The entries on this path do not exclude each other as their clients may expect. All clients of one lock must use recipes that do.",
};

// rank is smaller for worse trouble.
export const rank = (troubles) => (troubles?.length ? ORDER.indexOf(troubles[0].kind) : ORDER.length);

export const grave = (troubles) => GRAVE.has(troubles?.[0]?.kind);

// reason names one trouble, and links to its explanation on the lock's page.
export function reason(path, t) {
  return el("a", { class: `reason ${GRAVE.has(t.kind) ? "grave" : ""}`, href: `${lockAddress(path)}#${t.kind}`, "data-go": true, title: t.text, text: t.text });
}

// explained lists the troubles of a lock with their explanations. Each kind is
// explained once. Deadlocks are left out: see deadlocks.
export function explained(troubles) {
  const kinds = Map.groupBy(troubles.filter((t) => t.kind !== "deadlock"), (t) => t.kind);
  return [...kinds].map(([kind, all]) => el("div", { class: `notice ${GRAVE.has(kind) ? "bad" : ""}`, id: kind }, icon("warn"),
    el("div", {}, all.map((t) => el("b", { class: "said-first", text: t.text })), el("p", { text: explanations[kind] ?? "" }))));
}

// deadlocks draws some cycles of sessions in one notice, and says what to do. more is a
// link to those that are not drawn. It returns nothing if there is no cycle.
export function deadlocks(cycles, more) {
  if (!cycles.length) return [];
  return [el("section", { class: "notice bad deadlock", id: "deadlock", "aria-label": "Deadlock" },
    el("b", { text: `${cycles.length > 1 ? "Deadlocks" : "Deadlock"}: these sessions wait for each other, so none of them can continue` }),
    cycles.map(cycle), more,
    el("p", { text: "End one of the sessions, or break one of its holds. To prevent a deadlock, acquire the locks together, or always in the same order." }))];
}

// cycle draws the sessions of one deadlock: a ring, and the same in words.
function cycle(steps) {
  const items = steps.map((s, i) => el("li", {},
    el("span", { class: "knot", text: String(i + 1) }),
    el("span", {}, el("a", { href: sessionAddress(s.session), "data-go": true }, el("b", { text: s.who })), " waits for ",
      el("a", { href: lockAddress(s.waits), "data-go": true, class: "mono", text: s.waits }),
      el("small", {}, ", held by ", el("b", { text: s.holderWho })))));
  return el("div", { class: "cycle" }, steps.length <= DRAWN ? ring(steps) : null, el("ol", {}, items));
}

// ring draws the sessions as numbered circles, the locks as squares between them, and
// arrows from each session to the next.
function ring(steps) {
  const n = steps.length, at = (turn, r = 46) => [60 + r * Math.sin(2 * Math.PI * turn), 60 - r * Math.cos(2 * Math.PI * turn)].map((v) => v.toFixed(1));
  const parts = [svg("circle", { class: "orbit", cx: 60, cy: 60, r: 46 })];
  for (let i = 0; i < n; i++) {
    const [x, y] = at(i / n), [lx, ly] = at((i + 0.5) / n), [ax, ay] = at((i + 0.78) / n);
    const angle = (360 * (i + 0.78)) / n;
    parts.push(svg("rect", { class: "ring-lock", x: lx - 6, y: ly - 6, width: 12, height: 12, rx: 3 }),
      svg("path", { class: "ring-arrow", d: "M-4 -4L4 0L-4 4Z", transform: `translate(${ax} ${ay}) rotate(${angle.toFixed(1)})` }),
      svg("circle", { class: "ring-session", cx: x, cy: y, r: 11 }), svg("text", { class: "ring-number", x, y: Number(y) + 4, text: String(i + 1) }));
  }
  return svg("svg", { class: "ring", viewBox: "0 0 120 120", "aria-hidden": "true" }, ...parts);
}
