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
	// fewRows is more than are in sight at a time: the rest must not be in the document.
	fewRows = 100
	// frame is how long the page may take over something that a person waits for, with the
	// least of some tries: other programs may have the processors.
	frame = 500 * time.Millisecond
	tries = 20
)

// fill makes entries of locks that nobody in particular holds: n of them, each at
// the path that is said.
func fill(t *testing.T, s *Site, n int, at func(i int) string) {
	t.Helper()
	z := s.Server.Dial(t)
	create(t, z, "/zklock", nil, zk.ModePersistent)
	results := make(chan error, 2*n)
	for i := range n {
		z.Go(zk.CreateOp(at(i), nil, nil, zk.ModePersistent), func(r zk.Result) { results <- nil }) // it may be there
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

// timed is how long the page takes over some JavaScript and the frame after it.
func timed(b *Browser, js string) time.Duration {
	b.t.Helper()
	ms := Eval[float64](b, `new Promise((done) => { const began = performance.now(); `+js+`;
		requestAnimationFrame(() => setTimeout(() => done(performance.now() - began))); })`)
	return time.Duration(ms * float64(time.Millisecond))
}

// TestTenThousandLocks stay usable: only those in sight are in the document, and
// filter, sort and scroll take no time that a person would notice.
func TestTenThousandLocks(t *testing.T) {
	b, s := StartBrowser(t), Serve(t, func(o *zkui.Options) { o.MaxListReads, o.MaxReadRate = 100_000, 100_000 })
	fill(t, s, manyLocks, func(i int) string { return fmt.Sprintf("/zklock/job-%05d", i) })
	b.Open(s.URL)
	b.Shows(".figures", "of 10,000 locks") // the page's server may have to read them first
	b.Open(s.URL)
	t.Logf("the list was there %v after the document", b.Shows(".figures", "of 10,000 locks"))
	b.Until(names + `[0] === "/zklock/job-00000"`)
	few := func() {
		t.Helper()
		if n := Eval[int](b, `document.querySelectorAll(".row").length`); n > fewRows {
			t.Errorf("%d rows are in the document", n)
		}
	}
	few()
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
		few()
	}
	b.Open(s.URL + "?sort=path")
	b.Until(names + `[0] === "/zklock/job-00000"`)
	b.Press("G") // does nothing
	Eval[any](b, `window.scrollTo(0, document.body.scrollHeight)`)
	b.Until(names + `.includes("/zklock/job-09999")`)
	few()

	// It is live as well.
	p := NewPeer(t, s.Server, named("new", 1, "run"))
	var took time.Duration
	for i := range tries {
		name := fmt.Sprintf("later-%d", i)
		b.Open(s.URL + "?q=" + name)
		b.Shows(".none", "No lock matches")
		p.Hold(p.Mutex(name))
		if took = b.Shows(".locks .row .name", name); took <= atOnce {
			return
		}
	}
	t.Errorf("new locks among ten thousand were shown late, the last after %v", took)
}

// TestThousandWaiters in one queue: they come as one scrolls to them.
func TestThousandWaiters(t *testing.T) {
	b, s := StartBrowser(t), Serve(t)
	fill(t, s, manyWaiters+1, func(int) string { return "/zklock/popular" })
	b.Open(s.URL + "lock?path=/zklock/popular")
	b.Shows(".badges", "1,000 waiting")
	b.Shows(".holder h2", "host-0:1")
	if n := Eval[int](b, `document.querySelectorAll(".stop").length`); n > fewRows {
		t.Errorf("%d rows are in the document", n)
	}
	Eval[any](b, `window.scrollTo(0, document.body.scrollHeight)`)
	b.Until(queued + `.at(-1) === "host-1000:1001"`)
	if knot := Eval[string](b, `[...document.querySelectorAll(".stop .knot")].at(-1).innerText`); knot != "1000" {
		t.Errorf("the last in line has the number %q", knot)
	}
}
