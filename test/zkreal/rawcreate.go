package zkreal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// errNodeExists is ZooKeeper's error -110.
var errNodeExists = errors.New("zkreal: node exists")

// makeNode creates one empty persistent node that everybody may use. It speaks
// the few bytes by hand, so that this harness needs no part of what it tests.
func makeNode(ctx context.Context, addr, path string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("zkreal: create %s: %w", path, err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return fmt.Errorf("zkreal: create %s: %w", path, err)
	}
	// Connect: protocol 0, last zxid 0, 10 s, no session, null password.
	connect := append(make([]byte, 4+8), 0, 0, 0x27, 0x10)
	connect = append(append(connect, make([]byte, 8)...), 0xff, 0xff, 0xff, 0xff)
	if _, err := exchange(conn, connect); err != nil {
		return fmt.Errorf("zkreal: connect to %s: %w", addr, err)
	}
	reply, err := exchange(conn, createFrame(path))
	if err != nil {
		return fmt.Errorf("zkreal: create %s: %w", path, err)
	}
	if len(reply) < 16 {
		return fmt.Errorf("zkreal: create %s: reply of %d bytes", path, len(reply))
	}
	switch code := int32(binary.BigEndian.Uint32(reply[12:])); code {
	case 0:
	case -110:
		return fmt.Errorf("%w: %s", errNodeExists, path)
	default:
		return fmt.Errorf("zkreal: create %s: error %d", path, code)
	}
	if _, err := exchange(conn, binary.BigEndian.AppendUint64(nil, 2<<32|0xfffffff5)); err != nil {
		return fmt.Errorf("zkreal: close the session that created %s: %w", path, err)
	}
	return nil
}

// createFrame is a create (operation 1) with xid 1, the ACL world:anyone and
// mode 0.
func createFrame(path string) []byte {
	text := func(b []byte, s string) []byte {
		return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	b := []byte{0, 0, 0, 1, 0, 0, 0, 1}
	b = text(b, path)
	b = append(b, 0xff, 0xff, 0xff, 0xff) // null data
	b = append(b, 0, 0, 0, 1, 0, 0, 0, 31)
	b = text(text(b, "world"), "anyone")
	return append(b, 0, 0, 0, 0)
}

// exchange sends one frame and returns the body of the next that comes.
func exchange(conn net.Conn, body []byte) ([]byte, error) {
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > 1<<20 {
		return nil, fmt.Errorf("frame of %d bytes", n)
	}
	reply := make([]byte, n)
	_, err := io.ReadFull(conn, reply)
	return reply, err
}
