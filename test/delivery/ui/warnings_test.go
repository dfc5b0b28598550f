package ui

import (
	"fmt"
	"testing"

	"github.com/zklock/zklock/zk"
)

// createDeadlock creates two clients that wait for each other's locks.
func createDeadlock(t *testing.T, s *Site) {
	t.Helper()
	one := NewPeer(t, s.Server, named("one", 1, "batch"))
	two := NewPeer(t, s.Server, named("two", 2, "batch"))
	one.Hold(one.Mutex("x/a"))
	two.Hold(two.Mutex("x/b"))
	one.Wait(one.Mutex("x/b"))
	two.Wait(two.Mutex("x/a"))
}

// waitForRing waits until the page draws the deadlock as a ring of two sessions and two locks.
func waitForRing(b *Browser) {
	b.t.Helper()
	b.Until(`document.querySelectorAll(".deadlock .ring-session").length === 2 && document.querySelectorAll(".deadlock .ring-lock").length === 2`)
	b.Shows(".deadlock", "two:2 waits for /zklock/x/a, held by one:1")
}

func TestDeadlockIsDrawnOnAffectedPages(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	createThreeLocks(t, s)
	createDeadlock(t, s)
	b.Open(s.URL)
	waitForList(t, b, "/zklock/x/a", "/zklock/x/b", "/zklock/catalog", "/zklock/cron/nightly", "/zklock/db/vacuum")
	b.Until(`document.title.startsWith("(2) ")`)
	waitForRing(b)
	b.Shows(".locks .row .reason", "deadlock of 2 sessions")
	b.Click(`[data-only="warned"]`)
	waitForList(t, b, "/zklock/x/a", "/zklock/x/b")
	b.Click(".locks .row .reason")
	b.Shows("h1", "/zklock/x/a")
	b.Shows("#deadlock", "wait for each other")
	waitForRing(b)
	b.Open(s.URL + "lock?path=/zklock/x/b")
	waitForRing(b)
	b.Open(s.URL + "sessions")
	waitForRing(b)
	b.Open(s.URL + "lock?path=/zklock/catalog")
	b.Shows(".holder", "2 hold it together")
	if n := Eval[int](b, `document.querySelectorAll(".deadlock").length`); n != 0 {
		t.Error("a lock outside of the deadlock shows it")
	}
	b.Until(`document.title.startsWith("(2) ")`)
}

// TestDeadlocksShareOneNotice checks a lock in several deadlocks.
func TestDeadlocksShareOneNotice(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	b.Open(s.URL)
	for cycles, want := range map[string]string{
		`[]`:                                 "0: ",
		`[[step("a", "b"), step("b", "a")]]`: "1: Deadlock",
		`[[step("a", "b"), step("b", "a")], [step("a", "c"), step("c", "a")]]`: "1: Deadlocks",
	} {
		got := Eval[string](b, `import("./assets/troubles.js").then(({ deadlocks }) => {
			const step = (who, holderWho) => ({ session: "0x1", who, waits: "/zklock/a", holder: "0x2", holderWho });
			const drawn = deadlocks(`+cycles+`);
			return drawn.length + ": " + (drawn[0]?.querySelector("b").textContent.split(":")[0] ?? "");
		})`)
		if got != want {
			t.Errorf("the deadlocks %s are drawn as %q, want %q", cycles, got, want)
		}
	}
}

func TestLocksWithWarningsAreListedFirst(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	createThreeLocks(t, s)
	z := s.Server.Dial(t)
	create(t, z, "/zklock/mixed", nil, zk.ModePersistent)
	for _, name := range []string{"_c_00000000-0000-0000-0000-000000000000-lock-", "00000000000000000000000000000001__lock__"} {
		create(t, z, "/zklock/mixed/"+name, nil, zk.ModeEphemeralSequential)
	}
	p := NewPeer(t, s.Server, named("own", 1, "serve"))
	hold := p.Hold(p.Mutex("z"))
	b.Open(s.URL)
	waitForList(t, b, "/zklock/mixed", "/zklock/catalog", "/zklock/cron/nightly", "/zklock/db/vacuum", "/zklock/z")
	b.Shows(".locks .row .reason", "kazoo does not wait")
	if _, err := p.Mutex("z").Revoke(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitForList(t, b, "/zklock/z", "/zklock/mixed", "/zklock/catalog", "/zklock/cron/nightly", "/zklock/db/vacuum")
	b.Shows(".locks .row .reason", "release requested")
	t.Cleanup(s.Page.Follow(p.locks))
	s.Server.Blackhole(true)
	b.Shows(".locks .row.grave .reason", "session is in jeopardy")
	s.Server.Blackhole(false)
	b.Until(`document.querySelector(".locks .row.grave") === null`)
	release(t, hold)
	waitForList(t, b, "/zklock/mixed", "/zklock/catalog", "/zklock/cron/nightly", "/zklock/db/vacuum")

	// JSON has the same order.
	for _, query := range []string{"sort=path", "sort=trouble&desc=1", "only=warned"} {
		paths := Eval[[]string](b, fmt.Sprintf(`fetch("./?%s&format=json").then((r) => r.json()).then((l) => l.locks.map((l) => l.path))`, query))
		b.Open(s.URL + "?" + query)
		waitForList(t, b, paths...)
	}
}
