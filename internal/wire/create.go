package wire

import "github.com/zklock/zklock/internal/jute"

// CreateRequest creates the znode Path (OpCreate, OpCreate2, OpCreateContainer; the
// codes differ in the answer and in the permitted modes). Nil Data creates a znode
// with null data, which differs from empty data. The server refuses a nil or empty
// ACL.
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

// CreateResponse answers OpCreate with the path of the created znode, which for a
// sequential znode ends in its number.
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

// Create2Response answers OpCreate2, OpCreateContainer, and OpCreateTTL with the path
// and the Stat of the created znode.
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

// CreateTTLRequest creates a znode that the server deletes when it has had no change
// and no children for TTL milliseconds (OpCreateTTL). The answer is a
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

// CreateMode is the kind of znode that a create makes
// (org.apache.zookeeper.CreateMode). Zero is a persistent znode.
type CreateMode int32

// The kinds of znodes. ModeContainer requires OpCreateContainer, and the TTL modes
// require OpCreateTTL.
const (
	ModePersistent              CreateMode = 0
	ModeEphemeral               CreateMode = 1
	ModePersistentSequential    CreateMode = 2
	ModeEphemeralSequential     CreateMode = 3
	ModeContainer               CreateMode = 4
	ModePersistentTTL           CreateMode = 5
	ModePersistentSequentialTTL CreateMode = 6
)

// Valid reports whether the mode is one of those above. A server answers
// ErrBadArguments to any other.
func (m CreateMode) Valid() bool {
	return m >= ModePersistent && m <= ModePersistentSequentialTTL
}

// Ephemeral reports whether the server deletes the znode at the end of the session
// that created it.
func (m CreateMode) Ephemeral() bool {
	return m == ModeEphemeral || m == ModeEphemeralSequential
}

// Sequential reports whether the server appends a number to the name.
func (m CreateMode) Sequential() bool {
	return m == ModePersistentSequential || m == ModeEphemeralSequential || m == ModePersistentSequentialTTL
}

// Container reports whether the server deletes the znode some time after its last
// child.
func (m CreateMode) Container() bool {
	return m == ModeContainer
}

// TTL reports whether the server deletes the znode when it has had no change and no
// children for a given time.
func (m CreateMode) TTL() bool {
	return m == ModePersistentTTL || m == ModePersistentSequentialTTL
}
