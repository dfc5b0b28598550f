package wire

import "github.com/zklock/zklock/internal/jute"

// GetSASLRequest carries the client's next SASL token (OpSASL).
type GetSASLRequest struct {
	Token []byte
}

// Decode reads the request; Token aliases the frame.
func (q *GetSASLRequest) Decode(r *jute.Reader) {
	q.Token = r.Buffer()
}

// Append appends the request.
func (q *GetSASLRequest) Append(b []byte) []byte {
	return jute.AppendBuffer(b, q.Token)
}

// SetSASLResponse carries the server's next SASL token.
type SetSASLResponse struct {
	Token []byte
}

// Decode reads the answer; Token aliases the frame.
func (q *SetSASLResponse) Decode(r *jute.Reader) {
	q.Token = r.Buffer()
}

// Append appends the answer.
func (q *SetSASLResponse) Append(b []byte) []byte {
	return jute.AppendBuffer(b, q.Token)
}
