package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// coverage counts operations, error codes, events, and kinds of steps in scripts.
type coverage map[string]int

// add adds other counts.
func (c coverage) add(other coverage) {
	for k, n := range other {
		c[k] += n
	}
}

// note counts a step and ZooKeeper's answers.
func (c coverage) note(st Step, lines []string) {
	c["step "+string(st.Kind)]++
	if st.Kind == KindRequest {
		c["op "+st.Op.String()]++
	}
	for _, b := range st.Burst {
		c["op "+b.Op.String()]++
	}
	for _, l := range lines {
		_, text, _ := strings.Cut(l, ": ")
		switch {
		case strings.HasPrefix(text, "event "):
			c["event "+strings.Fields(text)[1]]++
		case strings.HasPrefix(text, "handshake refused"):
			c["handshake refused"]++
		case strings.HasPrefix(text, "handshake: closed"):
			c["handshake closed"]++
		case strings.HasPrefix(text, "xid "):
			c.noteReply(text)
		}
	}
}

// noteReply counts the error of a reply, and those in the results of a multi.
func (c coverage) noteReply(text string) {
	fields := strings.Fields(text)
	if len(fields) > 4 {
		c["error "+strings.TrimSuffix(fields[4], ",")]++
	}
	if strings.Contains(text, "[error ") {
		_, text, _ = strings.Cut(text, "[error ")
		for part := range strings.SplitSeq(text, "error ") {
			name, _, _ := strings.Cut(part, ";")
			name, _, _ = strings.Cut(name, " ")
			c["result "+strings.TrimSuffix(name, "]")]++
		}
	}
}

// minimums returns the required counts for a thousand scripts.
func minimums(setup Setup) map[string]int {
	m := map[string]int{}
	for _, op := range []wire.OpCode{
		wire.OpCreate, wire.OpCreate2, wire.OpDelete, wire.OpExists, wire.OpGetData, wire.OpSetData, wire.OpMulti,
		wire.OpGetChildren, wire.OpGetChildren2, wire.OpSetACL, wire.OpAddWatch, wire.OpMultiRead, wire.OpCreateTTL,
		wire.OpCreateContainer,
	} {
		m["op "+op.String()] = 500
	}
	for _, op := range []wire.OpCode{
		wire.OpGetACL, wire.OpSync, wire.OpPing, wire.OpReconfig, wire.OpCheckWatches, wire.OpRemoveWatches, wire.OpAuth,
		wire.OpSetWatches, wire.OpSetWatches2, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber, wire.OpWhoAmI, wire.OpCloseSession,
	} {
		m["op "+op.String()] = 100
	}
	for _, err := range []wire.ErrCode{
		wire.ErrOK, wire.ErrNoNode, wire.ErrNoAuth, wire.ErrBadVersion, wire.ErrNodeExists, wire.ErrNotEmpty, wire.ErrBadArguments,
		wire.ErrInvalidACL, wire.ErrNoChildrenForEphemerals, wire.ErrNoWatcher, wire.ErrUnimplemented, wire.ErrAuthFailed,
	} {
		m["error "+err.Name()] = 20
	}
	for _, e := range []wire.EventType{wire.EventNodeCreated, wire.EventNodeDeleted, wire.EventNodeDataChanged, wire.EventNodeChildrenChanged} {
		m[fmt.Sprintf("event %v", e)] = 100
	}
	for _, k := range []Kind{KindRequest, KindBurst, KindHandshake, KindCut, KindWrong} {
		m["step "+string(k)] = 100
	}
	m["handshake refused"], m["handshake closed"] = 20, 20
	if setup.Waiting {
		for what := range m {
			m[what] /= 5 // most steps belong to waits
		}
		for _, k := range []Kind{KindExpire, KindVanish, KindGone} {
			m["step "+string(k)] = 300
		}
		return m
	}
	m["error "+wire.ErrMarshalling.Name()] = 100
	m["result "+wire.ErrRuntimeInconsistency.Name()] = 100
	if setup.Strict {
		delete(m, "step "+string(KindBurst))
		m["error "+wire.ErrQuotaExceeded.Name()] = 20
	} else {
		m["error "+wire.ErrReconfigDisabled.Name()] = 20
	}
	return m
}

// lacking lists the counts that are too small for a number of scripts.
func (c coverage) lacking(setup Setup, scripts int) []string {
	var list []string
	for what, perThousand := range minimums(setup) {
		if want := perThousand * scripts / 1000; c[what] < want {
			list = append(list, fmt.Sprintf("%s: %d times, want %d", what, c[what], want))
		}
	}
	slices.Sort(list)
	return list
}

// String lists all counts.
func (c coverage) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%s %d, ", k, c[k])
	}
	return strings.TrimSuffix(b.String(), ", ")
}
