package wire

import "github.com/zklock/zklock/internal/jute"

// ConnectRequest is the first message of a connection. SessionID zero asks for
// a new session, any other value resumes one, for which Password is what the
// server gave. Timeout is in milliseconds. A server refuses a client that has
// seen a later transaction (LastZxidSeen) than itself.
//
// The read-only byte came with ZooKeeper 3.4; some clients leave it out, and
// then the answer must do without it too. HasReadOnly says whether it is there;
// ReadOnly without HasReadOnly is not sent.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	Timeout         int32
	SessionID       int64
	Password        []byte
	ReadOnly        bool
	HasReadOnly     bool
}

// Decode reads the message, which must be all that remains: only the end of the
// frame tells whether the read-only byte was sent.
func (c *ConnectRequest) Decode(r *jute.Reader) {
	c.ProtocolVersion = r.Int32()
	c.LastZxidSeen = r.Int64()
	c.Timeout = r.Int32()
	c.SessionID = r.Int64()
	c.Password = r.Buffer()
	c.ReadOnly, c.HasReadOnly = decodeReadOnly(r)
}

// Append appends the message.
func (c *ConnectRequest) Append(b []byte) []byte {
	b = jute.AppendInt32(b, c.ProtocolVersion)
	b = jute.AppendInt64(b, c.LastZxidSeen)
	b = jute.AppendInt32(b, c.Timeout)
	b = jute.AppendInt64(b, c.SessionID)
	b = jute.AppendBuffer(b, c.Password)
	return appendReadOnly(b, c.ReadOnly, c.HasReadOnly)
}

// ConnectResponse is a server's first message. Timeout is what was negotiated,
// in milliseconds. A server that does not know the session, or expired it,
// answers with SessionID and Timeout zero. ReadOnly says that the server is cut
// off from its ensemble and serves reads only; HasReadOnly as in the request.
type ConnectResponse struct {
	ProtocolVersion int32
	Timeout         int32
	SessionID       int64
	Password        []byte
	ReadOnly        bool
	HasReadOnly     bool
}

// Decode reads the message, which must be all that remains.
func (c *ConnectResponse) Decode(r *jute.Reader) {
	c.ProtocolVersion = r.Int32()
	c.Timeout = r.Int32()
	c.SessionID = r.Int64()
	c.Password = r.Buffer()
	c.ReadOnly, c.HasReadOnly = decodeReadOnly(r)
}

// Append appends the message.
func (c *ConnectResponse) Append(b []byte) []byte {
	b = jute.AppendInt32(b, c.ProtocolVersion)
	b = jute.AppendInt32(b, c.Timeout)
	b = jute.AppendInt64(b, c.SessionID)
	b = jute.AppendBuffer(b, c.Password)
	return appendReadOnly(b, c.ReadOnly, c.HasReadOnly)
}

// decodeReadOnly reads the byte that may be there or not.
func decodeReadOnly(r *jute.Reader) (value, present bool) {
	if r.Err() != nil || r.Remaining() == 0 {
		return false, false
	}
	return r.Bool(), true
}

// appendReadOnly appends the byte if it is wanted.
func appendReadOnly(b []byte, value, present bool) []byte {
	if !present {
		return b
	}
	return jute.AppendBool(b, value)
}
