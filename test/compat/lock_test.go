package compat

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// refusal is the timeout of an acquire that must time out.
const refusal = 200 * time.Millisecond

// patience is the timeout of an acquire that must succeed.
const patience = 3 * time.Minute

// TestZnodeNamesOfOtherLibraries checks the names on which zklock's layouts depend.
func TestZnodeNamesOfOtherLibraries(t *testing.T) {
	const guid = `_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		kazoo, curator := harness.Kazoo(t, s.Addr), harness.Curator(t, s.Addr)
		for _, c := range []struct {
			peer          *harness.Peer
			kind, pattern string
		}{
			{curator, "mutex", `^/` + guid + `-lock-0{10}$`},
			{curator, "write", `^/` + guid + `-__WRIT__0{10}$`},
			{curator, "read", `^/` + guid + `-__READ__0{10}$`},
			{curator, "semaphore:2", `^/leases/` + guid + `-lease-0{10}$`},
			{curator, "latch", `^/` + guid + `-latch-0{10}$`},
			{kazoo, "lock", `^/[0-9a-f]{32}__lock__0{10}$`},
			{kazoo, "write", `^/[0-9a-f]{32}__lock__0{10}$`},
			{kazoo, "read", `^/[0-9a-f]{32}__rlock__0{10}$`},
			{kazoo, "semaphore:2", `^/[0-9a-f]{32}$`},
		} {
			path := s.Chroot + "/" + c.peer.Name + "-" + strings.ReplaceAll(c.kind, ":", "-")
			node, err := c.peer.Acquire(t.Context(), c.kind, path, patience)
			if err != nil {
				t.Fatal(err)
			}
			if name := strings.TrimPrefix(node, path); !regexp.MustCompile(c.pattern).MatchString(name) {
				t.Errorf("%s's %s created %s, want %s", c.peer.Name, c.kind, name, c.pattern)
			}
			if err := c.peer.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestWhichLibrariesExcludeEachOther checks each pair of a holder and a second client on one path.
// Curator does not wait for kazoo's znodes. kazoo waits for Curator's only with
// extra_lock_patterns. Curator's mutexes and read-write locks do not wait for each other. zklock
// waits for all of them. kazoo's semaphore is another recipe.
func TestWhichLibrariesExcludeEachOther(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		kazoo, kazoo2 := harness.Kazoo(t, s.Addr), harness.Kazoo(t, s.Addr)
		curator, curator2 := harness.Curator(t, s.Addr), harness.Curator(t, s.Addr)
		ours := func(layout string) *harness.Peer { return Zklock(t, ZklockOptions{Servers: s.Addr, Layout: layout}) }
		zklock, kazooish, mixed := ours("curator"), ours("kazoo"), ours("mixed")
		for name, c := range map[string]struct {
			holder *harness.Peer
			holds  string
			tries  *harness.Peer
			kind   string
			waits  bool
		}{
			"curator-curator":      {curator, "mutex", curator2, "mutex", true},
			"curator-kazoo":        {curator, "mutex", kazoo, "lock", false},
			"curator-kazoo-shared": {curator, "mutex", kazoo, "lock-shared", true},
			"kazoo-kazoo":          {kazoo, "lock", kazoo2, "lock", true},
			"kazoo-curator":        {kazoo, "lock", curator, "mutex", false},
			"write-read":           {curator, "write", curator2, "read", true},
			"read-write":           {curator, "read", curator2, "write", true},
			"read-read":            {curator, "read", curator2, "read", false},
			"kazoo-read-write":     {kazoo, "read", kazoo2, "write", true},
			"kazoo-read-read":      {kazoo, "read", kazoo2, "read", false},
			"semaphore":            {curator, "semaphore:1", curator2, "semaphore:1", true},

			"zklock-curator":         {zklock, "mutex", curator, "mutex", true},
			"curator-zklock":         {curator, "mutex", zklock, "mutex", true},
			"zklock-kazoo":           {zklock, "mutex", kazoo, "lock", false},
			"zklock-kazoo-shared":    {zklock, "mutex", kazoo, "lock-shared", true},
			"kazoo-zklock":           {kazoo, "lock", zklock, "mutex", true},
			"writer-curator-mutex":   {zklock, "write", curator, "mutex", false},
			"curator-mutex-writer":   {curator, "mutex", zklock, "write", true},
			"reader-curator-mutex":   {zklock, "read", curator, "mutex", false},
			"mutex-curator-writer":   {zklock, "mutex", curator, "write", false},
			"curator-writer-mutex":   {curator, "write", zklock, "mutex", true},
			"curator-reader-mutex":   {curator, "read", zklock, "mutex", true},
			"kazoo-reader-mutex":     {kazoo, "read", zklock, "mutex", true},
			"kazoo-layout-kazoo":     {kazooish, "mutex", kazoo, "lock", true},
			"kazoo-layout-writer":    {kazooish, "read", kazoo, "write", true},
			"kazoo-layout-lock":      {kazooish, "read", kazoo, "lock", false},
			"lock-kazoo-layout":      {kazoo, "lock", kazooish, "read", true}, // is not refused
			"lock-mixed-reader":      {kazoo, "lock", mixed, "read", true},
			"mixed-reader-lock":      {mixed, "read", kazoo, "lock", false},
			"kazoo-layout-curator":   {kazooish, "mutex", curator, "mutex", false},
			"curator-kazoo-layout":   {curator, "mutex", kazooish, "mutex", true},
			"mixed-curator":          {mixed, "mutex", curator, "mutex", true},
			"curator-mixed":          {curator, "mutex", mixed, "mutex", true},
			"mixed-kazoo":            {mixed, "mutex", kazoo, "lock", true},
			"kazoo-mixed":            {kazoo, "lock", mixed, "mutex", true},
			"mixed-kazoo-writer":     {mixed, "mutex", kazoo, "write", true},
			"mixed-kazoo-reader":     {mixed, "mutex", kazoo, "read", true},
			"layouts":                {zklock, "mutex", kazooish, "mutex", true},
			"layouts-mixed":          {kazooish, "mutex", mixed, "mutex", true},
			"semaphore-curator":      {zklock, "semaphore:1", curator, "semaphoremutex", true},
			"curator-semaphore":      {curator, "semaphoremutex", zklock, "semaphore:1", true},
			"semaphore-with-room":    {zklock, "semaphore:2", curator, "semaphore:2", false},
			"semaphore-kazoo":        {zklock, "semaphore:4:4", kazoo, "semaphore:4", false},
			"kazoo-semaphore":        {kazoo, "semaphore:4", zklock, "semaphore:4:4", false},
			"semaphore-without-room": {zklock, "semaphore:3:2", curator, "semaphore:3:2", true},
		} {
			t.Run(name, func(t *testing.T) {
				exclusion(t, s.Chroot+"/"+name, c.holder, c.holds, c.tries, c.kind, c.waits)
			})
		}
	})
}

// exclusion lets a second client acquire a held lock, and again after the release.
func exclusion(t *testing.T, path string, holder *harness.Peer, holds string, tries *harness.Peer, kind string, waits bool) {
	t.Helper()
	ctx := t.Context()
	if _, err := holder.Acquire(ctx, holds, path, patience); err != nil {
		t.Fatal(err)
	}
	limit := patience
	if waits {
		limit = refusal
	}
	_, err := tries.Acquire(ctx, kind, path, limit)
	if waited := errors.Is(err, harness.ErrPeerTimeout); waited != waits {
		t.Errorf("%s tried %s while %s held %s: %v, want it to wait: %v", tries.Name, kind, holder.Name, holds, err, waits)
	}
	if err == nil {
		if err := tries.Release(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := holder.Release(ctx); err != nil {
		t.Error(err)
	}
	if _, err := tries.Acquire(ctx, kind, path, patience); err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := tries.Release(ctx); err != nil {
		t.Error(err)
	}
}

func TestPeerReportsErrors(t *testing.T) {
	s := harness.Shared(t)
	for _, p := range []*harness.Peer{harness.Kazoo(t, s.Addr), harness.Curator(t, s.Addr)} {
		if _, err := p.Do(t.Context(), "dance"); !errors.Is(err, harness.ErrPeer) || !strings.Contains(err.Error(), "dance") {
			t.Errorf("%s: unknown command: %v", p.Name, err)
		}
		if _, err := p.Acquire(t.Context(), "crown", "/x", time.Second); !errors.Is(err, harness.ErrPeer) {
			t.Errorf("%s: unknown kind: %v", p.Name, err)
		}
		p.Kill()
		if err := p.Release(t.Context()); !errors.Is(err, harness.ErrPeer) {
			t.Errorf("%s: command after its end: %v", p.Name, err)
		}
	}
}

func TestContextEndsPeerCommand(t *testing.T) {
	s := harness.Shared(t)
	holder, waiter := harness.Kazoo(t, s.Addr), harness.Kazoo(t, s.Addr)
	path := s.Chroot + "/l"
	if _, err := holder.Acquire(t.Context(), "lock", path, patience); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), refusal)
	defer cancel()
	if _, err := waiter.Acquire(ctx, "lock", path, patience); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Acquire = %v, want that its context ended", err)
	}
}
