package wire

import "github.com/zklock/zklock/internal/jute"

// Stat is the metadata of a znode (org.apache.zookeeper.data.Stat), 80 bytes on the
// wire. Times are milliseconds since 1970 on the server's clock. EphemeralOwner is
// the session that owns an ephemeral znode, and zero otherwise.
type Stat struct {
	Czxid          int64 // zxid of the transaction that created the znode
	Mzxid          int64 // zxid of the transaction that last set its data
	Ctime          int64
	Mtime          int64
	Version        int32 // number of changes of the data
	Cversion       int32 // number of changes of the children
	Aversion       int32 // number of changes of the ACL
	EphemeralOwner int64
	DataLength     int32 // bytes
	NumChildren    int32
	Pzxid          int64 // zxid of the transaction that last created or deleted a child
}

// Decode reads the 80 bytes.
func (s *Stat) Decode(r *jute.Reader) {
	s.Czxid = r.Int64()
	s.Mzxid = r.Int64()
	s.Ctime = r.Int64()
	s.Mtime = r.Int64()
	s.Version = r.Int32()
	s.Cversion = r.Int32()
	s.Aversion = r.Int32()
	s.EphemeralOwner = r.Int64()
	s.DataLength = r.Int32()
	s.NumChildren = r.Int32()
	s.Pzxid = r.Int64()
}

// Append appends the 80 bytes.
func (s *Stat) Append(b []byte) []byte {
	b = jute.AppendInt64(b, s.Czxid)
	b = jute.AppendInt64(b, s.Mzxid)
	b = jute.AppendInt64(b, s.Ctime)
	b = jute.AppendInt64(b, s.Mtime)
	b = jute.AppendInt32(b, s.Version)
	b = jute.AppendInt32(b, s.Cversion)
	b = jute.AppendInt32(b, s.Aversion)
	b = jute.AppendInt64(b, s.EphemeralOwner)
	b = jute.AppendInt32(b, s.DataLength)
	b = jute.AppendInt32(b, s.NumChildren)
	return jute.AppendInt64(b, s.Pzxid)
}
