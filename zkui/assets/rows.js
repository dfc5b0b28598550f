// A list of any length. Only the visible rows are in the document, so ten thousand locks
// cost as much as forty. The window scrolls, so that the bars of a phone's browser hide.
// The search of the browser finds only the rows in the document.

import { attr } from "./dom.js";

// SPARE is how many rows above and below the visible ones are kept.
const SPARE = 8;

export class Rows {
  // box is the list's element; its --row says how high a row is. options has
  //   key(item)        what stays the same of an item that changes
  //   make()           a new row's element
  //   show(row, item, place)  fills it
  //   tick(row, item)  what passes with time; called every second
  constructor(box, options) {
    this.box = box;
    this.options = options;
    this.items = [];
    this.live = new Map(); // by key, the rows in the document
    this.spare = [];       // rows to be used again
    this.waiting = false;
    this.onMove = () => this.soon();
    this.onSize = () => { this.height = 0; this.soon(); };
    window.addEventListener("scroll", this.onMove, { passive: true });
    window.addEventListener("resize", this.onSize);
  }

  // end stops listening.
  end() {
    window.removeEventListener("scroll", this.onMove);
    window.removeEventListener("resize", this.onSize);
  }

  // set changes what the list is of.
  set(items) {
    this.items = items;
    this.draw();
  }

  // setTall makes room for more lines in each row, where the style has a use for it.
  setTall(on) {
    if (this.box.classList.contains("tall") === Boolean(on)) return;
    this.box.classList.toggle("tall", Boolean(on));
    this.height = 0;
  }

  // soon draws with the next frame.
  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  // measure asks the style how high a row is.
  measure() {
    if (!this.height) this.height = parseFloat(getComputedStyle(this.box).getPropertyValue("--row")) || 44;
    return this.height;
  }

  // range is which rows are to be in the document.
  range() {
    const height = this.measure();
    const top = -this.box.getBoundingClientRect().top;
    const first = Math.floor(top / height) - SPARE;
    const last = Math.ceil((top + window.innerHeight) / height) + SPARE;
    return [Math.max(0, first), Math.min(this.items.length, last)];
  }

  draw() {
    if (!this.box.isConnected) return;
    const height = this.measure();
    this.box.style.height = `${this.items.length * height}px`;
    const [first, last] = this.range();
    const wanted = new Map();
    for (let i = first; i < last; i++) wanted.set(this.options.key(this.items[i]), i);
    for (const [key, row] of this.live) {
      if (wanted.has(key)) continue;
      this.live.delete(key);
      // A row with the focus is removed: a row of another item must not inherit the focus.
      if (!row.contains(document.activeElement)) this.spare.push(row);
      row.remove();
    }
    const focus = document.activeElement;
    let n = 0;
    for (const [key, i] of wanted) {
      const row = this.place(key, i, height);
      // In the document they are in the visible order, for the Tab key.
      if (this.box.children[n] !== row) this.box.insertBefore(row, this.box.children[n] ?? null);
      n++;
    }
    if (focus !== document.activeElement && this.box.contains(focus)) focus.focus({ preventScroll: true });
  }

  // place prepares the row of an item.
  place(key, i, height) {
    let row = this.live.get(key);
    if (!row) {
      row = this.spare.pop() ?? this.options.make();
      this.live.set(key, row);
      row.shown = undefined; // nothing of it is a change worth a flash
    }
    row.style.transform = `translateY(${i * height}px)`;
    if (this.box.getAttribute("role") === "list") {
      attr(row, "aria-posinset", i + 1);
      attr(row, "aria-setsize", this.items.length);
    } else attr(row, "aria-rowindex", i + 2); // the first is the head
    this.options.show(row, this.items[i], i);
    row.item = this.items[i];
    return row;
  }

  // tick updates the times in the rows in the document.
  tick() {
    for (const row of this.live.values()) this.options.tick?.(row, row.item);
  }

  // reveal scrolls to an item if it is out of sight, and returns its row. margin
  // is what covers the window's upper edge.
  reveal(i, margin) {
    const height = this.measure();
    const top = this.box.getBoundingClientRect().top + i * height;
    if (top < margin) window.scrollBy(0, top - margin);
    else if (top + height > window.innerHeight - 8) window.scrollBy(0, top + height - window.innerHeight + 8);
    this.draw();
    return this.live.get(this.options.key(this.items[i]));
  }
}
