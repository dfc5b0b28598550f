package locktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/zklock"
)

// testValue checks that a value is published with the entry, and that SetValue replaces it and
// keeps a release request.
func testValue(e *env) {
	c, other := e.dial(), e.dial()
	l, same := c.Mutex(e.name), other.Mutex(e.name)
	value := func() string {
		e.catchUp()
		entries := e.inspect(same)
		if len(entries) == 0 {
			e.Fatal("no entry")
		}
		return entries[0].Value
	}
	h := e.acquire(l.WithValue("one"))
	if got := value(); got != "one" {
		e.Errorf("value %q, want one", got)
	}
	if err := h.SetValue(e.ctx, "two"); err != nil {
		e.Error(err)
	}
	if got := value(); got != "two" {
		e.Errorf("value %q, want two", got)
	}
	asked, err := same.Revoke(e.ctx)
	if err != nil || len(asked) != 1 || asked[0].Value != "two" {
		e.Errorf("%+v, %v", asked, err)
	}
	if err := h.SetValue(e.ctx, "three"); err != nil {
		e.Error(err)
	}
	wait(e, "the release request", h.Revoked())
	if entries := e.inspect(l); len(entries) != 1 || !entries[0].Revoked || entries[0].Value != "three" {
		e.Errorf("%+v", entries)
	}
	if err := e.operator().Delete(e.ctx, h.Node(), -1); err != nil {
		e.Fatal(err)
	}
	if err := h.SetValue(e.ctx, "four"); !errors.Is(err, zklock.ErrLost) {
		e.Errorf("after the znode was deleted: %v", err)
	}
	m := c.RWMutex(e.name + "/rw")
	h = e.acquire(m.Writer().WithValue("writer"))
	if err := errors.Join(h.Downgrade(e.ctx), h.SetValue(e.ctx, "reader")); err != nil {
		e.Error(err)
	}
	if entries := e.inspect(m.Reader()); len(entries) != 1 || entries[0].Value != "reader" || entries[0].Token != h.Token() {
		e.Errorf("%+v", entries)
	}
	e.release(h)
}

// testWatch checks that a Watch yields the current state and each lasting holder and value, also
// after the end of its session, and that tokens never decrease.
func testWatch(e *env) {
	c, other := e.dial(), e.dial()
	sniffer := &sniffer{inner: e.target.DialContext}
	o := e.options()
	o.DialContext = sniffer.dial
	watcher := e.dialWith(o)
	ctx, stop := context.WithCancel(e.ctx)
	states, ended := make(chan zklock.LockState), make(chan error, 1)
	go func() { // ends with ctx
		for s, err := range watcher.Watch(ctx, e.name) {
			if err != nil {
				ended <- err
				return
			}
			states <- s
		}
	}()
	token := int64(0)
	until := func(what, value string, waiting int) {
		e.Helper()
		for {
			s := wait(e, what, states)
			got := ""
			if len(s.Holders) > 0 {
				got = s.Holders[0].Value
				if s.Holders[0].Token < token {
					e.Errorf("%s: token %d after %d", what, s.Holders[0].Token, token)
				}
				token = s.Holders[0].Token
			}
			if got == value && s.Waiting == waiting {
				return
			}
		}
	}
	until("the free lock", "", 0)
	h := e.acquire(c.Mutex(e.name).WithValue("a"))
	first := "a"
	until("the holder", first, 0)
	for round := range 3 {
		w := e.acquiring(e.ctx, other.Mutex(e.name).WithValue(fmt.Sprint("b", round)))
		until("the waiter", first, 1)
		if err := h.SetValue(e.ctx, "changed"); err != nil {
			e.Error(err)
		}
		until("the changed value", "changed", 1)
		if round == 1 { // the session of the watcher ends
			if err := sniffer.closeElsewhere(e); err != nil {
				e.Fatal(err)
			}
		}
		e.release(h)
		h = wait(e, "the next holder", w)
		until("the next holder", fmt.Sprint("b", round), 0)
		first = fmt.Sprint("a", round)
		if err := h.SetValue(e.ctx, first); err != nil {
			e.Error(err)
		}
		until("its value", first, 0)
	}
	e.release(h)
	until("the free lock", "", 0)
	stop()
	if err := wait(e, "the end", ended); !errors.Is(err, context.Canceled) {
		e.Error(err)
	}
}
