package wire

import "github.com/zklock/zklock/internal/jute"

// CreateRequest creates the node Path (OpCreate, OpCreate2, OpCreateContainer;
// the codes differ in the answer and in the modes they take). Nil Data is a
// node with null data, unlike an empty one. A nil or empty ACL is refused by
// the server.
type CreateRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags CreateMode
}

// Decode reads the request; Data aliases the frame.
func (c *CreateRequest) Decode(r *jute.Reader) {
	c.Path = r.String()
	c.Data = r.Buffer()
	c.ACL = decodeACLs(r)
	c.Flags = CreateMode(r.Int32())
}

// Append appends the request.
func (c *CreateRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, c.Path)
	b = jute.AppendBuffer(b, c.Data)
	b = appendACLs(b, c.ACL)
	return jute.AppendInt32(b, int32(c.Flags))
}

// CreateResponse answers OpCreate with the path created, which for a
// sequential node ends in its number.
type CreateResponse struct {
	Path string
}

// Decode reads the answer.
func (c *CreateResponse) Decode(r *jute.Reader) {
	c.Path = r.String()
}

// Append appends the answer.
func (c *CreateResponse) Append(b []byte) []byte {
	return jute.AppendString(b, c.Path)
}

// Create2Response answers OpCreate2, OpCreateContainer and OpCreateTTL with the
// path created and the new node's Stat.
type Create2Response struct {
	Path string
	Stat Stat
}

// Decode reads the answer.
func (c *Create2Response) Decode(r *jute.Reader) {
	c.Path = r.String()
	c.Stat.Decode(r)
}

// Append appends the answer.
func (c *Create2Response) Append(b []byte) []byte {
	b = jute.AppendString(b, c.Path)
	return c.Stat.Append(b)
}
