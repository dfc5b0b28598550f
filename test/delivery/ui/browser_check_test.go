package ui

import (
	"testing"
	"time"
)

// expectError waits for an error of the browser and removes it.
func expectError(b *Browser, after string) {
	b.t.Helper()
	for began := time.Now(); time.Since(began) < patience; {
		Eval[int](b, "1") // the browser reports earlier errors first
		b.mu.Lock()
		found := b.errors
		b.errors = nil
		b.mu.Unlock()
		if len(found) > 0 {
			return
		}
	}
	b.t.Errorf("the browser reports no error after %s", after)
}

// TestBrowserErrorsAreRecorded checks that a script error, and a violation of the
// Content-Security-Policy, would fail a test.
func TestBrowserErrorsAreRecorded(t *testing.T) {
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
		expectError(b, js)
	}
	if Eval[bool](b, "window.ran === true") {
		t.Error("an inline script ran")
	}
}

func TestPageSendsRequestsOnlyToItsServer(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	createThreeLocks(t, s)
	for _, page := range pages {
		b.Open(s.URL + page)
		b.Shows("#live", "live")
		requests := Eval[[]string](b, `performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin + "`+mount+`"))`)
		if len(requests) > 0 {
			t.Errorf("%q requested %q", page, requests)
		}
	}
}
