package zktest

import (
	"bufio"
	"context"
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
	c, err := r.dial(ctx)
	if err != nil {
		return fmt.Errorf("zktest: cannot reach the server to expire session %#x: %w", id, err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(expireWait))
	req := wire.ConnectRequest{Timeout: 10_000, SessionID: id, Password: password, HasReadOnly: true}
	b := wire.AppendRecord(nil, &req)
	b = wire.AppendRequest(b, 1, wire.OpCloseSession, nil)
	if _, err := c.Write(b); err != nil {
		return fmt.Errorf("zktest: cannot expire session %#x: %w", id, err)
	}
	br := bufio.NewReader(c)
	frame, err := wire.ReadFrame(br, nil, maxFrame)
	var resp wire.ConnectResponse
	resp.Decode(jute.NewReader(frame))
	if err != nil || resp.SessionID == 0 {
		// The server does not know the session: it has expired by itself.
		return err
	}
	if _, err := wire.ReadFrame(br, frame, maxFrame); err != nil {
		return fmt.Errorf("zktest: session %#x was not closed: %w", id, err)
	}
	return nil
}
