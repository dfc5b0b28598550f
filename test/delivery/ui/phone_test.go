package ui

import (
	"fmt"
	"testing"

	"github.com/zklock/zklock"
)

// pages are the addresses of all views.
var pages = []string{"", "lock?path=/zklock/cron/nightly", "sessions", "history", "log"}

// TestReleaseRequestFitsOnPhone checks that the row of a session, and the row of a queue, show
// the whole release request on a phone.
func TestReleaseRequestFitsOnPhone(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	p := NewPeer(t, s.Server, named("web-1", 101, "serve"))
	for range 2 {
		p.Hold(p.locks.RWMutex("catalog").Reader())
	}
	const reason = "the nightly backup needs the disk"
	if _, err := p.locks.RWMutex("catalog").Reader().RequestRelease(t.Context(), 0, zklock.ReleaseRequest{By: zklock.Owner{Host: "ops-1", PID: 4711, User: "deploy"}, Reason: reason}); err != nil {
		t.Fatal(err)
	}
	b.Size(390, 844)
	b.Open(s.URL + "log")
	session := Eval[string](b, `fetch("sessions?format=json").then((r) => r.json()).then((a) => a.sessions[0].id)`)
	for _, address := range []string{"session?id=" + session, "lock?path=/zklock/catalog"} {
		b.Open(s.URL + address)
		b.Shows(".stop .sub", reason)
		if cut := Eval[bool](b, `(({ scrollWidth, clientWidth, scrollHeight, clientHeight }) => scrollWidth > clientWidth || scrollHeight > clientHeight)(document.querySelector(".stop .sub"))`); cut {
			t.Errorf("%s cuts %q", address, b.Text(".stop .sub"))
		}
	}
}

// TestPagesFitPhone checks that no element is wider than the window, and that touch targets are
// large enough.
func TestPagesFitPhone(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	createThreeLocks(t, s)
	long := NewPeer(t, s.Server, named("a-host-with-a-very-long-name.in-a-domain.example.com", 12345, "a-command-that-is-long-as-well"))
	long.Hold(long.Mutex("a/rather/long/path/to/a/lock-with-a-long-name-that-goes-on-and-on"))
	for _, width := range []int64{360, 390, 768} {
		b.Size(width, 800)
		for _, page := range append(pages, "lock?path=/zklock/a/rather/long/path/to/a/lock-with-a-long-name-that-goes-on-and-on") {
			b.Open(s.URL + page)
			b.Until(`document.querySelector(".row, .chart svg text, .none:not([hidden], .loading)") !== null`)
			if wide := Eval[int64](b, "document.documentElement.scrollWidth"); wide > width {
				beyond := Eval[[]string](b, fmt.Sprintf(`[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > %d).map((e) => e.tagName + "." + e.className + " " + e.innerText)`, width))
				t.Errorf("at a width of %d, %q is %d wide, because of %q", width, page, wide, beyond)
			}
			small := Eval[[]string](b, `[...document.querySelectorAll("main a[href], main button, header a, header button")]
				.filter((e) => e.checkVisibility() && !e.matches(".skip, .copy, .facts a") && (e.closest(".row") ?? e).getBoundingClientRect().height < 26)
				.map((e) => e.innerText || e.className)`)
			if width < 600 && len(small) > 0 {
				t.Errorf("%q has targets too small for a finger: %q", page, small)
			}
		}
	}
}
