package tree

import (
	"slices"
	"strconv"
	"strings"
)

// quota is the parsed text of a quota's node: numbers by name, such as
//
//	count=4,bytes=5=;byteHardLimit=10;countHardLimit=10
//
// (org.apache.zookeeper.StatsTrack). A missing name counts as -1: no limit, or
// unknown.
type quota struct {
	entries []quotaEntry
}

type quotaEntry struct {
	name  string
	value int64
}

// maxQuota is the maximum length of the text. It is parsed at every change below its
// path, so a text of a megabyte would delay all clients for a minute each time. All
// four numbers at their longest take half of this.
const maxQuota = 256

// maxQuotaNames is the maximum number of different names in the text. ZooKeeper has
// four.
const maxQuotaNames = 8

// parseQuota parses the text and reports whether it is valid. Invalid entries are
// skipped, as in later releases, and those beyond maxQuotaNames.
func parseQuota(data string) (q quota, ok bool) {
	if len(data) > maxQuota {
		return q, false
	}
	text := strings.TrimRight(data, ",;")
	if text == "" {
		return q, true
	}
	ok = true
	// Several separators count as one. At the beginning they are an entry without a
	// name.
	for i, pair := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' }) {
		if i == 0 && !strings.HasPrefix(text, pair) {
			ok = false
		}
		// Old readers stop at a second "=".
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
		if q.set(name, value); len(q.entries) > maxQuotaNames {
			return q, false
		}
	}
	return q, ok
}

// get returns a number by its name, or -1.
func (q *quota) get(name string) int64 {
	for _, e := range q.entries {
		if e.name == name {
			return e.value
		}
	}
	return -1
}

// set sets a number.
func (q *quota) set(name string, value int64) {
	for i := range q.entries {
		if q.entries[i].name == name {
			q.entries[i].value = value
			return
		}
	}
	q.entries = append(q.entries, quotaEntry{name, value})
}

// change adds to both numbers of a usage text.
func (q *quota) change(nodes, bytes int64) {
	q.set("count", q.get("count")+nodes)
	q.set("bytes", q.get("bytes")+bytes)
}

// add adds to both numbers of a new usage text, which start at zero.
func (q *quota) add(nodes, bytes int64) {
	q.set("count", max(q.get("count"), 0)+nodes)
	q.set("bytes", max(q.get("bytes"), 0)+bytes)
}

// encode returns the text: the two old numbers first, then an "=" that makes old
// readers stop, and the other numbers sorted by name.
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
