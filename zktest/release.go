package zktest

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"slices"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// A Release is a server that a relay can imitate; see [Relay.Imitate].
type Release int

// The releases.
const (
	// Newest is the server itself: all requests pass.
	Newest Release = iota
	// Release35 is a server of ZooKeeper 3.5. It has no persistent watches, does not read in
	// a multi, and sends events without their zxid.
	Release35
	// Release34 is a server of ZooKeeper 3.4. In addition, it has no create2, containers,
	// znodes with a TTL, reconfig, and removeWatches, and no /zookeeper/config.
	Release34
	// Leader34 is a newer server whose leader is of ZooKeeper 3.4, as during a rolling
	// upgrade. It closes the connection when it receives a write that its leader does not
	// know.
	Leader34
)

// The requests that servers do not know. In a multi, an unknown operation makes the whole
// request malformed.
var (
	unknownTo35 = []wire.OpCode{wire.OpMultiRead, wire.OpAddWatch, wire.OpSetWatches2, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber, wire.OpWhoAmI}
	newWrites   = []wire.OpCode{wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpReconfig}
	unknownTo34 = slices.Concat(unknownTo35, newWrites, []wire.OpCode{wire.OpCheckWatches, wire.OpRemoveWatches})
)

// unknown returns the requests that a release does not know.
func (v Release) unknown() []wire.OpCode {
	switch v {
	case Release35:
		return unknownTo35
	case Release34:
		return unknownTo34
	case Leader34:
		return newWrites
	}
	return nil
}

// version returns what the release calls itself.
func (v Release) version() string {
	switch v {
	case Release35:
		return "3.5.10"
	case Release34:
		return "3.4.14"
	}
	return ""
}

// Imitate makes the relay answer requests as a server of another release does, on present and
// future connections. The imitated server answers Unimplemented to a request that it does not
// know, possibly before earlier requests are answered, and closes the connection.
func (r *Relay) Imitate(v Release) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release = v
}

func (r *Relay) imitated() Release {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.release
}

// Znodes that only newer servers have, and a name of the same length that does not exist.
var (
	configPath = []byte("/zookeeper/config")
	nowhere    = []byte("/zookeeper/conf-g")
)

// imitate returns what the imitated release does with a request. If the second result is not
// nil, it passes to the server instead.
func (v Release) imitate(frame []byte) (verdict, []byte) {
	unknown := v.unknown()
	if len(unknown) == 0 || len(frame) < 8 {
		return passOn, nil
	}
	r := jute.NewReader(frame)
	var h wire.RequestHeader
	h.Decode(r)
	switch {
	case slices.Contains(unknown, h.Op) && v == Leader34:
		return cutBefore, nil
	case slices.Contains(unknown, h.Op):
		return answerUnknown, nil
	case h.Op == wire.OpMulti && containsAny(r, unknown):
		if v == Leader34 {
			return cutBefore, nil
		}
		probe := wire.GetDataRequest{Path: "/"} // an answer in order, to be replaced
		h.Op = wire.OpExists
		return answerMalformed, probe.Append(h.Append(nil))
	case v == Release34 && bytes.Contains(frame, configPath):
		return passOn, bytes.Replace(frame, configPath, nowhere, 1)
	}
	return passOn, nil
}

// containsAny reports whether a multi contains an operation of the list.
func containsAny(r *jute.Reader, list []wire.OpCode) bool {
	var multi wire.MultiRequest
	multi.Decode(r)
	return slices.ContainsFunc(multi.Ops, func(o wire.MultiOp) bool { return slices.Contains(list, o.Op) })
}

// refusal returns the answer to an unknown request, with its length.
func refusal(frame []byte) []byte {
	h := wire.ReplyHeader{Xid: int32(binary.BigEndian.Uint32(frame)), Err: wire.ErrUnimplemented}
	return framed(h.Append(nil))
}

// malformed returns the answer to a request that cannot be decoded, from another answer.
func malformed(frame []byte) []byte {
	var h wire.ReplyHeader
	h.Decode(jute.NewReader(frame))
	h.Err = wire.ErrMarshalling
	return framed(h.Append(nil))
}

// event returns an event as the release sends it, with its length, or nil if it sends the
// same. Servers before 3.9 do not name the transaction of an event.
func (v Release) event(frame []byte) []byte {
	if v.version() == "" {
		return nil
	}
	h := wire.ReplyHeader{Xid: wire.XidEvent, Zxid: -1}
	head := h.Append(nil)
	return framed(append(head, frame[len(head):]...))
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

var versionLine = regexp.MustCompile(`Zookeeper version: [0-9.]+`)

// rename replaces the version in the answer to a four-letter word.
func (v Release) rename(answer []byte) []byte {
	if v.version() == "" {
		return answer
	}
	return versionLine.ReplaceAll(answer, []byte("Zookeeper version: "+v.version()))
}
