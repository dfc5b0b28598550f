// Going through a list of rows by the keyboard.

import { mark } from "./dom.js";

// COVERED is how much of the window's upper edge the bar and a table's head hide.
const COVERED = 96;

export class Keys {
  // rows is a Rows whose rows can have the focus; key tells items apart.
  constructor(rows, key) {
    this.rows = rows;
    this.keyOf = key;
    this.at = undefined; // the key of where we are
  }

  place() { return this.rows.items.findIndex((item) => this.keyOf(item) === this.at); }

  // item is where we are, if that is in the list.
  item() { return this.rows.items[this.place()]; }

  // move goes by rows down, or up if by is negative, and stays within the list.
  move(by) {
    const items = this.rows.items;
    if (items.length === 0) return;
    const from = this.place();
    const to = from < 0 ? (by < 0 ? items.length - 1 : 0) : Math.min(items.length - 1, Math.max(0, from + by));
    this.at = this.keyOf(items[to]);
    const row = this.rows.reveal(to, COVERED);
    for (const other of this.rows.live.values()) mark(other, "at", other === row);
    (row?.classList.contains("group") ? row.parts.toggle : row?.parts?.link ?? row)?.focus({ preventScroll: true });
  }

  // key moves by j, k, the arrows, Home and End, and reports whether it did.
  key(e) {
    const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[e.key];
    if (by === undefined) return false;
    this.move(Number.isFinite(by) ? by : by < 0 ? -this.rows.items.length : this.rows.items.length);
    return true;
  }
}
