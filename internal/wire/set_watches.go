package wire

import "github.com/zklock/zklock/internal/jute"

// SetWatches sets one-time watches again after a reconnect (OpSetWatches). The
// server first sends an event for each that would have fired since the
// transaction RelativeZxid, then the answer, which is [Empty].
//
// A nil list is sent as Java's null, on which a Java server closes the
// connection: give an empty list where there is nothing to watch.
type SetWatches struct {
	RelativeZxid int64
	DataWatches  []string
	ExistWatches []string
	ChildWatches []string
}

// Decode reads the request.
func (q *SetWatches) Decode(r *jute.Reader) {
	q.RelativeZxid = r.Int64()
	q.DataWatches = r.Strings()
	q.ExistWatches = r.Strings()
	q.ChildWatches = r.Strings()
}

// Append appends the request.
func (q *SetWatches) Append(b []byte) []byte {
	b = jute.AppendInt64(b, q.RelativeZxid)
	b = jute.AppendStrings(b, q.DataWatches)
	b = jute.AppendStrings(b, q.ExistWatches)
	return jute.AppendStrings(b, q.ChildWatches)
}
