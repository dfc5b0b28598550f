// Charts of history, as drawings in the page. Times are milliseconds since 1970.

import { el, svg, put, attr } from "./dom.js";
import { measured, short, minute, clock, count } from "./format.js";

// PAD is the room around the field of a chart, in pixels.
const PAD = { left: 46, right: 10, top: 10, bottom: 22 };


// spark draws a line of numbers without axes, wherever it is to go.
export function spark() {
  const under = svg("path", { class: "under" }), line = svg("path");
  const node = svg("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" }, under, line);
  const set = (values) => {
    const most = Math.max(...values, 1);
    const step = 100 / Math.max(1, values.length - 1);
    const at = values.map((v, i) => `${(i * step).toFixed(1)} ${(29 - 27 * v / most).toFixed(1)}`);
    const some = values.some((v) => v > 0);
    attr(line, "d", some ? `M${at.join("L")}` : "");
    attr(under, "d", some ? `M0 30L${at.join("L")}L100 30Z` : "");
    attr(line, "vector-effect", "non-scaling-stroke");
  };
  return { node, set };
}

// steps are round numbers for an axis from 0 to at least most.
function steps(most) {
  const rough = Math.max(most, 1) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough));
  const all = [];
  for (let v = 0; all.length < 2 || all.at(-1) < most; v += step) all.push(v);
  return all;
}

// decades are the round times that an axis of logarithms shows.
const decades = [1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 360_000_000];

// timeScale puts times of widely different length on one axis, by logarithm.
function timeScale(values) {
  const least = Math.min(...values, 1000), most = Math.max(...values, 10);
  const low = decades.findLast((d) => d <= least) ?? 1;
  const high = decades.find((d) => d >= most && d > low) ?? decades.at(-1);
  const place = (v) => (Math.log(Math.max(v, low)) - Math.log(low)) / (Math.log(high) - Math.log(low));
  let ticks = decades.filter((d) => d >= low && d <= high);
  // The lowest and the highest stay, so that all lines are between them.
  if (ticks.length > 5) ticks = [0, 1, 2, 3, 4].map((i) => ticks[Math.round(i * (ticks.length - 1) / 4)]);
  return { place, ticks, write: short };
}

// countScale is for numbers of things.
function countScale(values) {
  const ticks = steps(Math.max(...values, 0));
  const most = ticks.at(-1);
  return { place: (v) => v / most, ticks, write: count };
}

// chart makes one. series are { name, class, as, value(bucket) }, as "line", "bars",
// or "marks", which are seen however few they are; times says that values are times.
// A value of null or undefined is a gap. The height is in pixels.
export function chart(title, series, times, height) {
  const field = svg("svg", { class: "field-of-chart", height, role: "img", "aria-label": title });
  const tip = el("div", { class: "tip", hidden: true });
  const legend = el("p", { class: "legend" }, series.map((s) => el("span", { class: s.class }, el("i"), s.name)));
  const plot = el("div", { class: "plot" }, field, tip);
  const node = el("figure", { class: "chart" }, el("figcaption", {}, el("span", { text: title }), legend), plot);
  let shown = { buckets: [], from: 0, to: 1 };
  const redraw = () => draw(field, series, times, shown);
  new ResizeObserver(redraw).observe(plot); // ends with the element
  plot.addEventListener("pointermove", (e) => point(e, field, tip, series, times, shown));
  plot.addEventListener("pointerleave", () => { tip.hidden = true; field.querySelector(".hair")?.remove(); });
  // set shows these buckets, or nothing at all if none has a value, and reports which.
  const set = (buckets, from, to) => {
    shown = { buckets, from, to: Math.max(to, from + 1) };
    node.hidden = !buckets.some((b) => series.some((s) => (times ? Number.isFinite(s.value(b)) : s.value(b) > 0)));
    if (!node.hidden) redraw();
    return !node.hidden;
  };
  return { node, set };
}

// within keeps a part between 0 and 1, so that nothing is drawn outside of the field.
const within = (part) => Math.min(1, Math.max(0, part));

// geometry says where in the field a time and a value are.
function geometry(field, series, times, shown) {
  const width = Math.max(120, field.parentNode.clientWidth);
  const values = shown.buckets.flatMap((b) => series.map((s) => s.value(b))).filter(Number.isFinite);
  const scale = times ? timeScale(values) : countScale(values);
  const height = Number(field.getAttribute("height"));
  const wide = width - PAD.left - PAD.right, high = height - PAD.top - PAD.bottom;
  const x = (t) => PAD.left + wide * within((t - shown.from) / (shown.to - shown.from));
  const y = (v) => PAD.top + high * (1 - within(scale.place(v)));
  return { width, height, scale, x, y, base: PAD.top + high };
}

function draw(field, series, times, shown) {
  if (!field.isConnected) return;
  const g = geometry(field, series, times, shown);
  attr(field, "width", g.width);
  attr(field, "viewBox", `0 0 ${g.width} ${g.height}`);
  const parts = [...axes(g, shown)];
  // The first series is drawn last: where p50 equals p99, it is the thinner one and both are seen.
  for (const s of series.toReversed()) parts.push(...drawings[s.as](g, s, shown));
  field.replaceChildren(...parts);
}

function* axes(g, shown) {
  for (const v of g.scale.ticks) {
    const y = Math.round(g.y(v)) + 0.5;
    yield svg("line", { class: "grid", x1: PAD.left, x2: g.width - PAD.right, y1: y, y2: y });
    yield svg("text", { class: "tick y", x: PAD.left - 7, y: y + 3.5, text: g.scale.write(v) });
  }
  const marks = Math.max(2, Math.min(6, Math.floor(g.width / 110)));
  for (let i = 0; i < marks; i++) {
    const t = shown.from + (shown.to - shown.from) * i / (marks - 1);
    const place = i === 0 ? "start" : i === marks - 1 ? "end" : "middle";
    const write = shown.to - shown.from < 5 * 60_000 ? clock(t) : minute(t);
    yield svg("text", { class: `tick x ${place}`, x: g.x(t), y: g.height - 5, text: write });
  }
}

function* bars(g, s, shown) {
  for (const b of shown.buckets) {
    const v = s.value(b);
    if (!v) continue;
    const left = Math.max(PAD.left, g.x(b.t)), right = g.x(Math.min(shown.to, b.t + b.length));
    const top = g.y(v);
    yield svg("rect", { class: s.class, x: left + 0.5, y: top, width: Math.max(1, right - left - 1), height: Math.max(1, g.base - top), rx: Math.min(2, (right - left) / 4) });
  }
}

function* line(g, s, shown) {
  let path = "", run = [];
  const at = (b) => [g.x(b.t + b.length / 2).toFixed(1), g.y(s.value(b)).toFixed(1)];
  const points = shown.buckets.filter((b) => Number.isFinite(s.value(b)));
  for (const [i, b] of points.entries()) {
    const next = points[i + 1];
    run.push(at(b));
    // A line says that something was there all the way: it does not go over gaps.
    if (next && next.t - b.t <= 2 * b.length) continue;
    if (run.length === 1) yield svg("circle", { class: s.class, cx: run[0][0], cy: run[0][1], r: s.class === "p99" ? 4.5 : 2.5 });
    path += "M" + run.map((p) => p.join(" ")).join("L");
    run = [];
  }
  if (path) yield svg("path", { class: s.class, d: path });
}

function* marks(g, s, shown) {
  for (const b of shown.buckets) {
    if (!s.value(b)) continue;
    const x = g.x(b.t + b.length / 2);
    yield svg("line", { class: s.class, x1: x, x2: x, y1: PAD.top, y2: g.base });
    yield svg("circle", { class: s.class, cx: x, cy: PAD.top, r: 4 });
  }
}

const drawings = { bars, line, marks };

// point shows the values under the pointer.
function point(e, field, tip, series, times, shown) {
  const g = geometry(field, series, times, shown);
  const at = e.clientX - field.getBoundingClientRect().left;
  const b = shown.buckets.find((one) => at >= g.x(one.t) && at < g.x(one.t + one.length));
  field.querySelector(".hair")?.remove();
  tip.hidden = !b;
  if (!b) return;
  const x = g.x(b.t + b.length / 2);
  field.prepend(svg("line", { class: "hair", x1: x, x2: x, y1: PAD.top, y2: g.base }));
  tip.replaceChildren(el("b", { text: `${clock(b.t)} – ${clock(b.t + b.length)}` }), ...series.map((s) => {
    const v = s.value(b), text = el("span");
    put(text, Number.isFinite(v) ? (times ? measured(v) : count(v)) : "–");
    return el("span", { class: s.class }, el("i"), `${s.name} `, text);
  }));
  tip.style.left = `${Math.min(Math.max(0, x - 70), g.width - 150)}px`;
}
