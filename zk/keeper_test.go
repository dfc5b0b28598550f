package zk

import "testing"

func TestKeeper(t *testing.T) {
	var k keeper
	keep := func(size, used int) bool { return k.keep(size, used, 100, 1000) }
	if keep(1001, 1001) {
		t.Error("kept more than the most")
	}
	for i := range patience - 1 {
		if !keep(1000, 5) {
			t.Fatalf("let go after %d times", i+1)
		}
	}
	if keep(1000, 5) {
		t.Error("kept for ever")
	}
	if keep(1000, 5) {
		t.Error("the second of two buffers is kept")
	}
	if !keep(100, 5) {
		t.Error("little room is not kept")
	}
	if !keep(1000, 101) || !keep(1000, 5) {
		t.Error("not kept when it is used again")
	}
}
