package ui

import (
	"fmt"
	"testing"
)

// logged are the visible events in the log, newest first.
const logged = `[...document.querySelectorAll(".log .row")].map((r) => [...r.querySelectorAll(".cell")].slice(1, 4).map((c) => c.innerText).join(" "))`

// TestLogShowsAndFiltersEvents checks the event, lock, and owner of each line.
func TestLogShowsAndFiltersEvents(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	b.Open(s.URL + "log")
	b.Shows(".none", "No events yet")
	b.Shows("#live", "live") // the log shows later events
	one, two := NewPeer(t, s.Server, named("one", 1, "batch")), NewPeer(t, s.Server, named("two", 2, "batch"))
	hold := one.Hold(one.Mutex("a"))
	b.Until(logged + `.join() === "acquired /zklock/a one:1"`)
	waits := two.Wait(two.Mutex("a"))
	if _, err := two.Mutex("a").Revoke(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Until(logged + `[0] === "release requested /zklock/a one:1"`)
	release(t, hold)
	await(t, waits)
	all := "acquired /zklock/a two:2,released /zklock/a one:1,release requested /zklock/a one:1,acquired /zklock/a one:1"
	b.Until(logged + `.join() === "` + all + `"`)
	b.Click(`[data-event="released"]`)
	b.Until(logged + `.join() === "released /zklock/a one:1"`)
	b.Click(`[data-event=""]`)
	b.Press("/")
	b.Type("#filter", "two:2")
	b.Until(logged + `.join() === "acquired /zklock/a two:2,release requested /zklock/a one:1"`) // by two
	b.Open(s.URL + "log?event=acquired&q=one")
	b.Until(logged + `.join() === "acquired /zklock/a one:1"`)
	b.Open(s.URL + "lock?path=/zklock/a")
	b.Shows(".events li", "acquired")
	b.Until(`document.querySelectorAll(".events li").length === 4`)
}

// TestUnknownAddressLinksToList checks the error page.
func TestUnknownAddressLinksToList(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	for _, address := range []string{"nothing", "deep/er/nothing", "lock/x"} {
		b.Open(s.URL + address)
		b.Shows("h1", "Nothing is at this address")
		b.Click("a.inline")
		b.Shows("#live", "live")
	}
	for _, dark := range []bool{true, false} {
		b.Dark(dark)
		b.Open(s.URL + "nothing")
		b.Until(fmt.Sprintf(`(document.documentElement.dataset.theme === "dark") === %v`, dark))
	}
	b.Click("a.inline")
	b.Shows(".none", "zklock run demo")
	b.Shows(".none", "zklock ui /")
}

func TestListGroupsLocksByPrefix(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	p := NewPeer(t, s.Server, named("web-1", 1, "run"))
	for _, name := range []string{"a/1", "a/2", "b/1", "b/2", "c"} {
		p.Hold(p.Mutex(name))
	}
	b.Open(s.URL + "?group=1")
	lines := `[...document.querySelectorAll(".locks .row")].map((r) => r.classList.contains("group") ? r.innerText.replace(/\s+/g, " ") : r.querySelector("a.name").innerText).join()`
	b.Until(lines + ` === "/zklock/a/ 2 locks · 2 held,/zklock/b/ 2 locks · 2 held,/zklock/c"`)
	b.Click(".row.group .toggle")
	b.Until(lines + ` === "/zklock/a/ 2 locks · 2 held,/zklock/a/1,/zklock/a/2,/zklock/b/ 2 locks · 2 held,/zklock/c"`)
	b.Click(".row.group .toggle")
	b.Press("/")
	b.Type("#filter", "b/2")
	b.Until(lines + ` === "/zklock/b/2"`)
}
