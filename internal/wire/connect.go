package wire

import "github.com/zklock/zklock/internal/jute"

// ConnectRequest is the first message of a connection. SessionID zero requests a new
// session. Any other value resumes that session, for which Password is the one that
// the server gave. Timeout is in milliseconds. A server refuses a client that has
// seen a later transaction (LastZxidSeen) than the server itself.
//
// ZooKeeper 3.4 added the read-only byte. Some clients omit it; the answer must then
// omit it too. HasReadOnly says whether it is present. ReadOnly without HasReadOnly
// is not sent.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	Timeout         int32
	SessionID       int64
	Password        []byte
	ReadOnly        bool
	HasReadOnly     bool
}

// Decode reads the message, which must be the rest of the frame: only the end of the
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

// ConnectResponse is a server's first message. Timeout is the negotiated session
// timeout in milliseconds. A server that does not know the session, or has expired
// it, answers with SessionID and Timeout zero. ReadOnly says that the server has no
// quorum and serves only reads. HasReadOnly is as in the request.
type ConnectResponse struct {
	ProtocolVersion int32
	Timeout         int32
	SessionID       int64
	Password        []byte
	ReadOnly        bool
	HasReadOnly     bool
}

// Decode reads the message, which must be the rest of the frame.
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

// decodeReadOnly reads the read-only byte, which may be missing.
func decodeReadOnly(r *jute.Reader) (value, present bool) {
	if r.Err() != nil || r.Remaining() == 0 {
		return false, false
	}
	return r.Bool(), true
}

// appendReadOnly appends the read-only byte if it is present.
func appendReadOnly(b []byte, value, present bool) []byte {
	if !present {
		return b
	}
	return jute.AppendBool(b, value)
}
