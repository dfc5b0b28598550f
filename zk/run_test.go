package zk

import "testing"

func TestBufferIsFreedAfterSmallUses(t *testing.T) {
	var k bufferPolicy
	keep := func(size, used int) bool { return k.keep(size, used, 100, 1000) }
	if keep(1001, 1001) {
		t.Error("kept a buffer above the maximum")
	}
	for i := range idleUses - 1 {
		if !keep(1000, 5) {
			t.Fatalf("freed after %d small uses", i+1)
		}
	}
	if keep(1000, 5) {
		t.Error("kept forever")
	}
	if keep(1000, 5) {
		t.Error("the second of two buffers is kept")
	}
	if !keep(100, 5) {
		t.Error("a small buffer is not kept")
	}
	if !keep(1000, 101) || !keep(1000, 5) {
		t.Error("not kept when it is used again")
	}
}
