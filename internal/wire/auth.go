package wire

import "github.com/zklock/zklock/internal/jute"

// AuthPacket adds an identity to a connection (OpAuth), such as the scheme "digest"
// with "user:password" in Auth. Type is zero. The answer is [Empty]. A failure is
// ErrAuthFailed, after which the server closes the connection. Auth is a secret: it
// must not appear in logs or errors.
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

// WhoAmIResponse answers OpWhoAmI, whose request is [Empty], with the
// identities of the connection.
type WhoAmIResponse struct {
	ClientInfo []ClientInfo
}

// ClientInfo is one identity: the scheme that proved it, and the user's name without
// any secret.
type ClientInfo struct {
	AuthScheme string
	User       string
}

// minClientInfoSize is the size of the smallest identity: two lengths.
const minClientInfoSize = 8

// Decode reads one identity.
func (c *ClientInfo) Decode(r *jute.Reader) {
	c.AuthScheme = r.String()
	c.User = r.String()
}

// Append appends one identity.
func (c *ClientInfo) Append(b []byte) []byte {
	b = jute.AppendString(b, c.AuthScheme)
	return jute.AppendString(b, c.User)
}

// Decode reads the answer.
func (p *WhoAmIResponse) Decode(r *jute.Reader) {
	p.ClientInfo = nil
	n := r.VectorLen(minClientInfoSize)
	if n < 0 {
		return
	}
	p.ClientInfo = make([]ClientInfo, n)
	for i := range p.ClientInfo {
		p.ClientInfo[i].Decode(r)
		if r.Err() != nil {
			return
		}
	}
}

// Append appends the answer.
func (p *WhoAmIResponse) Append(b []byte) []byte {
	b = jute.AppendVectorLen(b, len(p.ClientInfo), p.ClientInfo == nil)
	for i := range p.ClientInfo {
		b = p.ClientInfo[i].Append(b)
	}
	return b
}
