package wire

import "github.com/zklock/zklock/internal/jute"

// WhoAmIResponse answers OpWhoAmI, whose request is [Empty], with the
// identities of the connection.
type WhoAmIResponse struct {
	ClientInfo []ClientInfo
}

// ClientInfo is one identity: the scheme it was proved with and the user's name
// without any secret.
type ClientInfo struct {
	AuthScheme string
	User       string
}

// clientInfoMin is the room the smallest identity takes: two lengths.
const clientInfoMin = 8

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
	n := r.VectorLen(clientInfoMin)
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
