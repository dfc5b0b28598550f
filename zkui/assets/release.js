// The dialog that asks a holder for the release of a lock, waits, and then breaks the hold.

import { el, put } from "./dom.js";
import { show, copyable } from "./sheet.js";
import { ask } from "./routes.js";
import { token } from "./token.js";
import { layoutWords, shellWord, things } from "./format.js";

// WAIT is how long the dialog proposes to wait, and LONGEST is the longest wait that the
// server accepts, in seconds. MAX_REASON is the longest reason, in bytes.
const WAIT = 30, LONGEST = 300, MAX_REASON = 256;

// secret is the token that the server requires for actions. It is kept only while the
// page is open.
let secret = "";

// recipe names the library of a holder.
const recipe = (e) => [e.recipe?.library, e.recipe?.kind].filter(Boolean).join(" ") || "The library of the holder";

// release opens the dialog for the holder e. now returns the lock as the page shows it.
// rights tell whether the server permits actions, and the custom layout of the locks. at is
// true to break the hold at once.
export function release(e, { lock, rights, page, at }) {
  new Release(e, { lock, rights, page, at }).focus();
}

class Release {
  constructor(e, { lock, rights, page, at }) {
    Object.assign(this, { e, lock, allowed: rights?.actions, layout: rights?.layout, page });
    this.path = lock().path;
    this.reason = input("Reason", `The holder sees it. At most ${MAX_REASON} bytes.`, { name: "reason", maxlength: MAX_REASON });
    this.wait = input("Wait for the release, in seconds", `From 0 to ${LONGEST}; 0 does not wait.`, { name: "wait", type: "number", min: 0, max: LONGEST, step: 1, value: at || e.ignoresRequests ? 0 : WAIT });
    this.typed = input(`Type the fencing token of ${e.who}`, "", { name: "typed", inputmode: "numeric" });
    this.typed.input.before(el("span", { class: "big-token", text: e.token }));
    this.key = input("Action token of this page", "Kept until this tab is closed.", { name: "secret", type: "password", value: secret || token() });
    this.breaks = el("input", { type: "checkbox", name: "break" });
    this.breaks.checked = at || e.ignoresRequests;
    this.breaks.disabled = e.ignoresRequests;
    this.wrong = el("p", { class: "wrong", role: "alert" });
    this.go = el("button", { class: "button", type: "submit" });
    this.cancel = this.closer("Cancel");
    this.shell = el("p", { class: "raw command" });
    this.body = el("div", { class: "sheet-form" });
    this.dialog = show(`Ask for release: ${this.path}`, this.body);
    this.dialog.addEventListener("close", () => this.end());
    this.body.replaceChildren(this.allowed ? this.form() : this.readOnly());
    this.ready();
  }

  focus() {
    const first = this.e.ignoresRequests ? (this.allowed ? this.typed : undefined) : this.reason;
    first?.input.focus();
  }

  // choices are what both forms ask.
  choices() {
    const e = this.e;
    const revocable = e.recipe?.library === "Curator" ? " It sees the request only if it is a Curator mutex that was made revocable." : "";
    return [
      e.ignoresRequests ? el("p", { text: `${recipe(e)} ignores release requests, so ${e.who} cannot be asked, and nothing is written to its znode. Stop the client, or break the hold.` })
        : el("p", { text: `Only ${e.who} receives the request. The holder decides whether and when it releases the lock.${revocable}` }),
      e.ignoresRequests ? null : [this.reason.node, this.wait.node],
      el("label", { class: "check" }, this.breaks, el("span", {}, "Then break the hold", el("small", { text: "The holder’s znode is deleted, and the next waiter is granted the lock at once. That does not stop the holder: until it notices the loss, only a resource that checks fencing tokens refuses its writes." }))),
    ];
  }

  form() {
    const form = el("form", { input: () => this.ready() }, this.choices(),
      this.typed.node, this.key.node, this.wrong,
      el("div", { class: "buttons" }, this.cancel, this.go));
    form.className = "sheet-form";
    form.noValidate = true;
    form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    return form;
  }

  // readOnly offers the command, and says how to permit actions on this page.
  readOnly() {
    return el("div", { class: "sheet-form", input: () => this.ready() }, this.choices(),
      el("p", { text: "This page is read-only. In a shell, with the same servers:" }), this.shell,
      el("p", {}, "To permit actions here, restart the page with ", el("code", { text: "zklock ui --actions" }), " or ", el("code", { text: "--token-file" }), ". In a Go program, set ", el("code", { text: "zkui.Options.Token" }), "."),
      this.wrong, el("div", { class: "buttons" }, this.closer("Close")));
  }

  closer(text) {
    return el("button", { class: "button", type: "button", text, click: () => this.dialog.close() });
  }

  seconds() { return this.wait.input.value.trim() === "" ? 0 : Number(this.wait.input.value); }

  // atOnce reports whether the hold is broken without a request.
  atOnce() { return this.breaks.checked && this.seconds() === 0; }

  // wrongInput says what is wrong with the choices, or nothing.
  wrongInput() {
    const n = this.seconds(), size = new TextEncoder().encode(this.reason.input.value).length;
    if (!Number.isInteger(n) || n < 0 || n > LONGEST) return `The wait must be a whole number of seconds from 0 to ${LONGEST}.`;
    return size > MAX_REASON ? `The reason has ${size} bytes: write at most ${MAX_REASON}.` : "";
  }

  // ready shows what the choices mean.
  ready() {
    const bad = this.wrongInput();
    put(this.wrong, bad);
    const breaks = this.breaks.checked, waits = this.seconds() > 0;
    put(this.go, !breaks ? (waits ? "Ask and wait" : "Ask") : waits ? "Ask, wait, then break" : "Break the hold now");
    this.go.className = `button ${breaks ? "danger full" : ""}`;
    this.go.disabled = this.typed.input.value.trim() !== this.e.token || !this.key.input.value || bad !== "";
    this.reason.input.disabled = this.atOnce();
    this.shell.replaceChildren(...copyable(this.command(), this.page.say));
  }

  // command does the same in a shell.
  command() {
    const words = [this.atOnce() ? "break" : "revoke", shellWord(this.path), ...layoutWords(this.layout), "--token", shellWord(this.e.token)];
    if (!this.atOnce()) {
      if (this.seconds() > 0) words.push("--wait", `${this.seconds()}s`);
      if (this.breaks.checked) words.push("--then-break");
      if (this.reason.input.value) words.push("--reason", shellWord(this.reason.input.value));
    }
    return `zklock ${words.join(" ")}`;
  }

  async submit() {
    const atOnce = this.atOnce(), wait = this.seconds(), breaks = this.breaks.checked, form = this.body.firstChild;
    const hold = { path: this.path, node: this.e.node, token: this.typed.input.value.trim() };
    secret = this.key.input.value;
    this.go.disabled = true;
    put(this.cancel, "Close");
    try {
      if (atOnce) {
        await this.post("break", hold, "broken");
        this.done("The hold was broken");
        return;
      }
      const request = { ...hold, reason: this.reason.input.value, wait };
      if (wait === 0) {
        await this.post("revoke", request, "asked");
        this.done("The holder was asked to release the lock");
        return;
      }
      this.stop = new AbortController();
      this.showWait(wait, breaks);
      const answer = await this.post("revoke", request, "held", this.stop.signal);
      if (!this.dialog.open) return;
      this.endWait();
      if (breaks && answer.held.length > 0) {
        this.showBreak();
        const { broken } = await this.post("break", { ...hold, before: answer.breakBefore }, "broken");
        this.showOutcome(broken, [], wait);
      } else this.showOutcome([], answer.held, wait);
    } catch (err) {
      this.failed(err, form);
    }
  }

  // post sends an action and returns the answer, which must have this part.
  async post(name, body, part, signal) {
    const answer = await ask(`./${name}`, {
      method: "POST", signal, body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", Accept: "application/json", Authorization: `Bearer ${secret}` },
    });
    if (!answer[part]) throw new TypeError("no answer"); // as fetch does
    return answer;
  }

  // done closes the dialog, if it is still open, and says the result.
  done(text) {
    this.dialog.close();
    this.page.say(text);
  }

  // failed shows the form again with the error. If the dialog is closed, the page says it,
  // unless the user stopped the wait.
  failed(err, form) {
    if (this.stop?.signal.aborted) return;
    const text = !(err instanceof TypeError) ? err.message
      : this.stop ? "The connection to the page’s server ended, and the wait with it. Nothing was broken; the holder may have been asked."
      : "The page’s server does not answer. Look at the lock’s last events before you try again.";
    this.endWait();
    if (!this.dialog.open) {
      this.page.say(text);
      return;
    }
    this.body.replaceChildren(form);
    put(this.cancel, "Cancel");
    this.ready();
    put(this.wrong, text);
  }

  // showWait shows the progress: who holds the lock, and the time that is left.
  showWait(wait, breaks) {
    const began = performance.now(), e = this.e;
    const left = el("b"), holds = el("span"), bar = el("progress", { max: wait, "aria-label": "Time of the wait" });
    const stop = this.closer("Stop waiting");
    this.shell.replaceChildren(...copyable(this.command(), this.page.say));
    this.body.replaceChildren(
      el("p", { class: "waits" }, holds, left), bar,
      el("p", { text: breaks ? `If ${e.who} has not released the lock by then, this page breaks the hold with token ${e.token}, and no other hold.` : "If the lock is not released by then, it stays with the holder." }),
      el("p", { text: "If you stop waiting or close this tab, the holder stays asked, and nothing is broken." }),
      el("p", { text: "The same in a shell:" }), this.shell,
      el("div", { class: "buttons" }, stop));
    stop.focus();
    const tick = () => {
      const rest = Math.max(0, wait - (performance.now() - began) / 1000);
      const held = this.holds();
      put(holds, held ? `${e.who} holds the lock with token ${e.token}. ` : `${e.who} has released the lock. `);
      put(left, held && rest > 0 ? `${things(Math.ceil(rest), "second")} left` : "Reading the lock…");
      bar.value = wait - rest;
    };
    tick();
    this.timer = setInterval(tick, 250);
  }

  // holds reports whether the page shows that the holder still holds.
  holds() {
    const lock = this.lock();
    return !lock || lock.entries.some((e) => e.holder && e.token === this.e.token);
  }

  // showBreak shows that the wait is over.
  showBreak() {
    const close = this.closer("Close");
    this.body.replaceChildren(el("p", { class: "waits", text: "Breaking the hold…" }), el("div", { class: "buttons" }, close));
    close.focus();
  }

  // showOutcome says what became of the hold.
  showOutcome(broken, held, wait) {
    const { who, token } = this.e;
    const [head, more] = broken.length ? [`Broken: ${who} lost the lock, which it held with token ${token}.`, "Its process was not stopped. Until it notices the loss, only a resource that checks fencing tokens refuses its writes."]
      : held.length ? [`Still held: ${who} did not release the lock within ${things(wait, "second")}.`, "It was asked, and can still release the lock."]
      : [`Released: ${who} released the lock.`, "Nothing was broken."];
    if (!this.dialog.open) {
      this.page.say(head);
      return;
    }
    const close = this.closer("Close");
    this.body.replaceChildren(el("p", { class: "outcome", role: "status" }, el("b", { text: head })), el("p", { text: more }), el("div", { class: "buttons" }, close));
    close.focus();
  }

  // end stops the wait when the dialog closes, so that no break follows. An action without
  // a wait cannot be stopped, and the page says what became of it.
  end() {
    this.stop?.abort();
    clearInterval(this.timer);
  }

  // endWait notes that the wait is over: no request is left that end can stop.
  endWait() {
    clearInterval(this.timer);
    this.stop = undefined;
  }
}

// input is a labelled field.
function input(label, hint, props) {
  const field = el("input", { class: "field", autocomplete: "off", spellcheck: "false", ...props });
  return { input: field, node: el("label", {}, label, hint ? el("small", { text: hint }) : null, field) };
}
