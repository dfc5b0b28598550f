// Dialogs: the keys, and an entry's details.

import { el, icon } from "./dom.js";
import { sessionAddress } from "./routes.js";
import { clock } from "./format.js";

// show opens a dialog with these parts, which closes with Escape.
export function show(title, ...parts) {
  const dialog = el("dialog", { "aria-label": title }, el("div", { class: "sheet" }, el("h2", { text: title }), ...parts));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// keys are the keyboard shortcuts.
const keys = [
  [["/"], "filter"], [["j", "k"], "down and up; the arrows, Home and End too"], [["Enter"], "open"],
  [["Esc"], "back, or clear the filter"], [["1", "2", "3", "4"], "locks, sessions, history, log"], [["t"], "colors: system, light, dark"], [["?"], "this"],
];

// help shows them.
export function help() {
  const close = el("button", { class: "button", type: "button", text: "Close", click: () => dialog.close() });
  const dialog = show("Keys", el("dl", { class: "key-list" }, keys.map(([names, what]) => [
    el("dt", {}, names.map((k) => el("kbd", { text: k }))), el("dd", { text: what }),
  ])), el("div", { class: "buttons" }, close));
}

// fact is a pair of a list of facts.
export function fact(label, ...values) {
  return el("div", {}, el("dt", { class: "label", text: label }), el("dd", {}, ...values));
}

// request says which client requested the release of an entry, and why. Any client can write
// that. It is empty if there is no request.
export function request(e) {
  if (!e.revoked) return "";
  return `requested${e.revokedBy ? ` by ${e.revokedBy}` : ""}${e.revokeReason ? `: ${e.revokeReason}` : ""}`;
}

// long is a pair as wide as the list of facts. Clients write its text, of up to 1,024 bytes.
function long(label, ...values) {
  const node = fact(label, ...values);
  node.classList.add("long");
  return node;
}

// messages are the facts that clients published with an entry: its value, and a release
// request.
export function messages(e, say) {
  return [
    e.value ? long("Value", ...copyable(e.value, say)) : null,
    e.revoked ? long("Release requested", e.revokedBy ? `by ${e.revokedBy}` : "yes", el("small", { text: e.revokeReason || "The request has no reason." })) : null,
  ];
}

// copyable is a text with a button that copies it, if the browser permits it.
export function copyable(text, say) {
  const button = navigator.clipboard && el("button", {
    class: "copy", type: "button", "aria-label": "Copy", title: "Copy",
    click: () => navigator.clipboard.writeText(text).then(() => say("Copied"), () => say("The browser does not allow this page to copy")),
  }, icon("copy"));
  return [el("span", { class: "mono", text }), button];
}

// ownerFacts shows what an entry's znode says about its owner. Any client can write that.
export function ownerFacts(e, now, say) {
  const o = e.owner ?? {};
  const library = [e.recipe?.library, e.recipe?.kind].filter(Boolean).join(" ");
  return [
    o.user && fact("User", o.user),
    o.command && fact("Command", el("span", { class: "mono", text: o.command })),
    o.host && fact("Host", o.host),
    o.pid ? fact("Process", String(o.pid)) : null,
    fact("Came", clock(e.since, now)),
    e.granted ? fact("Got the lock", clock(e.granted, now)) : null,
    e.session !== "0x0" ? fact("Session", el("a", { class: "mono", href: sessionAddress(e.session), "data-go": true, text: e.session })) : fact("Session", "none: not ephemeral"),
    fact(e.holder ? "Fencing token" : "Would-be token", ...copyable(e.token, say)),
    library && fact("Written by", library, o.version ? el("small", { text: o.version }) : null),
    ...messages(e, say),
  ].filter(Boolean);
}

// details shows everything known about an entry.
export function details(e, now, page, actions) {
  const place = e.holder ? "holds the lock" : e.position > 0 ? `position ${e.position} in the queue` : "a stray znode: not an entry of the lock";
  const close = el("button", { class: "button", type: "button", text: "Close", click: () => dialog.close() });
  const dialog = show(e.who, el("p", { text: place }), el("dl", { class: "facts" }, ownerFacts(e, now, page.say)),
    el("div", {}, el("span", { class: "label", text: "Znode" }), el("pre", { class: "raw", text: e.node })),
    e.data ? el("div", {}, el("span", { class: "label", text: "Data of the owner" }), el("pre", { class: "raw", text: e.data })) : null,
    el("div", { class: "buttons" }, e.holder ? actions() : null, close));
  dialog.addEventListener("click", (event) => { if (event.target.closest("[data-go], [data-act]")) dialog.close(); });
}
