package wire

import "github.com/zklock/zklock/internal/jute"

// GetAllChildrenNumberRequest asks how many nodes there are below Path at any
// depth (OpGetAllChildrenNumber).
type GetAllChildrenNumberRequest struct {
	Path string
}

// Decode reads the request.
func (q *GetAllChildrenNumberRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
}

// Append appends the request.
func (q *GetAllChildrenNumberRequest) Append(b []byte) []byte {
	return jute.AppendString(b, q.Path)
}

// GetAllChildrenNumberResponse answers OpGetAllChildrenNumber.
type GetAllChildrenNumberResponse struct {
	TotalNumber int32
}

// Decode reads the answer.
func (p *GetAllChildrenNumberResponse) Decode(r *jute.Reader) {
	p.TotalNumber = r.Int32()
}

// Append appends the answer.
func (p *GetAllChildrenNumberResponse) Append(b []byte) []byte {
	return jute.AppendInt32(b, p.TotalNumber)
}
