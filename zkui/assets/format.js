// How times, numbers and names are written.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const two = (n) => String(n).padStart(2, "0");

// span writes a time that passes, by its two largest units, whole seconds at most.
export function span(ms) {
  if (!Number.isFinite(ms)) return "–";
  const t = Math.max(0, ms);
  if (t < MINUTE) return `${Math.floor(t / SECOND)}s`;
  if (t < HOUR) return `${Math.floor(t / MINUTE)}m ${two(Math.floor((t % MINUTE) / SECOND))}s`;
  if (t < DAY) return `${Math.floor(t / HOUR)}h ${two(Math.floor((t % HOUR) / MINUTE))}m`;
  return `${Math.floor(t / DAY)}d ${two(Math.floor((t % DAY) / HOUR))}h`;
}

// measured writes a time that was measured, with two or three digits.
export function measured(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 1) return ms <= 0 ? "0" : "<1ms";
  if (ms < 100) return `${Number(ms.toPrecision(2))}ms`;
  if (ms < SECOND) return `${Math.round(ms)}ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)}s`;
  if (ms < MINUTE) return `${Math.round(ms / SECOND)}s`;
  return span(ms);
}

const digits = new Intl.NumberFormat("en-US");

// short writes a round time by its largest unit alone, for an axis.
export function short(ms) {
  const [size, unit] = [[DAY, "d"], [HOUR, "h"], [MINUTE, "m"], [SECOND, "s"], [1, "ms"]].find(([size]) => ms >= size) ?? [1, "ms"];
  return `${Number((ms / size).toPrecision(3))}${unit}`;
}

// count writes a whole number with commas.
export const count = (n) => digits.format(n);

// things writes a number of things.
export const things = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

// clock writes the time of day, and the day too if it is another than now's.
export function clock(ms, now = Date.now()) {
  const d = new Date(ms);
  const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return d.toDateString() === new Date(now).toDateString() ? time : `${day(d)} ${time}`;
}

function day(d) {
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

// minute writes the time of day without seconds.
export function minute(ms) {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}`;
}

// split cuts a path into what is before its last level, with the slash, and that level.
export function split(path) {
  const at = path.lastIndexOf("/");
  return [path.slice(0, at + 1), path.slice(at + 1)];
}

// named returns a path as the command and the library take it, without the prefix that they
// add.
export const named = (path) => (path.startsWith("/zklock/") ? path.slice("/zklock/".length) : path);

// LONGEST is the longest text in a cell of a table. The lock's own page shows the whole
// text.
const LONGEST = 300;

// brief cuts a text for a cell.
export function brief(s) {
  return s.length > LONGEST ? s.slice(0, LONGEST) + "…" : s;
}

// UNSEEN are the characters that reverse or hide text, are invisible, or look like a space:
// any client can write names and owners' data. The package internal/legible has the same
// rules.
const UNSEEN = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\ufffd\u2800\u{13441}\u{13442}\u{16fe4}\u{1d159}]/u;

// MAX_MARKS is how many combining marks a character may carry: a stack covers other lines.
const MAX_MARKS = 4;

// replaceUnseen replaces each character that is not seen where it stands. A combining mark
// is not, if no character is before it, or too many marks.
function replaceUnseen(s, replace) {
  if (/^[ -~]*$/.test(s)) return s;
  let base = false, marks = 0;
  return Array.from(s, (c) => {
    let seen = !UNSEEN.test(c);
    if (/\p{M}/u.test(c)) {
      base &&= seen;
      seen = base && ++marks <= MAX_MARKS;
    } else {
      base = seen && c !== " ";
      marks = 0;
    }
    return seen ? c : replace(c);
  }).join("");
}

// shellWord quotes a text as one word for a shell. Characters that a terminal would act on
// are escapes in $'...', so that the text can be pasted. Quotes and backslashes are outside
// of '...', because fish reads a backslash before a quote as an escape there; in $'...' they
// are escapes too, because dash has only '...'. No space follows another, because the page
// would show one. Safari before 16.4 has no lookbehind, and would not load the page.
export function shellWord(s) {
  if (/^[\w@+:,./][\w@+:,./-]*$/.test(s)) return s;
  const bytes = (c) => [...new TextEncoder().encode(c)].map((b) => `\\x${b.toString(16).padStart(2, "0")}`).join("");
  if (s === replaceUnseen(s, bytes)) return `'${s.replace(/[\\']| (?= )/g, "'\\$&'")}'`;
  return `$'${replaceUnseen(s.replace(/[\\']| (?= )/g, bytes), bytes)}'`;
}

// layoutWords are the words of a command for locks in this custom layout, or none without one.
export function layoutWords(l) {
  if (!l) return [];
  const fields = [`exclusive=${l.exclusive}`, l.shared && `shared=${l.shared}`, l.prefix && `prefix=${l.prefix}`, l.in_parent && "in-parent"];
  return ["--layout", shellWord(`custom:${fields.filter(Boolean).join(",")}`)];
}

// legible writes them as the escapes that Go has for them. Two spaces are escaped as in the
// tables of the command: a browser shows them as one.
export function legible(s) {
  return replaceUnseen(s, (c) => {
    const code = c.codePointAt(0), hex = code.toString(16);
    if (code < 0x80) return `\\x${hex.padStart(2, "0")}`;
    return code > 0xffff ? `\\U${hex.padStart(8, "0")}` : `\\u${hex.padStart(4, "0")}`;
  }).replaceAll("  ", " \\x20");
}
