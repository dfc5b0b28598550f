// The three charts of a history: grants and losses, waits, holds.

import { el } from "./dom.js";
import { chart } from "./chart.js";

// BARS is how many bars a chart has at most.
const BARS = 62;

// charts makes them, each as high as is said, in pixels.
export function charts(height) {
  const quantiles = (of) => [
    { name: "p50", class: "p50", as: "line", value: (b) => b[of].p50 },
    { name: "p99", class: "p99", as: "line", value: (b) => b[of].p99 },
  ];
  const all = [
    chart("Grants", [
      { name: "losses", class: "losses", as: "marks", value: (b) => b.losses },
      { name: "grants", class: "grants", as: "bars", value: (b) => b.grants },
    ], false, height),
    chart("Waited for", quantiles("wait"), true, height),
    chart("Held for", quantiles("hold"), true, height),
  ];
  const none = el("p", { class: "chart no-chart", text: "The charts appear with the first grant." });
  const node = el("div", { class: "charts" }, all.map((c) => c.node), none);
  const set = (past, now) => {
    const [from, to] = past.range(now);
    const buckets = past.buckets(now, BARS);
    none.hidden = all.map((c) => c.set(buckets, from, to)).includes(true);
  };
  return { node, set };
}
