package sim

import (
	"encoding/binary"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// requestHeader reads the xid and the operation of a framed request.
func requestHeader(frame []byte) (xid int32, op wire.OpCode) {
	if len(frame) < 12 {
		return 0, 0
	}
	return int32(binary.BigEndian.Uint32(frame[4:])), wire.OpCode(binary.BigEndian.Uint32(frame[8:]))
}

// replyHeader reads the xid and the transaction ID of a framed answer. The answer to a
// handshake has no header; its first field is 0.
func replyHeader(frame []byte) (xid int32, zxid int64, ok bool) {
	if len(frame) < 20 {
		return 0, 0, false
	}
	xid = int32(binary.BigEndian.Uint32(frame[4:]))
	return xid, int64(binary.BigEndian.Uint64(frame[8:])), xid != 0
}

func connectRequest(body []byte) (*wire.ConnectRequest, error) {
	var req wire.ConnectRequest
	r := jute.NewReader(body)
	req.Decode(r)
	return &req, r.Finish()
}

// writes reports whether a framed multi has operations other than checks.
func writes(frame []byte) bool {
	var req wire.MultiRequest
	req.Decode(jute.NewReader(frame[12:]))
	for _, op := range req.Ops {
		if op.Op != wire.OpCheck {
			return true
		}
	}
	return false
}
