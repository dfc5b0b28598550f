// The token that the server may require before it shows anything. It is kept while the
// tab is open, and sent in a header: no other site can make a browser do so.

import { el, put } from "./dom.js";

const KEY = "zklock-token";

let kept;

// token returns it, or an empty text.
export function token() {
  if (kept !== undefined) return kept;
  try {
    kept = sessionStorage.getItem(KEY) ?? "";
  } catch {
    kept = "";
  }
  return kept;
}

function keep(text) {
  kept = text;
  try {
    sessionStorage.setItem(KEY, text);
  } catch {
    // It is kept until the page is loaded again.
  }
}

// headers returns those of a request, with the token if there is one.
export function headers(more = {}) {
  const all = { Accept: "application/json", ...more };
  if (token() && !all.Authorization) all.Authorization = `Bearer ${token()}`;
  return all;
}

let asking;

// login asks the user for the token, once at a time, and returns when there is one.
export function login() {
  asking ??= new Promise((resolve) => {
    const input = el("input", { class: "field", type: "password", name: "token", autocomplete: "off", spellcheck: "false" });
    const wrong = el("p", { class: "wrong", role: "alert" });
    const go = el("button", { class: "button", type: "submit", text: "Show the locks", disabled: true });
    const form = el("form", { class: "sheet-form", input: () => { go.disabled = !input.value.trim(); } },
      el("p", { text: "This page requires its read token, or its action token if it has no read token." }),
      el("label", {}, "Token", el("small", { text: "Kept until this tab is closed." }), input), wrong,
      el("div", { class: "buttons" }, go));
    const dialog = el("dialog", { "aria-label": "Token required", id: "login" }, el("div", { class: "sheet" }, el("h2", { text: "Token required" }), form));
    dialog.addEventListener("cancel", (e) => e.preventDefault()); // there is nothing to show without it
    if (token()) put(wrong, "The server does not know the previous token.");
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      keep(input.value.trim());
      dialog.remove();
      asking = undefined;
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
  return asking;
}
