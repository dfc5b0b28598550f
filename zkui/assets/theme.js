// Light, dark, or as the system is. The choice is kept in this browser.

import { icon, attr } from "./dom.js";

const KEY = "zklock-theme";
const names = { auto: "as the system", light: "light", dark: "dark" };
const drawings = { auto: "auto", light: "sun", dark: "moon" };
const system = matchMedia("(prefers-color-scheme: dark)");

// read returns the choice; a browser that keeps nothing has none.
function read() {
  try {
    const chosen = localStorage.getItem(KEY);
    return Object.hasOwn(names, chosen ?? "") ? chosen : "auto";
  } catch {
    return "auto";
  }
}

function keep(choice) {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // It holds for as long as the page is open.
  }
}

let choice = read();

function apply(button) {
  const dark = choice === "dark" || (choice === "auto" && system.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  button.replaceChildren(icon(drawings[choice]));
  attr(button, "aria-label", `Colors: ${names[choice]}`);
  attr(button, "title", `Colors: ${names[choice]} (t)`);
}

// next goes on to the next choice.
export function next(button) {
  const order = Object.keys(names);
  choice = order[(order.indexOf(choice) + 1) % order.length];
  keep(choice);
  apply(button);
}

// start colors the page and makes the button work.
export function start(button) {
  apply(button);
  button.addEventListener("click", () => next(button));
  system.addEventListener("change", () => apply(button));
}
