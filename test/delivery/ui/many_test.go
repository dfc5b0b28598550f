package ui

import (
	"fmt"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkui"
)

const (
	manyLocks   = 10_000
	manyWaiters = 1000
	// maxRows limits the rows in the document, which are only the visible ones.
	maxRows = 100
	// frame limits the fastest of some tries of an action. Other programs may use the processors.
	frame = 500 * time.Millisecond
	tries = 20
)

// createEntries creates n entries, each below the lock at(i).
func createEntries(t *testing.T, s *Site, n int, at func(i int) string) {
	t.Helper()
	z := s.Server.Dial(t)
	create(t, z, "/zklock", nil, zk.ModePersistent)
	results := make(chan error, 2*n)
	for i := range n {
		z.Go(zk.CreateOp(at(i), nil, nil, zk.ModePersistent), func(r zk.Result) { results <- nil }) // may exist
		data := fmt.Appendf(nil, `{"host":"host-%d","pid":%d,"command":"job","version":"zklock %s"}`, i, i+1, zklock.Version)
		entry := fmt.Sprintf("%s/_c_%08x-0000-0000-0000-000000000000-lock-", at(i), i)
		z.Go(zk.CreateOp(entry, data, nil, zk.ModeEphemeralSequential), func(r zk.Result) { results <- r.Err })
	}
	for range 2 * n {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
}

// timed returns the time that the page takes for some JavaScript and the next frame.
func timed(b *Browser, js string) time.Duration {
	b.t.Helper()
	ms := Eval[float64](b, `new Promise((done) => { const began = performance.now(); `+js+`;
		requestAnimationFrame(() => setTimeout(() => done(performance.now() - began))); })`)
	return time.Duration(ms * float64(time.Millisecond))
}

// TestListOfTenThousandLocksIsFast filters, sorts, and scrolls, and checks that the document
// contains only the visible rows.
func TestListOfTenThousandLocksIsFast(t *testing.T) {
	b, s := StartBrowser(t), Serve(t, func(o *zkui.Options) { o.MaxListReads, o.MaxReadRate = 100_000, 100_000 })
	createEntries(t, s, manyLocks, func(i int) string { return fmt.Sprintf("/zklock/job-%05d", i) })
	b.Open(s.URL)
	b.Shows(".figures", "of 10,000 locks") // the page's server reads them first
	b.Open(s.URL)
	t.Logf("the page showed the list after %v", b.Shows(".figures", "of 10,000 locks"))
	b.Until(names + `[0] === "/zklock/job-00000"`)
	checkRows := func() {
		t.Helper()
		if n := Eval[int](b, `document.querySelectorAll(".row").length`); n > maxRows {
			t.Errorf("%d rows are in the document", n)
		}
	}
	checkRows()
	for what, js := range map[string]string{
		"filter": `const f = document.getElementById("filter"); f.value = "09999"; f.dispatchEvent(new Event("input"))`,
		"all":    `const f = document.getElementById("filter"); f.value = ""; f.dispatchEvent(new Event("input"))`,
		"sort":   `document.querySelector('[data-sort="who"] button').click()`,
		"scroll": `window.scrollTo(0, 200000)`,
	} {
		took := timed(b, js)
		for i := 1; i < tries && took > frame; i++ {
			took = timed(b, js)
		}
		t.Logf("%s: %v", what, took)
		if took > frame {
			t.Errorf("%s takes the page %v, want %v", what, took, frame)
		}
		checkRows()
	}
	b.Open(s.URL + "?sort=path")
	b.Until(names + `[0] === "/zklock/job-00000"`)
	b.Press("G") // does nothing
	Eval[any](b, `window.scrollTo(0, document.body.scrollHeight)`)
	b.Until(names + `.includes("/zklock/job-09999")`)
	checkRows()

	// The list shows new locks.
	p := NewPeer(t, s.Server, named("new", 1, "run"))
	var took time.Duration
	for i := range tries {
		name := fmt.Sprintf("later-%d", i)
		b.Open(s.URL + "?q=" + name)
		b.Shows(".none", "No lock matches")
		p.Hold(p.Mutex(name))
		if took = b.Shows(".locks .row .name", name); took <= maxDelay {
			return
		}
	}
	t.Errorf("new locks among ten thousand were shown late, the last after %v", took)
}

// TestQueueOfThousandWaitersScrolls checks that the document contains only the visible rows.
func TestQueueOfThousandWaitersScrolls(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	createEntries(t, s, manyWaiters+1, func(int) string { return "/zklock/popular" })
	b.Open(s.URL + "lock?path=/zklock/popular")
	b.Shows(".badges", "1,000 waiting")
	b.Shows(".holder h2", "host-0:1")
	if n := Eval[int](b, `document.querySelectorAll(".stop").length`); n > maxRows {
		t.Errorf("%d rows are in the document", n)
	}
	Eval[any](b, `window.scrollTo(0, document.body.scrollHeight)`)
	b.Until(queued + `.at(-1) === "host-1000:1001"`)
	if knot := Eval[string](b, `[...document.querySelectorAll(".stop .knot")].at(-1).innerText`); knot != "1000" {
		t.Errorf("the last waiter has the number %q", knot)
	}
}
