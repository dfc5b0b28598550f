package harness

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

var (
	// ErrNodeExists is ZooKeeper's error -110.
	ErrNodeExists = errors.New("harness: node exists")
	// ErrReply is any other error that a server answered, or an answer that
	// makes no sense.
	ErrReply = errors.New("harness: the server answered an error")
)

// maxReply bounds the frames that a RawSession reads.
const maxReply = 1 << 20

// RawSession is a session that speaks its few bytes by hand, so that this harness
// needs no part of what it tests. It is for one goroutine.
type RawSession struct {
	conn    net.Conn
	timeout time.Duration
	xid     uint32
}

// DialRaw opens a session of the given timeout with the server at addr. Every
// later exchange may take as long as the timeout.
func DialRaw(ctx context.Context, addr string, timeout time.Duration) (*RawSession, error) {
	conn, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	r := &RawSession{conn: conn, timeout: timeout}
	// Protocol 0, last zxid 0, timeout, session 0, password: 3.4 does not take a null one.
	connect := make([]byte, 4+8+4+8+4+16)
	binary.BigEndian.PutUint32(connect[12:], uint32(timeout.Milliseconds()))
	binary.BigEndian.PutUint32(connect[24:], 16)
	reply, err := r.exchange(connect)
	if err == nil && len(reply) < 16 {
		err = fmt.Errorf("%w: a handshake of %d bytes", ErrReply, len(reply))
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("harness: connect to %s: %w", addr, err)
	}
	return r, nil
}

// Create creates an empty persistent node that everybody may use.
func (r *RawSession) Create(path string) error {
	text := func(b []byte, s string) []byte {
		return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	body := text(nil, path)
	body = append(body, 0xff, 0xff, 0xff, 0xff) // null data
	body = append(body, 0, 0, 0, 1, 0, 0, 0, 31)
	body = text(text(body, "world"), "anyone")
	r.xid++
	if err := r.call(r.xid, 1, append(body, 0, 0, 0, 0)); err != nil {
		return fmt.Errorf("harness: create %s: %w", path, err)
	}
	return nil
}

// Ping sends a ping and waits for its answer.
func (r *RawSession) Ping() error { return r.call(0xfffffffe, 11, nil) }

// Close ends the session, and the connection even where the server is silent.
func (r *RawSession) Close() error {
	r.xid++
	err := r.call(r.xid, 0xfffffff5, nil)
	if cerr := r.conn.Close(); err == nil {
		err = cerr
	}
	return err
}

// call makes a request and returns the error in its answer.
func (r *RawSession) call(xid, op uint32, body []byte) error {
	request := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, xid), op)
	reply, err := r.exchange(append(request, body...))
	if err != nil {
		return err
	}
	if len(reply) < 16 || binary.BigEndian.Uint32(reply) != xid {
		return fmt.Errorf("%w: %d bytes that do not answer xid %d", ErrReply, len(reply), int32(xid))
	}
	switch code := int32(binary.BigEndian.Uint32(reply[12:])); code {
	case 0:
		return nil
	case -110:
		return ErrNodeExists
	default:
		return fmt.Errorf("%w: %d", ErrReply, code)
	}
}

// exchange sends one frame and returns the body of the next that comes.
func (r *RawSession) exchange(body []byte) ([]byte, error) {
	if err := r.conn.SetDeadline(time.Now().Add(r.timeout)); err != nil {
		return nil, err
	}
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	if _, err := r.conn.Write(frame); err != nil {
		return nil, err
	}
	var length [4]byte
	if _, err := io.ReadFull(r.conn, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxReply {
		return nil, fmt.Errorf("%w: a frame of %d bytes", ErrReply, n)
	}
	reply := make([]byte, n)
	_, err := io.ReadFull(r.conn, reply)
	return reply, err
}

// makeNode is a session for one Create.
func makeNode(ctx context.Context, addr, path string) error {
	r, err := DialRaw(ctx, addr, 10*time.Second)
	if err != nil {
		return err
	}
	err = r.Create(path)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return err
}
