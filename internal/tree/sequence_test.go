package tree

import (
	"math"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

func TestJumpSequence(t *testing.T) {
	w := newWorld(t, Config{})
	p := w.dial()
	p.mk("/q", wire.ModePersistent)
	p.mk("/q/n-", wire.ModePersistentSequential)
	for _, test := range []struct {
		path string
		next int32
		want wire.ErrCode
	}{
		{"/missing", 5, wire.ErrNoNode},
		{"/q", 0, wire.ErrBadArguments}, // it was given already
		{"/q", -1, wire.ErrBadArguments},
		{"/q", math.MaxInt32 - 1, wire.ErrOK},
	} {
		before := w.tree.Zxid()
		if err := w.tree.JumpSequence(test.path, test.next, w.now, &w.out); err != test.want {
			t.Errorf("%s to %d: %v, want %v", test.path, test.next, err, test.want)
		}
		if took := w.tree.Zxid() - before; (took == 1) != (test.want == wire.ErrOK) {
			t.Errorf("%s to %d took %d transactions", test.path, test.next, took)
		}
		w.flush() // compares with a tree that replays
	}
	if got := p.mk("/q/n-", wire.ModePersistentSequential); got != "/q/n-2147483646" {
		t.Errorf("the next child is %s", got)
	}
}
