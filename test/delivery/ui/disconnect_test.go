package ui

import (
	"testing"
)

// TestPageReportsLostServers checks that the page keeps its list, and reports that it is old.
func TestPageReportsLostServers(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	createThreeLocks(t, s)
	b.Open(s.URL)
	b.Shows("#live", "live")
	s.Server.Stop()
	b.Shows("#live", "servers away")
	b.Shows(".notice", "No ZooKeeper server has answered")
	if text := b.Text(".locks"); text == "" {
		t.Error("the list is empty while the servers are away")
	}
	s.Stop() // the page's server sets the page's clock
	b.Shows("#live", "connection lost")
	timesFreeze(t, b)
	s.Restart()
	b.Shows("#live", "servers away")
	s.Server.Restart(t)
	b.Shows("#live", "live")
	b.Until(`document.querySelector(".notice") === null`)
}

func TestPageReconnectsToItsServer(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	createThreeLocks(t, s)
	b.Open(s.URL)
	b.Shows("#live", "live")
	s.Stop()
	b.Shows("#live", "connection lost")
	b.Shows(".notice", "lost its server")
	timesFreeze(t, b)
	p := NewPeer(t, s.Server, named("meanwhile", 1, "run"))
	p.Hold(p.Mutex("meanwhile"))
	s.Restart()
	b.Shows("#live", "live")
	b.Until(names + `.includes("/zklock/meanwhile")`)
}

// timesFreeze advances the clock of a page that lost its server by an hour. The page reports
// the age of its state, but the times in the list must not advance.
func timesFreeze(t *testing.T, b *Browser) {
	t.Helper()
	const shown = `[...document.querySelectorAll(".locks .row")].map((r) => r.innerText).join("\n")`
	before := Eval[string](b, shown)
	Eval[any](b, `(() => { const real = Date.now; globalThis.restore = () => { Date.now = real; }; Date.now = () => real() + 3600_000; })()`)
	b.Shows(".notice", "1h 00m")
	if after := Eval[string](b, shown); after != before {
		t.Errorf("an hour later the list has\n%s\nafter\n%s", after, before)
	}
	Eval[any](b, `globalThis.restore()`)
}

// TestChartLinesStayInsidePlot draws short and long times, in buckets that begin before the
// chart and end after it.
func TestChartLinesStayInsidePlot(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	b.Open(s.URL)
	b.Shows("#live", "live")
	outside := Eval[[]string](b, `import("./assets/chart.js").then(({chart}) => {
		const value = (key) => (b) => b[key], found = [];
		const all = [
			[0, 0.001, 0.5, 1e13], [1, 1], [3_599_999, 3_600_001, 5], [7, 40, 300, 2000, 9000, 70_000, 800_000, 5_000_000],
		];
		for (const values of all) for (const as of ["line", "bars"]) {
			const c = chart("t", [{ name: "a", class: "a", as, value: value("a") }, { name: "b", class: "b", as, value: value("b") }], as === "line", 160);
			document.querySelector("main").append(c.node);
			const from = 1_700_000_000_000, step = 60_000;
			c.set(values.map((v, i) => ({ t: from + (i - 1) * step, length: step, a: v, b: v / 2 })), from, from + (values.length - 2) * step);
			const field = c.node.querySelector("svg"), area = field.getBoundingClientRect();
			const grid = [...field.querySelectorAll(".grid")].map((g) => g.getBoundingClientRect().top);
			const drawn = [...field.querySelectorAll("path, rect, circle")];
			if (!drawn.length) found.push("nothing is drawn of " + values);
			for (const d of drawn) {
				const r = d.getBoundingClientRect(), slack = 3;
				if (r.left < area.left - slack || r.right > area.right + slack || r.top < Math.min(...grid) - slack || r.bottom > Math.max(...grid) + slack) found.push([values, as, d.outerHTML.slice(0, 120), r.left, r.top, r.right, r.bottom, "in", area.left, area.right, "with lines at", ...grid].join(" "));
			}
			c.node.remove();
		}
		return found;
	})`)
	if len(outside) > 0 {
		t.Errorf("outside of the plot: %q", outside)
	}
}
