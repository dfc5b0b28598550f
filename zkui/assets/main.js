// The page: which part of it is open, what keys do, and the state of the servers.

import { el, put, attr, icon } from "./dom.js";
import { span, legible, count } from "./format.js";
import { here } from "./routes.js";
import { Feed } from "./feed.js";
import { help } from "./sheet.js";
import * as theme from "./theme.js";
import * as list from "./list.js";
import * as lock from "./lock.js";
import * as sessions from "./sessions.js";
import * as session from "./session.js";
import * as history from "./history.js";
import * as log from "./log.js";

const parts = {
  "": { ...list, tab: "list", wanted: () => ({ list: true, history: true }) },
  lock: { open: lock.open, tab: "list", wanted: (q) => ({ path: q.get("path") ?? "", entries: lock.FIRST }) },
  sessions: { ...sessions, tab: "sessions", wanted: () => ({}) },
  session: { ...session, tab: "sessions", wanted: () => ({}) },
  history: { ...history, tab: "history", wanted: () => ({ history: true }) },
  log: { ...log, tab: "log", wanted: () => ({ history: true }) },
};

const view = document.getElementById("view");
const live = document.getElementById("live");
const notices = el("div");
const box = el("div");
view.append(notices, box);

let current;          // what is open
const feed = new Feed((what) => {
  if (what === "link" || what === "status") showLink();
  if (what === "troubles") showTitle();
  current?.update(what);
});

// depth is how many steps within the page led here.
const depth = () => window.history.state?.depth ?? 0;

const page = {
  go(address) {
    window.history.pushState({ top: 0, depth: depth() + 1 }, "", address);
    open();
  },
  // remember keeps the filter in the address.
  remember(q) {
    const text = q.toString();
    window.history.replaceState(window.history.state, "", (here().name || "./") + (text ? `?${text}` : ""));
  },
  say,
};

function open() {
  const { name, query } = here();
  const part = Object.hasOwn(parts, name) ? parts[name] : parts[""];
  current?.close();
  current = part.open(box, query, feed, page);
  showTitle();
  for (const a of document.querySelectorAll("[data-tab]")) attr(a, "aria-current", a.dataset.tab === part.tab ? "page" : null);
  window.scrollTo(0, window.history.state?.top ?? 0);
  feed.follow(part.wanted(query));
}

// showTitle counts the locks in trouble in the tab's title.
function showTitle() {
  const n = feed.troubles.size;
  document.title = `${n ? `(${n}) ` : ""}${legible(current.title)} – zklock`;
}

// say shows a message for a moment.
let saying;
function say(text) {
  const said = document.getElementById("said");
  put(said, text);
  said.classList.add("on");
  clearTimeout(saying);
  saying = setTimeout(() => said.classList.remove("on"), 3500);
}

// showLink shows how current the page is.
function showLink() {
  const s = feed.status;
  const lost = feed.link === "lost", away = s && !s.connected;
  attr(live, "data-state", lost ? "lost" : away ? "late" : s?.live ? "live" : "slow");
  put(document.getElementById("live-text"), lost ? "connection lost" : away ? "servers away" : !s ? "connecting" : !s.walked ? "loading" : s.live ? "live" : "polling");
  if (feed.rights?.title) put(document.getElementById("servers"), feed.rights.title);
  const all = [];
  const notice = (cls, text) => all.push(el("p", { class: `notice ${cls}` }, icon("warn"), el("span", { text })));
  if (lost) notice("bad", `This page lost its server ${span(Date.now() - feed.lostAt)} ago and is reconnecting. It shows the state at that time.`);
  else if (away) notice("bad", `No ZooKeeper server has answered for ${span(feed.clock() - Date.parse(s.heard))}. The page shows the state at that time.`);
  if (s?.why) notice("", `The list may be incomplete: ${s.why}.`);
  if (s?.behind > 20) notice("", `High load: ${count(s.behind)} locks have changed and are not read again yet.`);
  notices.replaceChildren(...all);
}

// back goes to the list as it was, if it was open before.
function back() {
  if (depth() > 0) window.history.back();
  else if (here().name !== "") page.go(here().name === "session" ? "sessions" : "./");
}

document.addEventListener("click", (e) => {
  const a = e.target.closest("a[data-go], a[data-back]");
  if (!a || !a.hasAttribute("href") || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  window.history.replaceState({ top: window.scrollY, depth: depth() }, "");
  if (a.hasAttribute("data-back")) back();
  else page.go(a.getAttribute("href"));
});

document.addEventListener("keydown", (e) => {
  if (e.defaultPrevented || e.metaKey || e.ctrlKey || e.altKey || document.querySelector("dialog[open]") || e.target.closest("input, select, textarea")) return;
  const tab = { 1: "./", 2: "sessions", 3: "history", 4: "log" }[e.key];
  if (current.key(e)) e.preventDefault();
  else if (tab) page.go(tab);
  else if (e.key === "Escape") back();
  else if (e.key === "?") help();
  else if (e.key === "t") theme.next(document.getElementById("theme"));
});

window.addEventListener("popstate", open);
setInterval(() => {
  current.tick();
  if (feed.link === "lost" || feed.status?.connected === false) showLink();
}, 1000);
window.history.scrollRestoration = "manual";
document.getElementById("help").addEventListener("click", help);
theme.start(document.getElementById("theme"));
open();
