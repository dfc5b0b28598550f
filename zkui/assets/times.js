// History as the charts take it: steps of even length, in milliseconds.

const HOUR = 3_600_000;

const ms = (t) => ({ count: t.count, p50: t.p50 * 1000, p99: t.p99 * 1000, max: t.max * 1000 });

// A Past is what the server saw of one lock, or of all.
export class Past {
  constructor(history) {
    const { since, grants, releases, losses, broken, gaveUp } = history;
    Object.assign(this, { grants, releases, losses, broken, gaveUp });
    this.since = Date.parse(since);
    this.step = (history.step || 10) * 1000; // how long a point is
    this.wait = ms(history.wait);
    this.hold = ms(history.hold);
    this.points = (history.points ?? []).map((p) => ({
      t: Date.parse(p.at), grants: p.grants, losses: p.losses, wait: ms(p.wait), hold: ms(p.hold),
    }));
  }

  // range is the time that there is something to say of, from the first point on: an hour
  // at most, and two steps at least, so that the first bar does not fill the chart.
  range(now) {
    const first = this.points.find((p) => p.t + this.step > now - HOUR)?.t ?? now;
    const from = Math.max(first, now - HOUR);
    return [from, Math.max(now, from + 2 * this.step)];
  }

  // perMinute are the grants in each minute of the last hour, the oldest first.
  perMinute(now) {
    const all = new Array(60).fill(0);
    for (const p of this.points) {
      const i = 59 - Math.floor((now - p.t) / 60_000);
      if (i >= 0 && i < 60) all[i] += p.grants;
    }
    return all;
  }

  // buckets are the points in range, gathered to most buckets or less. Those with
  // nothing in them are not there.
  buckets(now, most) {
    const [from, to] = this.range(now);
    const length = [1, 2, 3, 6, 12, 18, 30, 60].map((n) => n * this.step).find((l) => (to - from) / l <= most) ?? HOUR;
    const all = new Map();
    for (const p of this.points) {
      if (p.t + this.step < from) continue;
      const t = Math.floor(p.t / length) * length;
      all.set(t, [...(all.get(t) ?? []), p]);
    }
    return [...all].sort(([a], [b]) => a - b).map(([t, points]) => gather(t, length, points));
  }
}

function gather(t, length, points) {
  const sum = (f) => points.reduce((n, p) => n + f(p), 0);
  return { t, length, grants: sum((p) => p.grants), losses: sum((p) => p.losses), wait: together(points.map((p) => p.wait)), hold: together(points.map((p) => p.hold)) };
}

// together puts quantiles of several steps together: the middle one of the medians,
// each as often as it was measured, and the greatest of the 99th percentiles,
// which is that of all or somewhat more.
function together(times) {
  const some = times.filter((t) => t.count > 0).sort((a, b) => a.p50 - b.p50);
  if (some.length === 0) return {};
  const n = some.reduce((sum, t) => sum + t.count, 0);
  let left = n / 2;
  const middle = some.find((t) => (left -= t.count) <= 0) ?? some.at(-1);
  return { count: n, p50: middle.p50, p99: Math.max(...some.map((t) => t.p99)) };
}
