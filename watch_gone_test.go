package zklock

import (
	"strconv"
	"testing"

	"github.com/zklock/zklock/internal/queue"
)

// readers returns n entries of readers, all found except every third.
func readers(n int) (entries []queue.Entry, found map[string]Entry) {
	found = make(map[string]Entry, n)
	for i := range n {
		name := "_c_00000000-0000-0000-0000-000000000000-__READ__" + strconv.Itoa(i)
		entries = append(entries, queue.Entry{Name: name, Kind: queue.Shared})
		if i%3 > 0 {
			found[name] = Entry{Name: name}
		}
	}
	return entries, found
}

func TestRemoveGone(t *testing.T) {
	entries, found := readers(12)
	left, ok := removeGone(entries, 6, found)
	if !ok || len(left) != 10 || left[0].Name != entries[1].Name || left[4].Name != entries[6].Name {
		t.Errorf("left %v, %t", left, ok)
	}
	if len(entries) != 12 || entries[0].Name == left[0].Name {
		t.Error("the argument was changed")
	}
	entries[3] = queue.Entry{Name: "w", Kind: queue.Exclusive, Layout: queue.Custom}
	if left, ok := removeGone(entries, 3, found); !ok || len(left) != 11 {
		t.Errorf("before the writer: left %v, %t", left, ok)
	}
	if _, ok := removeGone(entries, 6, found); ok {
		t.Error("a writer is gone")
	}
}
