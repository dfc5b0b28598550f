package differential

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/test/zkreal"
	"github.com/zklock/zklock/zkserver"
)

var (
	seed    = flag.Uint64("seed", 1, "the first script's seed")
	scripts = flag.Int("scripts", 6, "how many scripts to run")
	steps   = flag.Int("steps", 1500, "how many steps a script has")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(zkreal.Main(m))
}

// TestSameAnswers runs random scripts on both servers and expects the same.
func TestSameAnswers(t *testing.T) {
	for i := range *scripts {
		seed := *seed + uint64(i)
		// A fresh server each: what a script leaves shows in the root's counters.
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			runScript(t, zkreal.Standalone(t, zkreal.Config{}).Addr(), seed)
		})
	}
}

// runScript plays one script on both sides, until they differ.
func runScript(t *testing.T, javaAddr string, seed uint64) {
	t.Helper()
	ours, err := zkserver.New(zkserver.Options{
		Compat38: true, ExtendedTypes: true, TickTime: 500 * time.Millisecond, MaxSessionTimeout: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- ours.Serve(ln) }() // ends with Close below
	defer func() { ours.Close(); <-served }()

	const sessions = 3
	sides := []*side{{dial: dialer(javaAddr)}, {dial: dialer(ln.Addr().String())}}
	for _, s := range sides {
		if err := s.open(sessions); err != nil {
			t.Fatal(err)
		}
		defer s.close()
	}
	w := &writer{r: rand.New(rand.NewPCG(seed, 0)), sessions: sessions}
	kinds := map[string]bool{}
	script := []step{{op: wire.OpCreate2, req: &wire.CreateRequest{Path: "/t", ACL: []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}}}}
	for i := range *steps {
		if i > 0 {
			script = append(script, w.next())
		}
		st := script[len(script)-1]
		var got [2][]string
		for j, s := range sides {
			if got[j], err = s.play(st); err != nil {
				t.Fatalf("seed %d, step %d, %v, side %d: %v", seed, i, st, j, err)
			}
		}
		kinds[got[0][0]] = true
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("seed %d, step %d, %v", seed, i, st)
			for _, line := range got[0] {
				t.Errorf("   java: %s", line)
			}
			for _, line := range got[1] {
				t.Errorf("   ours: %s", line)
			}
			for j, before := range script[:len(script)-1] {
				if j > len(script)-8 || samePath(before, st) {
					t.Logf("   step %d before: %v", j, before)
				}
			}
			return
		}
	}
	if len(kinds) < *steps/10 {
		t.Errorf("only %d different answers: the script did too little", len(kinds))
	}
}

// samePath reports whether two steps are about one path.
func samePath(a, b step) bool { return pathOf(a.req) == pathOf(b.req) }

func pathOf(rec wire.Record) string {
	text, _, _ := strings.Cut(show(rec), " ")
	return text
}

func dialer(addr string) func() (net.Conn, error) {
	return func() (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
}
