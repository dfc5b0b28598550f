package wire

import "github.com/zklock/zklock/internal/jute"

// GetEphemeralsRequest asks for the ephemeral nodes of the own session whose
// paths begin with PrefixPath (OpGetEphemerals).
type GetEphemeralsRequest struct {
	PrefixPath string
}

// Decode reads the request.
func (q *GetEphemeralsRequest) Decode(r *jute.Reader) {
	q.PrefixPath = r.String()
}

// Append appends the request.
func (q *GetEphemeralsRequest) Append(b []byte) []byte {
	return jute.AppendString(b, q.PrefixPath)
}

// GetEphemeralsResponse answers OpGetEphemerals with paths, in no order.
type GetEphemeralsResponse struct {
	Ephemerals []string
}

// Decode reads the answer.
func (p *GetEphemeralsResponse) Decode(r *jute.Reader) {
	p.Ephemerals = r.Strings()
}

// Append appends the answer.
func (p *GetEphemeralsResponse) Append(b []byte) []byte {
	return jute.AppendStrings(b, p.Ephemerals)
}
