// What the server sends: the list of locks, kept current by its stream of events, and
// what one page needs in addition.

import { ask, json } from "./routes.js";
import { Stream } from "./stream.js";
import { Past } from "./times.js";

// AGAIN is how long to wait before a stream that ended is opened again.
const AGAIN = 2000;

// known returns a summary with its times as numbers, and with all its words for the filter.
function known(s) {
  const time = (t) => (t ? Date.parse(t) : undefined);
  const l = { ...s, since: time(s.since), granted: time(s.granted), oldest: time(s.oldest), warnings: s.warnings ?? 0, others: s.others ?? 0 };
  l.heldSince = l.granted ?? l.since;
  l.text = [s.path, s.who, s.command, s.next, s.token, s.kind, s.mode].filter(Boolean).join("\n").toLowerCase();
  return l;
}

export class Feed {
  // changed is called when something is new: with "locks", "lock", "history",
  // "troubles", "status" or "link".
  constructor(changed) {
    this.changed = changed;
    this.locks = new Map();  // by path; all of them once listed
    this.troubles = new Map(); // by path, the worst of each lock first
    this.deadlocks = [];
    this.listed = false;
    this.link = "opening";   // of the stream: opening, open, lost
    this.ahead = 0;          // of the server's clock before this browser's
    this.wanted = {};
  }

  // now is the time by the server's clock. It stops while the page shows an earlier state,
  // because what it shows may have ended since.
  now() {
    if (this.link === "lost") return this.lostAt + this.ahead;
    return this.status?.connected === false ? Math.min(Date.parse(this.status.heard), this.clock()) : this.clock();
  }

  // clock is the time by the server's clock, which never stops.
  clock() { return Date.now() + this.ahead; }

  // follow sets what the page needs: list, path with entries, history.
  async follow(wanted) {
    this.wanted = wanted;
    this.lock = undefined;
    this.stop();
    try {
      if (!this.rights) this.note(this.rights = await ask(json("status")));
      if (wanted.list && !this.listed) await this.list();
      if (wanted.history) await this.takeHistory();
    } catch {
      this.lost();
      return;
    }
    if (this.wanted === wanted) this.open();
  }

  async takeHistory() {
    const answer = await ask(json("history"));
    this.history = new Past(answer.history);
    this.note(answer);
    this.changed("history");
  }

  // more requests more of a lock's entries.
  more(entries) {
    this.wanted = { ...this.wanted, entries };
    this.stop();
    this.open();
  }

  // list fetches the whole list.
  async list() {
    const answer = await ask(json(""));
    this.locks = new Map(answer.locks.map((s) => [s.path, known(s)]));
    this.listed = true;
    this.boot = answer.boot;
    this.version = answer.version;
    this.note(answer);
    this.changed("locks");
  }

  // open begins the stream.
  open() {
    const { path, entries, history } = this.wanted;
    const q = new URLSearchParams();
    if (this.listed) q.set("since", `${this.boot}-${this.version}`);
    if (path) q.set("path", path);
    if (path && entries) q.set("entries", entries);
    if (history) q.set("history", "1");
    const on = { reset: this.onReset, locks: this.onLocks, lock: this.onLock, history: this.onHistory, troubles: this.onTroubles, status: this.note };
    const stream = this.stream = new Stream(`./events?${q}`, {
      on: (name, message) => { if (stream === this.stream && Object.hasOwn(on, name)) on[name].call(this, message); },
      opened: () => { if (stream === this.stream) this.linked("open"); },
      ended: (status) => this.failed(stream, status),
    });
  }

  stop() {
    this.stream?.close();
    this.stream = undefined;
    clearTimeout(this.timer);
  }

  // failed tries again soon. If the server answered with something else, it starts from
  // the beginning, because the server may be another one.
  failed(stream, status) {
    if (stream !== this.stream) return;
    if (status) {
      this.lost();
      return;
    }
    this.linked("lost");
    this.stop();
    this.timer = setTimeout(() => this.open(), AGAIN);
  }

  // lost starts from the beginning soon: the server may be another one.
  lost() {
    this.linked("lost");
    this.stop();
    this.listed = false;
    this.rights = undefined;
    this.timer = setTimeout(() => this.follow(this.wanted), AGAIN);
  }

  linked(link) {
    if (this.link === link) return;
    this.link = link;
    if (link === "lost") this.lostAt = Date.now();
    this.changed("link");
  }

  // note reads what every message has.
  note(message) {
    if (message.now) this.ahead = Date.parse(message.now) - Date.now();
    if (!message.status) return;
    this.status = message.status;
    this.changed("status");
  }

  // onReset starts from the beginning: the server is another one, or has lost its state.
  onReset(message) {
    this.note(message);
    this.listed = false;
    this.rights = undefined;
    this.follow(this.wanted);
  }

  onLocks(message) {
    this.note(message);
    if (!this.listed) {
      this.changed("locks");
      return;
    }
    this.version = message.version;
    for (const path of message.gone ?? []) this.locks.delete(path);
    for (const s of message.changed ?? []) this.locks.set(s.path, known(s));
    this.changed("locks");
  }

  onLock(message) {
    this.note(message);
    this.lock = { ...message.lock, total: message.total, log: message.log ?? [], past: new Past(message.history) };
    for (const e of this.lock.entries) timed(e);
    this.changed("lock");
  }

  onTroubles(message) {
    this.note(message);
    if (message.all) this.troubles.clear();
    for (const { path, troubles } of message.changed ?? []) {
      if (troubles.length) this.troubles.set(path, troubles);
      else this.troubles.delete(path);
    }
    this.deadlocks = message.deadlocks ?? [];
    this.changed("troubles");
  }

  onHistory(message) {
    this.note(message);
    this.history = new Past(message.history);
    this.changed("history");
  }
}

// timed replaces an entry's times by numbers.
export function timed(e) {
  e.since = Date.parse(e.since);
  e.granted = e.granted ? Date.parse(e.granted) : undefined;
  if (e.safe) e.safe.until = Date.parse(e.safe.at) + e.safe.remaining * 1000;
  return e;
}
