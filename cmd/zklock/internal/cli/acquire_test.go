package cli

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// lookers are two clients of one new server: who holds, with its session, and
// who looks.
func lookers(t *testing.T) (holding *zklock.Client, session, z *zk.Client, looking *zklock.Client) {
	t.Helper()
	srv := zktest.Start(t)
	session, z = srv.Dial(t), srv.Dial(t)
	holding, looking = zklock.New(session, nil), zklock.New(z, nil)
	t.Cleanup(func() {
		_ = holding.Close()
		_ = looking.Close()
	})
	return holding, session, z, looking
}

// The time to wait is that of the whole acquire, whatever went by until a server
// answered.
func TestAcquireCountsFromItsBeginning(t *testing.T) {
	holding, _, _, waiting := lookers(t)
	if _, err := holding.Mutex("demo").Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	k, s, err := parsed(t, nil, "-w", "1h")
	if err != nil {
		t.Fatal(err)
	}
	line := &waitLine{out: io.Discard}
	began := time.Now()
	_, err = s.acquire(t.Context(), waiting, k, line, began.Add(-time.Hour))
	if code(err) != exitConflict || !strings.Contains(err.Error(), "was not free within 1h00m") {
		t.Errorf("%v with code %d", err, code(err))
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it waited %v more", took)
	}
}

// TestOwnerWithin: what an outer run has said is passed on if it is a session's id.
func TestOwnerWithin(t *testing.T) {
	for text, want := range map[string]string{"": "", "0x1f": "0x1f", "0xffffffffffffffff": "0xffffffffffffffff", "x": "", "0x1 ": "", strings.Repeat("0", 5000) + "1": ""} {
		t.Setenv("ZKLOCK_SESSION", text)
		if got := owner("job").Within; got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}
