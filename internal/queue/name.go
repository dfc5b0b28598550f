package queue

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// Kind says with whom an entry of a queue may share the lock.
type Kind uint8

// The kinds of entries.
const (
	Exclusive Kind = iota // a mutex or a writer: holds alone
	Shared                // a reader: holds together with other readers
)

// Layout says how a queue's entries are named. For an entry, it is the library whose
// recipe wrote the name.
type Layout uint8

// The layouts. All except Custom read the entries of all the others; they differ in the
// names that they write.
const (
	Curator   Layout = iota // Curator, go-zookeeper and zklock: _c_GUID-MARKERsequence
	Kazoo                   // kazoo: GUID, marker, sequence
	Mixed                   // both names at once, for fleets of both
	Latch                   // Curator's LeaderLatch
	WriteLock               // ZooKeeper's own recipe: x-SESSION-sequence
	Custom                  // the caller's prefix and markers, and no others
)

// The markers between a name's GUID and its sequence number.
const (
	markLock  = "-lock-"    // Curator's InterProcessMutex, LeaderSelector; go-zookeeper
	markRead  = "-__READ__" // Curator's read lock
	markWrite = "-__WRIT__" // Curator's write lock
	markLease = "-lease-"   // Curator's InterProcessSemaphoreV2
	markLatch = "-latch-"   // Curator's LeaderLatch
	kazooLock = "__lock__"  // kazoo's Lock, WriteLock, Election
	kazooRead = "__rlock__" // kazoo's ReadLock
	// ZooKeeper's WriteLock, in Java and in C, writes its session between the two.
	writePrefix, writeMark = "x-", "-"
)

// digits is the length of ZooKeeper's sequence suffix, "%010d" of an int32.
const digits = 10

// Sequence numbers stay at the largest int32. The core refuses acquires well before that,
// and warns earlier still. (Curator, kazoo and go-zookeeper grant a lock to two holders
// there.)
const (
	SequenceLimit   = 1<<31 - 1<<20
	SequenceWarning = 1<<31 - 1<<24
)

// An Entry is the parsed name of one contender.
type Entry struct {
	Name   string // the child's whole name
	GUID   string // the part before the marker, without Curator's "_c_"
	Marker string
	Seq    int64
	Kind   Kind
	Layout Layout
}

// Writer reports whether the entry may be a writer's. A writer that downgrades leaves a
// reader with the same sequence number. A custom layout has one marker for mutexes and
// writers.
func (e Entry) Writer() bool {
	return e.Kind == Exclusive && (e.Layout == Custom || e.Marker == markWrite || e.Marker == kazooLock)
}

// Lease reports whether the entry is a semaphore's permit.
func (e Entry) Lease() bool { return e.Marker == markLease }

// Overlooks reports whether the entry may be of a recipe that does not wait for what
// an acquire of this kind writes with these names. For readers that is Curator's mutex,
// ZooKeeper's WriteLock and, but for kazoo's own layouts, kazoo's Lock, whose entries
// are named as kazoo's writers'. For exclusive entries it is WriteLock, which waits only
// for names that end in a hyphen and a number.
func (e Entry) Overlooks(n Names, kind Kind, writer bool) bool {
	switch {
	case e.Layout == WriteLock && kind == Exclusive:
		return n.Layout == Kazoo || writer && (n.Layout == Curator || n.Layout == Mixed)
	case e.Layout == WriteLock:
		return true
	case kind == Exclusive:
		return false
	}
	switch n.Layout {
	case Curator, Latch:
		return e.Marker == markLock || e.Marker == markLatch || e.Marker == kazooLock
	case Kazoo, Mixed:
		return e.Marker == markLock || e.Marker == markLatch
	}
	return false
}

// NameClass is what ParseName finds a child to be.
type NameClass uint8

// The classes of children.
const (
	Foreign   NameClass = iota // not a contender: no position in the order
	Contender                  // a well-formed entry
	Malformed                  // the form of a contender with an impossible sequence number: no grant is safe next to it
)

// marks lists the markers and their meaning. The order matters if one marker is part of
// another: kazoo's reader is before kazoo's lock.
func marks() [7]Entry {
	return [7]Entry{
		{Marker: markLock, Kind: Exclusive, Layout: Curator},
		{Marker: markRead, Kind: Shared, Layout: Curator},
		{Marker: markWrite, Kind: Exclusive, Layout: Curator},
		{Marker: markLease, Kind: Exclusive, Layout: Curator},
		{Marker: markLatch, Kind: Exclusive, Layout: Curator},
		{Marker: kazooRead, Kind: Shared, Layout: Kazoo},
		{Marker: kazooLock, Kind: Exclusive, Layout: Kazoo},
	}
}

// ParseName is [Names.Parse] of the zero Names.
func ParseName(name string) (Entry, NameClass) { return Names{}.Parse(name) }

// Misnames reports whether a client with these custom names may have made a name that is also the
// name of a contender in a known layout. Then that client may not wait for the entries before it.
// With Only, the name of the lock may follow Prefix.
func (n Names) Misnames(name string) bool {
	if n.Only {
		n.Only, n.Prefix = false, ""
	} else {
		n.Only = true
	}
	_, custom := n.Parse(name)
	_, known := ParseName(name)
	return custom == Contender && known == Contender
}

// Parse parses a child's name. A contender has a known marker and ten digits after the
// last one. Other names are foreign and have no position in the queue. A recipe's name
// with a negative number comes from a sequence that overflowed, and is Malformed. (No
// server writes eleven digits: "%010d" of an int32 never has them.)
func (n Names) Parse(name string) (Entry, NameClass) {
	if n.Layout == Custom {
		return n.parseCustom(name)
	}
	if head := len(name) - digits; head > 0 && strings.HasSuffix(name[:head], markLock) {
		// The most frequent case, and the first of the markers.
		if seq, ok := sequence(name[head:]); ok {
			guid := strings.TrimPrefix(name[:head-len(markLock)], "_c_")
			return Entry{Name: name, GUID: guid, Marker: markLock, Seq: seq, Kind: Exclusive, Layout: Curator}, Contender
		}
	}
	for _, e := range marks() {
		i := strings.LastIndex(name, e.Marker)
		if i < 0 {
			continue
		}
		suffix := name[i+len(e.Marker):]
		e.Name = name
		e.GUID = strings.TrimPrefix(name[:i], "_c_")
		if seq, ok := sequence(suffix); ok {
			e.Seq = seq
			return e, Contender
		}
		if negative(suffix) && isGUID(e.GUID) {
			return e, Malformed
		}
		return Entry{Name: name}, Foreign
	}
	return parseWriteLock(name)
}

// parseWriteLock parses the name of an entry of ZooKeeper's WriteLock: x-, the id of the
// session, a hyphen, the number. Java writes the id as a signed decimal number, C as 16
// hexadecimal digits.
func parseWriteLock(name string) (Entry, NameClass) {
	rest, ok := strings.CutPrefix(name, writePrefix)
	i := strings.LastIndex(rest, writeMark)
	if !ok || i < 1 {
		return Entry{Name: name}, Foreign
	}
	e := Entry{Name: name, GUID: rest[:i], Marker: writeMark, Kind: Exclusive, Layout: WriteLock}
	suffix := rest[i+1:]
	if strings.HasSuffix(e.GUID, "-") { // the hyphen before it is the number's sign
		e.GUID, suffix = e.GUID[:i-1], rest[i:]
	}
	if !isSession(e.GUID) {
		return Entry{Name: name}, Foreign
	}
	if seq, ok := sequence(suffix); ok {
		e.Seq = seq
		return e, Contender
	}
	if negative(suffix) {
		return e, Malformed
	}
	return Entry{Name: name}, Foreign
}

// isSession reports whether s is the id of a session as WriteLock writes it.
func isSession(s string) bool {
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		return s[0] != '+'
	}
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}

// parseCustom parses a name of a custom layout, which has no GUID. A negative number comes
// from a sequence that overflowed.
func (n Names) parseCustom(name string) (Entry, NameClass) {
	if n.Only && !strings.HasPrefix(name, n.Prefix) {
		return Entry{Name: name}, Foreign
	}
	entries := []Entry{
		{Marker: n.Exclusive, Kind: Exclusive, Layout: Custom},
		{Marker: n.Shared, Kind: Shared, Layout: Custom},
	}
	if head, ok := beforeNegative(name); ok {
		// The sign is no part of a marker, even if it looks like one.
		for _, e := range entries {
			if e.Marker != "" && strings.HasSuffix(head, e.Marker) && (!n.Only || head == n.Prefix+e.Marker) {
				e.Name = name
				return e, Malformed
			}
		}
	}
	for _, e := range entries {
		i := strings.LastIndex(name, e.Marker)
		if e.Marker == "" || i < 0 || n.Only && i != len(n.Prefix) {
			continue
		}
		suffix := name[i+len(e.Marker):]
		e.Name = name
		if seq, ok := sequence(suffix); ok {
			e.Seq = seq
			return e, Contender
		}
		if negative(suffix) {
			return e, Malformed
		}
	}
	return Entry{Name: name}, Foreign
}

// sequence parses ten digits; ok is false for anything else.
func sequence(s string) (int64, bool) {
	if len(s) != digits || s[0] == '-' || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// negative reports whether s is a negative number, of any length.
func negative(s string) bool {
	number, minus := strings.CutPrefix(s, "-")
	return minus && number != "" && strings.Trim(number, "0123456789") == ""
}

// beforeNegative returns the part of a name before a negative number in the format "%010d".
// ok is false if there is none. Ten digits that start with zero are a number without a sign.
func beforeNegative(name string) (head string, ok bool) {
	head = strings.TrimRight(name, "0123456789")
	number := name[len(head):]
	head, ok = strings.CutSuffix(head, "-")
	return head, ok && (len(number) == digits-1 || len(number) == digits && number[0] != '0')
}

// isGUID reports whether s is the hexadecimal text of 16 bytes, with or
// without hyphens.
func isGUID(s string) bool {
	s = strings.ReplaceAll(s, "-", "")
	if len(s) != 32 {
		return false
	}
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// Ask returns the names with which an entry of this kind is created. The server appends
// the sequence number. A mixed queue has two. writer says that an exclusive entry belongs
// to a read-write lock.
func (n Names) Ask(guid [16]byte, session int64, kind Kind, writer bool) []string {
	curator, kazoo := markLock, kazooLock
	switch {
	case kind == Shared:
		curator, kazoo = markRead, kazooRead
	case n.Layout == Latch:
		curator = markLatch
	case writer:
		curator = markWrite
	}
	switch n.Layout {
	case Kazoo:
		return []string{hex.EncodeToString(guid[:]) + kazoo}
	case WriteLock:
		return []string{writePrefix + strconv.FormatInt(session, 10) + writeMark}
	case Mixed:
		return []string{curators(guid, curator), hex.EncodeToString(guid[:]) + kazoo}
	case Custom:
		if kind == Shared {
			return []string{n.Prefix + n.Shared}
		}
		return []string{n.Prefix + n.Exclusive}
	}
	return []string{curators(guid, curator)}
}

// lease returns the name with which a semaphore's permit is created.
func lease(guid [16]byte) string { return curators(guid, markLease) }

// curators returns a name in Curator's layout.
func curators(guid [16]byte, mark string) string {
	b := append(make([]byte, 0, 64), "_c_"...)
	return string(append(appendGUID(b, guid), mark...))
}

// FormatGUID writes 16 bytes as Java's UUID.toString does: lower case, with
// hyphens.
func FormatGUID(g [16]byte) string {
	return string(appendGUID(make([]byte, 0, 36), g))
}

func appendGUID(b []byte, g [16]byte) []byte {
	b = hex.AppendEncode(b, g[0:4])
	for _, part := range [][]byte{g[4:6], g[6:8], g[8:10], g[10:16]} {
		b = hex.AppendEncode(append(b, '-'), part)
	}
	return b
}
