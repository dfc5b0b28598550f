package wire

import "github.com/zklock/zklock/internal/jute"

// AuthPacket adds an identity to a connection (OpAuth), such as the scheme
// "digest" with "user:password" in Auth. Type is zero. The answer is [Empty]; a
// failure is ErrAuthFailed, after which the server closes the connection. Auth
// is a secret: it must not reach logs or errors.
type AuthPacket struct {
	Type   int32
	Scheme string
	Auth   []byte
}

// Decode reads the request; Auth aliases the frame.
func (q *AuthPacket) Decode(r *jute.Reader) {
	q.Type = r.Int32()
	q.Scheme = r.String()
	q.Auth = r.Buffer()
}

// Append appends the request.
func (q *AuthPacket) Append(b []byte) []byte {
	b = jute.AppendInt32(b, q.Type)
	b = jute.AppendString(b, q.Scheme)
	return jute.AppendBuffer(b, q.Auth)
}
