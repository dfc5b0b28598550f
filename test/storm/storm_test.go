package storm

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/durable"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/test/kinds"
	"github.com/zklock/zklock/test/zkreal"
)

var (
	duration = flag.Duration("storm.duration", 0, "how long the storm goes on over each server; 0 ends it when every fault has happened")
	seedFlag = flag.Uint64("storm.seed", 0, "seed of the storm; 0 picks one")
	kept     = flag.String("storm.judge", "", "judge the histories of a round that were kept in this directory, instead of a storm")
	totals   = flag.String("storm.totals", "", "file to which a row with the totals is appended")
)

func TestMain(m *testing.M) {
	if Burner() {
		os.Exit(0)
	}
	if code, is := Child(); is {
		os.Exit(code)
	}
	if code, is := durable.Child(); is {
		os.Exit(code)
	}
	os.Exit(zkreal.Main(m))
}

// keeping is a directory that stays if the test fails.
func keeping(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zklock-storm-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the histories and the script are in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestStorm: every fault, every kind of lock, on both servers.
func TestStorm(t *testing.T) {
	if *kept != "" {
		judgeAgain(t)
		return
	}
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64() >> 16
	}
	t.Logf("seed %d", seed)
	var mu sync.Mutex // guards sum
	var sum Totals
	t.Run("on", func(t *testing.T) {
		for _, server := range []struct {
			name  string
			start func(testing.TB) *Server
		}{{"embedded", Embedded}, {"java", Java}} {
			t.Run(server.name, func(t *testing.T) {
				t.Parallel()
				r := NewRun(t, server.start(t), seed, keeping(t))
				r.Go(t.Context(), time.Now().Add(*duration))
				t.Logf("seed %d: %s\n%s\n%s", seed, &r.Totals, history.Distribution(r.Totals.Margins), r.Totals.Table())
				for _, lack := range r.Lacks() {
					t.Errorf("too little happened: %s", lack)
				}
				mu.Lock()
				defer mu.Unlock()
				sum.Join(&r.Totals)
			})
		}
	})
	fmt.Printf("storm totals: seed=%d %s\n", seed, &sum)
	if *totals == "" || sum.Rounds == 0 {
		return
	}
	command := fmt.Sprintf("go test ./storm -run TestStorm -storm.seed=%d -storm.duration=%v", seed, *duration)
	if err := AppendRow(*totals, sum.Row(time.Now(), commit(), command)); err != nil {
		t.Error(err)
	}
}

// TestPausedHolder stops a holder by SIGSTOP after it checked its hold and before
// its write arrives. With a fence the late write is refused and the history passes.
// Without one it is applied after the write of the next holder, which the check of
// the history detects.
func TestPausedHolder(t *testing.T) {
	for _, unfenced := range []bool{false, true} {
		t.Run(fmt.Sprintf("unfenced %v", unfenced), func(t *testing.T) {
			r := NewRun(t, Embedded(t), 1, t.TempDir())
			s := newStorm(t, r.server, r.operator, r.relays, turnOf(0)[:1], filepath.Join(r.dir, "round"), 1, &r.names)
			s.resource.Unfenced = unfenced
			s.start()
			i, c := 0, (*Caught)(nil)
			for c == nil && rest(t.Context(), 0) {
				i, c = s.catch()
			}
			// Its session ends meanwhile, and others write.
			if !s.stop(t.Context(), i, 0, func() {
				for !s.resource.Passed(c) && rest(t.Context(), time.Millisecond) {
				}
				c.Free()
				for _, _, stale := s.resource.Counts(); stale == 0 && rest(t.Context(), time.Millisecond); {
					_, _, stale = s.resource.Counts()
				}
			}) {
				t.Fatal("the holder can't be stopped")
			}
			s.heal()
			s.restAll(t.Context())
			s.end(t.Context())
			v, err := Judge(s.kinds[0], s.dir, s.seed, r.server.Timeout, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(v.Violations, "\n")
			if (all != "") != unfenced || !strings.Contains(all, map[bool]string{true: "the resource took the write"}[unfenced]) {
				t.Errorf("violations: %s", all)
			}
			if v.Done.Stale == 0 != unfenced {
				t.Errorf("%d stale writes were refused", v.Done.Stale)
			}
		})
	}
}

// TestImpostorBites: workers of which each has a lock of its own are found out, by
// the histories and by the resource.
func TestImpostorBites(t *testing.T) {
	r := NewRun(t, Embedded(t), 1, t.TempDir())
	s := newStorm(t, r.server, r.operator, r.relays, turnOf(0), filepath.Join(r.dir, "round"), 1, &r.names)
	s.change = func(o *Orders) { o.Impostor = true }
	s.start()
	for _, _, stale := s.resource.Counts(); stale < 10 && rest(t.Context(), time.Millisecond); {
		_, _, stale = s.resource.Counts()
	}
	s.heal()
	s.restAll(t.Context())
	s.end(t.Context())
	for _, k := range s.kinds {
		v, err := Judge(k, s.dir, s.seed, r.server.Timeout, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Violations) == 0 {
			t.Errorf("%s: nothing is found", k.Name)
		}
	}
}

// judgeAgain judges the histories of a round that an earlier run has kept.
func judgeAgain(t *testing.T) {
	for _, k := range kinds.All() {
		if _, err := os.Stat(filepath.Join(*kept, k.Name)); err != nil {
			continue
		}
		begun := time.Now()
		v, err := Judge(k, *kept, 0, sessionTimeout, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v; %v; %s", k.Name, v.Done, time.Since(begun), history.Distribution(v.Margins))
		for _, text := range v.Violations {
			t.Errorf("%s: %s", k.Name, text)
		}
	}
}
