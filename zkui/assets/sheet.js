// Dialogs: an entry's details, and the two actions on a holder.

import { el, put, icon } from "./dom.js";
import { ask, sessionAddress } from "./routes.js";
import { token } from "./token.js";
import { clock, shellWord } from "./format.js";

// secret is the token that the server requires for actions. It is kept only while the
// page is open.
let secret = "";

// show opens a dialog with these parts, which closes with Escape.
function show(title, ...parts) {
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

// field is a labelled input.
function field(label, hint, props) {
  const input = el("input", { class: "field", autocomplete: "off", spellcheck: "false", ...props });
  return { input, node: el("label", {}, label, hint ? el("small", { text: hint }) : null, input) };
}

// deeds are the actions on a holder.
const deeds = {
  revoke: {
    title: "Request release", verb: "Request release", danger: false,
    about: "Only this holder receives the request. The holder decides whether and when it releases the lock.",
    done: "The holder was asked to release the lock",
  },
  break: {
    title: "Break the hold", verb: "Break the hold", danger: true,
    about: "The holder’s znode is deleted, and the next waiter is granted the lock at once. That does not stop the holder: until it notices the loss, only a resource that checks fencing tokens refuses its writes.",
    done: "The hold was broken",
  },
};

// ignored says that a holder cannot be asked, because its library does not read requests.
function ignored(lock, e) {
  const close = el("button", { class: "button", type: "button", text: "Close", click: () => dialog.close() });
  const library = [e.recipe?.library, e.recipe?.kind].filter(Boolean).join(" ") || "The library of the holder";
  const dialog = show(`${deeds.revoke.title}: ${lock.path}`,
    el("p", { text: `${library} ignores release requests, so ${e.who} cannot be asked, and nothing is written to its znode.` }),
    el("p", { text: "Stop the client, or break the hold." }), el("div", { class: "buttons" }, close));
}

// about is what an action does to this holder.
function about(name, e) {
  const revocable = name === "revoke" && e.recipe?.library === "Curator";
  return deeds[name].about + (revocable ? " It sees the request only if it is a Curator mutex that was made revocable." : "");
}

// instead says how to permit actions on this page, and offers the command that does the
// same.
export function instead(name, lock, e, page) {
  if (name === "revoke" && e.ignoresRequests) return ignored(lock, e);
  const deed = deeds[name], close = el("button", { class: "button", type: "button", text: "Close", click: () => dialog.close() });
  const command = `zklock ${name} ${shellWord(lock.path)} --token ${shellWord(e.token)}`;
  const dialog = show(`${deed.title}: ${lock.path}`, el("p", { text: about(name, e) }),
    el("p", { text: "This page is read-only. In a shell, with the same servers:" }), el("p", { class: "raw command" }, ...copyable(command, page.say)),
    el("p", {}, "To permit actions here, restart the page with ", el("code", { text: "zklock ui --actions" }), " or ", el("code", { text: "--token-file" }), ". In a Go program, set ", el("code", { text: "zkui.Options.Token" }), "."),
    el("div", { class: "buttons" }, close));
}

// act asks for a confirmation and then acts. The user must type the fencing token,
// so that a user breaks only the hold that the page shows.
export function act(name, lock, e, page) {
  if (name === "revoke" && e.ignoresRequests) return ignored(lock, e);
  const deed = deeds[name];
  const typed = field(`Type the fencing token of ${e.who}`, "", { name: "typed", inputmode: "numeric" });
  const key = field("Action token of this page", "Kept until this tab is closed.", { name: "secret", type: "password", value: secret || token() });
  const wrong = el("p", { class: "wrong", role: "alert" });
  const go = el("button", { class: deed.danger ? "button danger full" : "button", type: "submit", text: deed.verb, disabled: true });
  const ready = () => { go.disabled = typed.input.value.trim() !== e.token || !key.input.value; };
  const cancel = el("button", { class: "button", type: "button", text: "Cancel", click: () => dialog.close() });
  const form = el("form", { class: "sheet-form", input: ready },
    el("p", { text: about(name, e) }), el("p", { class: "big-token", text: e.token }), typed.node, key.node, wrong,
    el("div", { class: "buttons" }, cancel, go));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    secret = key.input.value;
    const failed = await send(name, lock, e, typed.input.value.trim());
    put(wrong, failed ?? "");
    if (failed === undefined) { dialog.close(); page.say(deed.done); } else ready();
  });
  const dialog = show(`${deed.title}: ${lock.path}`, form);
  typed.input.focus();
}

// send performs the action, and returns the error text.
async function send(name, lock, e, token) {
  try {
    await ask(`./${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json", Authorization: `Bearer ${secret}` },
      body: JSON.stringify({ path: lock.path, node: e.node, token }),
    });
  } catch (err) {
    return err.message;
  }
  return undefined;
}
