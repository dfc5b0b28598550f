package tree

import (
	"slices"
	"strconv"
	"strings"
)

// quota is the text of a quota's nodes: numbers by name, such as
//
//	count=4,bytes=5=;byteHardLimit=10;countHardLimit=10
//
// (org.apache.zookeeper.StatsTrack). A name that is not there counts as -1: no
// limit, or nothing known.
type quota struct {
	entries []quotaEntry
}

type quotaEntry struct {
	name  string
	value int64
}

// maxQuota is how long the text may be. It is read at every change below its path:
// one of a megabyte would hold up everybody for a minute each time. All four
// numbers at their longest take half of this.
const maxQuota = 256

// parseQuota reads the text and reports whether all of it was right. Wrong entries
// are left out, as later releases do.
func parseQuota(data string) (q quota, ok bool) {
	if len(data) > maxQuota {
		return q, false
	}
	text := strings.TrimRight(data, ",;")
	if text == "" {
		return q, true
	}
	ok = true
	// Several separators count as one; at the beginning they are an entry without
	// a name.
	for i, pair := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' }) {
		if i == 0 && !strings.HasPrefix(text, pair) {
			ok = false
		}
		// What follows a second "=" is for readers of old, which stop there.
		name, rest, found := strings.Cut(strings.TrimRight(pair, "="), "=")
		number, _, _ := strings.Cut(rest, "=")
		value := int64(-1)
		var err error
		if number != "" {
			value, err = strconv.ParseInt(number, 10, 64)
		}
		if !found || name == "" || err != nil {
			ok = false
			continue
		}
		q.set(name, value)
	}
	return q, ok
}

// get returns a number by its name.
func (q *quota) get(name string) int64 {
	for _, e := range q.entries {
		if e.name == name {
			return e.value
		}
	}
	return -1
}

// set changes a number or adds it.
func (q *quota) set(name string, value int64) {
	for i := range q.entries {
		if q.entries[i].name == name {
			q.entries[i].value = value
			return
		}
	}
	q.entries = append(q.entries, quotaEntry{name, value})
}

// change adds to both numbers of statistics.
func (q *quota) change(nodes, bytes int64) {
	q.set("count", q.get("count")+nodes)
	q.set("bytes", q.get("bytes")+bytes)
}

// add counts into statistics that are being made: they begin at zero.
func (q *quota) add(nodes, bytes int64) {
	q.set("count", max(q.get("count"), 0)+nodes)
	q.set("bytes", max(q.get("bytes"), 0)+bytes)
}

// encode is the text: the two old numbers first, and behind an "=" that makes
// readers of old stop, the others by name.
func (q *quota) encode() []byte {
	b := strconv.AppendInt([]byte("count="), q.get("count"), 10)
	b = strconv.AppendInt(append(b, ",bytes="...), q.get("bytes"), 10)
	more := slices.DeleteFunc(slices.Clone(q.entries), func(e quotaEntry) bool { return e.name == "count" || e.name == "bytes" })
	slices.SortFunc(more, func(a, b quotaEntry) int { return strings.Compare(a.name, b.name) })
	for i, e := range more {
		if i == 0 {
			b = append(b, '=')
		}
		b = append(append(append(b, ';'), e.name...), '=')
		b = strconv.AppendInt(b, e.value, 10)
	}
	return b
}
