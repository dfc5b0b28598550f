package wire

import "github.com/zklock/zklock/internal/jute"

// SetWatches2 is [SetWatches] with the lasting watches (OpSetWatches2), which
// need no events: they are set again as they were. Nil lists are as bad here.
type SetWatches2 struct {
	RelativeZxid               int64
	DataWatches                []string
	ExistWatches               []string
	ChildWatches               []string
	PersistentWatches          []string
	PersistentRecursiveWatches []string
}

// Decode reads the request.
func (q *SetWatches2) Decode(r *jute.Reader) {
	q.RelativeZxid = r.Int64()
	q.DataWatches = r.Strings()
	q.ExistWatches = r.Strings()
	q.ChildWatches = r.Strings()
	q.PersistentWatches = r.Strings()
	q.PersistentRecursiveWatches = r.Strings()
}

// Append appends the request.
func (q *SetWatches2) Append(b []byte) []byte {
	b = jute.AppendInt64(b, q.RelativeZxid)
	b = jute.AppendStrings(b, q.DataWatches)
	b = jute.AppendStrings(b, q.ExistWatches)
	b = jute.AppendStrings(b, q.ChildWatches)
	b = jute.AppendStrings(b, q.PersistentWatches)
	return jute.AppendStrings(b, q.PersistentRecursiveWatches)
}
