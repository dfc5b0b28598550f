package processes

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

func TestFenceRefusesLowerTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := ListenFence(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		token int64
		took  bool
	}{{5, true}, {5, true}, {1 << 40, true}, {6, false}, {1 << 40, true}, {1<<40 - 1, false}} {
		if took, err := submit(conn, step.token, 3); err != nil || took != step.took {
			t.Errorf("token %d: %v, %v, want %v", step.token, took, err, step.took)
		}
	}
	if took, refused := f.Counts(); took != 4 || refused != 2 {
		t.Errorf("%d taken, %d refused", took, refused)
	}
	f.Close()
	if _, err := submit(conn, 1<<50, 3); err == nil {
		t.Error("a closed resource answers")
	}
}

// TestFenceCatches: a request that is held up comes late, and is then refused.
func TestFenceCatches(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := ListenFence(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if c := f.Catch(time.Millisecond); c != nil {
		t.Fatalf("caught %+v, of nobody", c)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		took bool
		err  error
	}
	late := make(chan answer, 1)
	caught := make(chan *Caught, 1)
	go func() { caught <- f.Catch(time.Minute) }() // ends when it has caught
	for trapSet := false; !trapSet; {
		f.mu.Lock()
		trapSet = f.trap != nil
		f.mu.Unlock()
	}
	go func() { // ends with the answer
		took, err := submit(conn, 5, 7)
		late <- answer{took, err}
	}()
	c := <-caught
	if c == nil || c.Proc != 7 {
		t.Fatalf("caught %+v, want process 7", c)
	}
	if !f.Submit(6) {
		t.Error("a later holder was refused")
	}
	c.Free()
	if a := <-late; a.err != nil || a.took {
		t.Errorf("the late request: %+v, want that it is refused", a)
	}
}
