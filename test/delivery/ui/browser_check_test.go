package ui

import (
	"testing"
	"time"
)

// forgive waits for a complaint and takes it away.
func forgive(b *Browser, after string) {
	b.t.Helper()
	for began := time.Now(); time.Since(began) < patience; {
		Eval[int](b, "1") // by when the browser has said what came before
		b.mu.Lock()
		found := b.complaints
		b.complaints = nil
		b.mu.Unlock()
		if len(found) > 0 {
			return
		}
	}
	b.t.Errorf("the browser does not complain of %s", after)
}

// TestComplaints: what all tests here rely on, that a page that does wrong, or that
// tries what its policy forbids, fails them.
func TestComplaints(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	b.Open(s.URL)
	b.Shows("#live", "live")
	for _, js := range []string{
		`document.body.setAttribute("style", "color: red")`,
		`document.body.append(Object.assign(document.createElement("script"), {textContent: "window.ran = true"}))`,
		`document.body.append(Object.assign(document.createElement("img"), {src: "data:image/png;base64,AAAA"}))`,
		`fetch("http://127.0.0.1:1/").catch(() => 0)`,
		`setTimeout(() => { throw new Error("wrong") })`,
		`console.error("wrong")`,
	} {
		Eval[int](b, "(() => { try { "+js+" } catch {} return 0; })()")
		forgive(b, js)
	}
	if Eval[bool](b, "window.ran === true") {
		t.Error("a script within the document ran")
	}
}

// TestNothingElsewhere checks that the page sends requests only to its own server.
func TestNothingElsewhere(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	threeLocks(t, s)
	for _, page := range pages {
		b.Open(s.URL + page)
		b.Shows("#live", "live")
		asked := Eval[[]string](b, `performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin + "`+mount+`"))`)
		if len(asked) > 0 {
			t.Errorf("%q asked for %q", page, asked)
		}
	}
}
