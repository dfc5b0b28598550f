package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const id36 = "0123abcd-0000-4000-8000-0123456789ab"

func TestParseName(t *testing.T) {
	hex := strings.ReplaceAll(id36, "-", "")
	for _, test := range []struct {
		name  string
		class NameClass
		kind  Kind
		seq   int64
	}{
		{"_c_" + id36 + "-lock-0000000012", Contender, Exclusive, 12},
		{"_c_" + id36 + "-__READ__0000000003", Contender, Shared, 3},
		{"_c_" + id36 + "-__WRIT__2147483647", Contender, Exclusive, 2147483647},
		{"_c_" + id36 + "-lease-0000000001", Contender, Exclusive, 1},
		{"_c_" + id36 + "-latch-0000000001", Contender, Exclusive, 1},
		{hex + "__lock__0000000007", Contender, Exclusive, 7},
		{hex + "__rlock__0000000007", Contender, Shared, 7},
		{"_c_" + hex + "-lock-0000000001", Contender, Exclusive, 1}, // go-zookeeper
		{"anything-lock-0000000001", Contender, Exclusive, 1},
		{"x-lock-y-lock-0000000001", Contender, Exclusive, 1}, // the last marker counts
		{"_c_" + id36 + "-lock--2147483648", Malformed, 0, 0},
		{"x-72057594037927936-0000000004", Contender, Exclusive, 4}, // ZooKeeper's WriteLock
		{"x--5764607523034234880-0000000004", Contender, Exclusive, 4},
		{"x-0100a1b2c3d4e5f6-0000000004", Contender, Exclusive, 4}, // the same recipe in C
		{"x-72057594037927936--2147483648", Malformed, 0, 0},
		{"x--5764607523034234880--000000001", Malformed, 0, 0},
		{"x-7-12", Foreign, 0, 0},
		{"x-+7-0000000004", Foreign, 0, 0},
		{"x-99999999999999999999-0000000004", Foreign, 0, 0},
		{"x--0000000004", Foreign, 0, 0},
		{"x-host-0000000004", Foreign, 0, 0},
		{"y-7-0000000004", Foreign, 0, 0},
		{"_c_" + id36 + "-lock-99999999999", Foreign, 0, 0},
		{"_c_" + id36 + "-lock-1", Foreign, 0, 0},
		{hex + "__lock__-000000001", Malformed, 0, 0},
		{"_c_" + id36 + "-lock-", Foreign, 0, 0},
		{"_c_" + id36 + "-lock-abcdefghij", Foreign, 0, 0},
		{"_c_" + id36 + "-lock-+000000001", Foreign, 0, 0},
		{"lock-", Foreign, 0, 0},
		{"lock-99999999999", Foreign, 0, 0},
		{"lock-0000000001", Foreign, 0, 0},
		{"leases", Foreign, 0, 0},
		{"", Foreign, 0, 0},
		{"-lock-", Foreign, 0, 0},
		{"\xff-lock-\x00", Foreign, 0, 0},
	} {
		e, class := ParseName(test.name)
		if class != test.class || class == Contender && (e.Kind != test.kind || e.Seq != test.seq) {
			t.Errorf("%q: %v %+v, want %v kind %v sequence %d", test.name, class, e, test.class, test.kind, test.seq)
		}
		if e.Name != test.name && class != Malformed {
			t.Errorf("%q: named %q", test.name, e.Name)
		}
	}
}

// TestParseCustomName parses names of custom layouts whose markers can be read as a part of
// a negative sequence number. ZooKeeper 3.4 continues below zero after 2147483647.
func TestParseCustomName(t *testing.T) {
	hyphen := Names{Layout: Custom, Prefix: "lock", Exclusive: "-"}
	two := Names{Layout: Custom, Prefix: "host", Exclusive: "-", Shared: "R"}
	parent := Names{Layout: Custom, Prefix: "printer", Exclusive: "-", Only: true}
	for _, test := range []struct {
		names Names
		name  string
		class NameClass
		kind  Kind
		seq   int64
	}{
		{hyphen, "lock-0000000012", Contender, Exclusive, 12},
		{hyphen, "lock-2147483647", Contender, Exclusive, 2147483647},
		{hyphen, "lock--2147483648", Malformed, 0, 0},
		{hyphen, "lock--1000000000", Malformed, 0, 0},
		{hyphen, "lock--000000001", Malformed, 0, 0},
		{hyphen, "other--0000000012", Contender, Exclusive, 12}, // of another program, with a prefix that ends in a hyphen
		{hyphen, "lock-2147483648x", Foreign, 0, 0},
		{two, "hostR0000000012", Contender, Shared, 12},
		{two, "hostR-2147483648", Malformed, 0, 0},
		{two, "host--2147483648", Malformed, 0, 0},
		{parent, "printer-0000000012", Contender, Exclusive, 12},
		{parent, "printer--2147483648", Malformed, 0, 0},
		{parent, "printer2--2147483648", Foreign, 0, 0},
		{Names{Layout: Custom, Exclusive: "-W-", Shared: "-R-"}, "h-W--2147483648", Malformed, 0, 0},
		{Names{Layout: Custom, Exclusive: "--"}, "h---2147483648", Malformed, 0, 0},
		{Names{Layout: Custom, Exclusive: "--"}, "h--2147483647", Contender, Exclusive, 2147483647},
	} {
		e, class := test.names.Parse(test.name)
		if class != test.class || class == Contender && (e.Kind != test.kind || e.Seq != test.seq) {
			t.Errorf("%q in %+v: %+v, class %d; want class %d, %d, number %d", test.name, test.names, e, class, test.class, test.kind, test.seq)
		}
	}
}

func TestPrefixParses(t *testing.T) {
	name := Names{}.Ask([16]byte{0x01, 0x23, 0xab, 0xcd, 15: 0xff}, 1, Exclusive, false)[0] + "0000000042"
	e, class := ParseName(name)
	if class != Contender || e.GUID != "0123abcd-0000-0000-0000-0000000000ff" || e.Seq != 42 || e.Layout != Curator {
		t.Errorf("%q: %v %+v", name, class, e)
	}
}

// TestIsRecord checks that a record has the name of an entry without the sequence number.
func TestIsRecord(t *testing.T) {
	for name, want := range map[string]bool{
		"_c_" + id36 + "-lock-":               true,
		"_c_" + id36 + "-__WRIT__":            true,
		id36 + "__rlock__":                    true,
		"_c_" + id36 + "-lock-0000000012":     false,
		id36 + "__lock__0000000012":           false,
		"_c_" + id36 + "-lock--0000000012":    false,
		"_c_" + id36:                          false,
		"host-lock-":                          false,
		"config":                              false,
		"":                                    false,
		"_c_" + id36 + "-lock-" + id36:        false,
		"_c_" + id36 + "-lock-00000000120000": false,
	} {
		if IsRecord(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("_c_" + id36 + "-lock-0000000012")
	f.Add("x__rlock__0000000001")
	f.Fuzz(func(t *testing.T, name string) {
		e, class := ParseName(name)
		if class != Contender {
			return
		}
		if e.Seq < 0 || !strings.HasSuffix(name, e.Marker+fmt.Sprintf("%010d", e.Seq)) {
			t.Errorf("%q: %+v", name, e)
		}
	})
}

// TestSortIgnoresOrderOfListing checks that the order of a listing does not change the queue, and
// that exactly one exclusive entry, or the readers at the head, hold.
func TestSortIgnoresOrderOfListing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	marks := []string{markLock, markRead, markWrite, kazooLock, kazooRead}
	for range 500 {
		var children []string
		for i := range r.IntN(12) {
			children = append(children, fmt.Sprintf("_c_%d%s%010d", r.IntN(100), marks[r.IntN(len(marks))], r.IntN(20)*100+i))
		}
		children = append(children, "stray")
		first := Sort(children)
		r.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
		again := Sort(children)
		if !slices.Equal(first.Queue, again.Queue) || !slices.Equal(first.Foreign, again.Foreign) {
			t.Fatalf("%v and %v differ", first, again)
		}
		granted := 0
		for i, e := range first.Queue {
			b, blocked := Blocker(e.Kind, first.Queue[:i])
			if !blocked {
				granted++
			} else if b.Seq > e.Seq {
				t.Fatalf("%v waits for a later one, %v", e, b)
			}
		}
		if want := Holders(first.Queue); granted != want {
			t.Fatalf("%d hold in %v, want %d", granted, first.Queue, want)
		}
	}
}

// TestForeignNamesCostLittle: a waiter lists the children of a lock, and a hostile server can list
// millions of names.
func TestForeignNamesCostLittle(t *testing.T) {
	names := make([]string, 1_000_000)
	for i := range names {
		names[i] = "a"
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l := new(sorter).sort(Names{}, names, math.MaxInt64)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 || len(l.Queue)+len(l.Foreign) > 0 {
		t.Errorf("%d bytes allocated for %d names; %d contend", got, len(names), len(l.Queue))
	}
	if l := (Names{}).Sort(names); len(l.Foreign) != len(names) {
		t.Errorf("%d foreign names, want %d", len(l.Foreign), len(names))
	}
}
