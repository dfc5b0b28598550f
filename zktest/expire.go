package zktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// expireWait bounds ExpireSession.
const expireWait = 10 * time.Second

// learn keeps the password of a session, from the answer to its handshake.
func (r *Relay) learn(frame []byte) {
	var resp wire.ConnectResponse
	jr := jute.NewReader(frame)
	resp.Decode(jr)
	if jr.Err() != nil || resp.SessionID == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[resp.SessionID] = append([]byte(nil), resp.Password...)
}

// ExpireSession ends a session at the server, with its ephemeral nodes, as its
// timeout would; the client learns of it when it next connects, which is at
// once since its connection is closed. It works on any server, by taking the
// session over and closing it, and past all faults. The session must have been
// made or resumed through this relay.
func (r *Relay) ExpireSession(id int64) error {
	r.mu.Lock()
	password, ok := r.known[id]
	r.mu.Unlock()
	if !ok {
		return fmt.Errorf("zktest: session %#x was never seen here: expire it where its client connects", id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), expireWait)
	defer cancel()
	// The session's own client comes back as soon as it is cut off, perhaps
	// before the server has read the closing.
	var err error
	for range 100 {
		if err = r.closeSession(ctx, id, password); err == nil {
			return nil
		}
		if ctx.Err() != nil || errors.Is(err, errUnreachable) {
			break
		}
	}
	return fmt.Errorf("zktest: cannot expire session %#x: %w", id, err)
}

// errUnreachable says that no attempt can succeed.
var errUnreachable = errors.New("the server cannot be reached")

// closeSession takes session id over and closes it. It returns nil when the
// session is over: closed, or not known to the server any more.
func (r *Relay) closeSession(ctx context.Context, id int64, password []byte) error {
	c, err := r.dial(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreachable, err)
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	c.SetDeadline(deadline)
	req := wire.ConnectRequest{Timeout: 10_000, SessionID: id, Password: password, HasReadOnly: true}
	b := wire.AppendRecord(nil, &req)
	if _, err := c.Write(wire.AppendRequest(b, 1, wire.OpCloseSession, nil)); err != nil {
		return err
	}
	br := bufio.NewReader(c)
	frame, err := wire.ReadFrame(br, nil, maxFrame)
	if err != nil {
		return err
	}
	var resp wire.ConnectResponse
	if resp.Decode(jute.NewReader(frame)); resp.SessionID == 0 {
		return nil
	}
	if frame, err = wire.ReadFrame(br, frame, maxFrame); err != nil {
		return err
	}
	var h wire.ReplyHeader
	h.Decode(jute.NewReader(frame))
	if h.Err != wire.ErrOK {
		return h.Err
	}
	return nil
}
