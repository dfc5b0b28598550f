package ui

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// queued are the visible waiters in the queue.
const queued = `[...document.querySelectorAll(".stop")].map((r) => r.querySelector(".who").innerText)`

func TestLockPageShowsHolderAndQueue(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	b.Open(s.URL)
	b.Shows("#live", "live") // the page shows later grants
	var peers []*Peer
	for i := range 4 {
		peers = append(peers, NewPeer(t, s.Server, named(fmt.Sprintf("host-%d", i), 100+i, "migrate")))
	}
	hold := peers[0].Hold(peers[0].Mutex("db/migrations"))
	for _, p := range peers[1:] {
		p.Wait(p.Mutex("db/migrations"))
	}
	b.Open(s.URL + "lock?path=/zklock/db/migrations")
	b.Until(queued + `.join(" ") === "host-1:101 host-2:102 host-3:103"`)
	b.Shows(".holder h2", "host-0:100")
	session := fmt.Sprintf("0x%x", uint64(hold.Session()))
	for _, want := range []string{"host-0:100", "deploy · migrate", strconv.FormatInt(hold.Token(), 10), session, "Held for"} {
		if text := b.Text(".holder"); !strings.Contains(text, want) {
			t.Errorf("the holder's part does not show %q:\n%s", want, text)
		}
	}
	for i, want := range []string{"1", "2", "3"} {
		if knot := Eval[string](b, fmt.Sprintf(`document.querySelectorAll(".stop .knot")[%d].innerText`, i)); knot != want {
			t.Errorf("waiter %d of the queue has the number %q, want %q", i, knot, want)
		}
	}
	b.Shows(".side", "Grants")
	b.Until(`document.querySelectorAll(".chart:not([hidden]) svg").length === 2`) // no hold has ended
	b.Shows(".events", "host-0:100")
	// A waiter that has waited longer has a longer bar, after the animation.
	b.Until(`(() => {
		const wide = [...document.querySelectorAll(".stop .meter i")].map((m) => m.getBoundingClientRect().width);
		return wide.length === 3 && wide[0] > 0 && wide.every((w, i) => i === 0 || w <= wide[i - 1]);
	})()`)

	// Each entry has details and a link to its session.
	b.Click(".stop:nth-child(2)")
	b.Shows("dialog", "host-2:102")
	b.Shows("dialog", "position 2 in the queue")
	b.Click("dialog a[data-go]")
	b.Shows("h1", "Session 0x")
	b.Shows(".queue", "/zklock/db/migrations")
	b.Shows(".queue", "position 2")
	if n := Eval[int](b, `document.querySelectorAll("dialog").length`); n != 0 {
		t.Error("the dialog stayed open on another page")
	}
}

// TestPageShowsDeadlineAndJeopardy checks a hold of the page's own process. Other holds have no
// known deadline.
func TestPageShowsDeadlineAndJeopardy(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	p := NewPeer(t, s.Server, named("own", 1, "serve"))
	hold := p.Hold(p.Mutex("leader"))
	b.Open(s.URL + "lock?path=/zklock/leader")
	b.Shows(".holder h2", "own:1")
	if text := b.Text(".holder"); strings.Contains(text, "Deadline") {
		t.Errorf("the page shows an unknown deadline: %s", text)
	}
	stop := s.Page.Follow(p.locks)
	t.Cleanup(stop)
	b.Open(s.URL + "lock?path=/zklock/leader")
	b.Until(`/\ds left/.test(document.querySelector(".holder").innerText)`)
	s.Server.Blackhole(true)
	b.Shows(".holder.bad", "in jeopardy")
	b.Shows(".badges .bad", "held, in jeopardy")
	s.Server.Blackhole(false)
	b.Until(`!document.querySelector(".holder").innerText.includes("jeopardy") && !document.querySelector(".badges .bad")`)
	if err := hold.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAdjacentReadersAreGrouped checks that the page groups readers that acquire together.
func TestAdjacentReadersAreGrouped(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	writer := NewPeer(t, s.Server, named("writer", 1, "load"))
	hold := writer.Hold(writer.locks.RWMutex("catalog").Writer())
	var readers []<-chan *zklock.Hold
	for i := range 3 {
		p := NewPeer(t, s.Server, named("reader", 2+i, "serve"))
		readers = append(readers, p.Wait(p.locks.RWMutex("catalog").Reader()))
	}
	b.Open(s.URL + "lock?path=/zklock/catalog")
	b.Until(queued + `.join(" ") === "reader:2 reader:3 reader:4"`)
	b.Until(`document.querySelectorAll(".stop.with-next").length === 2`)
	release(t, hold)
	for _, r := range readers {
		await(t, r)
	}
	b.Shows(".holder h2", "3 hold it together")
	b.Shows(".badges", "shared")
}

func TestSemaphoreShowsPermits(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	for i := range 3 {
		p := NewPeer(t, s.Server, named("worker", 1+i, "crawl"))
		p.Hold(p.locks.Semaphore("slots", 5))
	}
	b.Open(s.URL + "lock?path=/zklock/slots")
	b.Shows(".badges", "3 of 5 permits")
	b.Until(`document.querySelectorAll(".gauge .full").length === 3 && document.querySelectorAll(".gauge i").length === 5`)
}

// TestReleaseRequestShowsRequesterAndReason: any client can write them, so the page must show
// them as text.
func TestReleaseRequestShowsRequesterAndReason(t *testing.T) {
	const reason, shown = "<b>now</b>\u202e", `<b>now</b>\u202e`
	b, s := StartBrowser(t), Serve(t)
	p, ops := NewPeer(t, s.Server, named("worker", 1, "crawl")), NewPeer(t, s.Server, named("ops", 7, "revoke"))
	p.Hold(p.Mutex("one"))
	p.Hold(p.locks.RWMutex("many").Reader())
	ops.Hold(ops.locks.RWMutex("many").Reader())
	for _, l := range []*zklock.Lock{ops.Mutex("one"), ops.locks.RWMutex("many").Reader()} {
		if _, err := l.RequestRelease(t.Context(), 0, zklock.ReleaseRequest{Reason: reason}); err != nil {
			t.Fatal(err)
		}
	}
	b.Open(s.URL + "lock?path=/zklock/one")
	b.Shows(".holder", "by deploy@ops:7\n"+shown)
	b.Click(".holder [data-details]")
	b.Shows("dialog", "by deploy@ops:7\n"+shown)
	b.Click("dialog a[data-go]")
	b.Shows(".stop", "release requested by deploy@ops:7: "+shown)
	b.Open(s.URL + "lock?path=/zklock/many")
	b.Shows(".stop", "release requested by deploy@ops:7: "+shown)
	checkNoInjection(t, b, "the lock's page")
}

func TestPageOfFreeLockShowsNextHolder(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	b.Open(s.URL + "lock?path=/zklock/later")
	b.Shows(".holder", "Not held")
	p := NewPeer(t, s.Server, named("first", 1, "run"))
	hold := p.Hold(p.Mutex("later"))
	b.Shows(".holder h2", "first:1")
	release(t, hold)
	b.Shows(".holder", "Not held")
	b.Until(`[...document.querySelectorAll(".totals div")].some((d) => d.innerText.replace(/\s+/g, " ") === "Grants 1")`)
}

// TestLockThatCannotBeReadIsNotShownAsFree: a client can create so many children of a lock that
// the page cannot list them.
func TestLockThatCannotBeReadIsNotShownAsFree(t *testing.T) {
	b, srv := StartBrowser(t), zktest.Start(t)
	s := ServeOver(t, srv.Dial(t, func(o *zk.Options) { o.MaxReply = 8 << 10 }))
	p, other := NewPeer(t, srv, named("first", 1, "run")), srv.Dial(t)
	hold := p.Hold(p.Mutex("wide"))
	b.Open(s.URL + "lock?path=/zklock/wide")
	b.Shows(".holder h2", "first:1")
	path := func(i int) string { return fmt.Sprintf("/zklock/wide/%s%d", strings.Repeat("x", 1<<10), i) }
	for i := range 9 {
		create(t, other, path(i), nil, zk.ModePersistent)
	}
	b.Shows(".holder", "No known holder")
	b.Shows(".holder", "It may be held: too many znodes")
	b.Shows(".badges", "no known holder")
	late := ServeOver(t, srv.Dial(t, func(o *zk.Options) { o.MaxReply = 8 << 10 }))
	b.Open(late.URL + "lock?path=/zklock/wide")
	b.Shows(".holder", "No known holder")
	b.Open(late.URL + "lock?path=/zklock/other") // other locks are not affected
	b.Shows(".holder", "Not held")
	b.Open(s.URL + "lock?path=/zklock/wide")
	release(t, hold)
	for i := range 9 {
		if err := other.Delete(t.Context(), path(i), -1); err != nil {
			t.Fatal(err)
		}
	}
	b.Shows(".holder", "Not held")
}

func TestSessionsShowDeadlock(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	one := NewPeer(t, s.Server, named("one", 1, "batch"))
	two := NewPeer(t, s.Server, named("two", 2, "batch"))
	one.Hold(one.Mutex("a"))
	one.Hold(one.Mutex("c"))
	two.Hold(two.Mutex("b"))
	b.Open(s.URL + "sessions")
	b.Until(`document.querySelectorAll(".sessions .row").length === 2`)
	b.Shows(".sessions .row", "one:1")
	// The two sessions wait for each other.
	one.Wait(one.Mutex("b"))
	two.Wait(two.Mutex("a"))
	b.Shows(".notice.bad", "deadlock")
	b.Shows(".notice.bad", "two:2 waits for /zklock/a, held by one:1")
	b.Press("/")
	b.Type("#filter", "two:2")
	b.Until(`document.querySelectorAll(".sessions .row").length === 1`)
}

func TestHistoryCountsGrants(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	b.Open(s.URL + "history")
	b.Shows(".figures", "Grants")
	p := NewPeer(t, s.Server, named("one", 1, "batch"))
	for range 5 {
		release(t, p.Hold(p.Mutex("a")))
	}
	b.Until(`document.querySelector(".figure .value").innerText.trim() === "5"`)
	b.Until(`document.querySelectorAll("rect.grants").length > 0`)
}
