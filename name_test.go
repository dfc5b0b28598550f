package zklock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestNames: what can't be a lock's name is refused before any I/O.
func TestNames(t *testing.T) {
	srv := zktest.Start(t)
	c := dial(t, srv)
	srv.Refuse(true)
	srv.CutConnections() // no I/O would succeed now
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	bad := []string{
		"", "/", "//", "a//b", "a/", "/a/", ".", "..", "a/../b", "a/./b", "/..",
		"nul\x00", "\x01", "tab\t", "\x1f", "\x7f", "\u0085", "\u009f", "\ud7ff\ue000", "\uf8ff", "\ufff0", "\uffff", "\U0001F600",
		"\xff", "\xed\xa0\x80", strings.Repeat("x", 513), strings.Repeat("x/", 16) + "x", "zookeeper", "zookeeper/quota", "/zookeeper", "/zookeeper/x",
		"a/x__lock__0000000000", "x-lock-0000000001/b",
	}
	for _, name := range bad {
		for what, use := range map[string]func() error{
			"Acquire":    func() error { _, err := c.Mutex(name).Acquire(ctx); return err },
			"TryAcquire": func() error { _, err := c.Mutex(name).TryAcquire(ctx); return err },
			"Inspect":    func() error { _, err := c.Mutex(name).Inspect(ctx); return err },
			"Do": func() error {
				return zklock.Do(ctx, c.Mutex(name), func(context.Context, *zklock.Hold) error { return nil })
			},
		} {
			if err := use(); !errors.Is(err, zklock.ErrInvalidName) {
				t.Errorf("%s of %q: %v", what, name, err)
			}
		}
	}
	for name, path := range map[string]string{
		"demo": "/zklock/demo", "a/b": "/zklock/a/b", "/a/b": "/a/b", "ünïcode": "/zklock/ünïcode", "...": "/zklock/...",
		strings.Repeat("x", 512): "/zklock/" + strings.Repeat("x", 512), "a zookeeper": "/zklock/a zookeeper",
	} {
		if l := c.Mutex(name); l.Path() != path || l.String() != path {
			t.Errorf("%q is %q", name, l.Path())
		}
	}
}

// TestBadOptions are refused with a reason, before anything is dialled.
func TestBadOptions(t *testing.T) {
	never := func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialled")
		return nil, errors.New("never")
	}
	for what, o := range map[string]*zklock.Options{
		"negative timeout":   {SessionTimeout: -1},
		"timeout of 1ns":     {SessionTimeout: 1},
		"negative drift":     {ClockDrift: -0.1},
		"drift of a half":    {ClockDrift: 0.5},
		"timeout of a month": {SessionTimeout: 31 * 24 * time.Hour},
	} {
		o.DialContext = never
		_, err := zklock.Dial(t.Context(), "127.0.0.1:1", o)
		if !errors.Is(err, zklock.ErrInvalidOptions) && !errors.Is(err, zk.ErrInvalidOptions) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var e *zklock.Error
	if _, err := zklock.Dial(t.Context(), "", nil); !errors.Is(err, zk.ErrInvalidServers) || !errors.As(err, &e) || e.Op != "dial" {
		t.Errorf("no servers: %v", err)
	}
}

// TestOwnerTooLarge: metadata over 4 KiB are refused before any I/O.
func TestOwnerTooLarge(t *testing.T) {
	srv := zktest.Start(t)
	c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{
		DialContext: srv.DialContext, Owner: &zklock.Owner{Command: strings.Repeat("x", 5000)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Mutex("large").Acquire(t.Context()); !errors.Is(err, zklock.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

// TestAnonymous leaves the owner's data out.
func TestAnonymous(t *testing.T) {
	srv := zktest.Start(t)
	c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{DialContext: srv.DialContext, Anonymous: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := c.Mutex("anonymous")
	defer release(t, acquire(t, l))
	found, err := l.Inspect(t.Context())
	if err != nil || len(found) != 1 || found[0].Owner != (zklock.Owner{}) || found[0].Data != "" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestErrorTexts tell what was tried, on what, and why.
func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		"zklock: acquire /a: the lock is held by another": &zklock.Error{Op: "acquire", Path: "/a", Err: zklock.ErrLocked},
		"zklock: dial: the client is closed":              &zklock.Error{Op: "dial", Err: zklock.ErrClosed},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func TestOwnerString(t *testing.T) {
	for want, o := range map[string]zklock.Owner{"h:7": {Host: "h", PID: 7}, "h": {Host: "h"}, "": {}} {
		if o.String() != want {
			t.Errorf("%q, want %q", o.String(), want)
		}
	}
}
