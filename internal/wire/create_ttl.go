package wire

import "github.com/zklock/zklock/internal/jute"

// CreateTTLRequest creates a node that the server removes when it was neither
// changed nor had children for TTL milliseconds (OpCreateTTL). The answer is a
// [Create2Response]. The other fields are those of [CreateRequest].
type CreateTTLRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags CreateMode
	TTL   int64
}

// Decode reads the request; Data aliases the frame.
func (c *CreateTTLRequest) Decode(r *jute.Reader) {
	c.Path = r.String()
	c.Data = r.Buffer()
	c.ACL = decodeACLs(r)
	c.Flags = CreateMode(r.Int32())
	c.TTL = r.Int64()
}

// Append appends the request.
func (c *CreateTTLRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, c.Path)
	b = jute.AppendBuffer(b, c.Data)
	b = appendACLs(b, c.ACL)
	b = jute.AppendInt32(b, int32(c.Flags))
	return jute.AppendInt64(b, c.TTL)
}
