package clients

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"
)

// rawTimeout limits all raw steps together.
const rawTimeout = 2 * time.Minute

// rawStep is a frame that the Java client never sends.
type rawStep struct {
	step string
	body []byte
}

// rawSteps sends requests that only other clients send: a handshake without the read-only byte,
// checks of watches that do not exist, an empty multi, and an unknown operation.
func rawSteps(p *proxy, rec *recorder) error {
	conn, err := net.Dial("tcp", p.addr())
	if err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(rawTimeout)); err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	text := func(b []byte, s string) []byte {
		return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	header := func(xid, op uint32) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, xid), op)
	}
	connect := make([]byte, 4+8+4+8+4+16)
	binary.BigEndian.PutUint32(connect[12:], 6000)
	binary.BigEndian.PutUint32(connect[24:], 16)
	for _, s := range []rawStep{
		{"handshake/without-read-only-byte", connect},
		{"unwatch/check-no-watcher", append(text(header(1, 17), "/"), 0, 0, 0, 3)},
		{"unwatch/remove-no-watcher", append(text(header(2, 18), "/"), 0, 0, 0, 1)},
		{"multi/empty", append(header(3, 14), 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff)},
		{"session/unknown-operation", header(4, 9999)},
	} {
		rec.begin(s.step, false)
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(s.body))), s.body...)
		if _, err := conn.Write(frame); err != nil {
			return fmt.Errorf("clients: step %s: %w", s.step, err)
		}
		if _, err := readFrame(conn); err != nil {
			return fmt.Errorf("clients: step %s: %w", s.step, err)
		}
	}
	return nil
}
