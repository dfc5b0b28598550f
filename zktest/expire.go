package zktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/zk"
)

// expireWait bounds ExpireSession.
const expireWait = 10 * time.Second

// passwords are those of all sessions that were made or resumed through a relay
// and the routes to it.
type passwords struct {
	mu sync.Mutex
	of map[int64][]byte
}

// learn keeps the password of a session, from the answer to its handshake.
func (p *passwords) learn(frame []byte) {
	var resp wire.ConnectResponse
	jr := jute.NewReader(frame)
	resp.Decode(jr)
	if jr.Err() != nil || resp.SessionID == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = make(map[int64][]byte)
	}
	p.of[resp.SessionID] = append([]byte(nil), resp.Password...)
}

func (p *passwords) lookUp(id int64) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	password, ok := p.of[id]
	return password, ok
}

// ExpireClient ends the current session of c as [Relay.ExpireSession] does.
func (r *Relay) ExpireClient(c *zk.Client) error { return r.ExpireSession(c.SessionID()) }

// ExpireSession ends a session at the server and deletes its ephemeral nodes, as the
// session timeout would. It also closes the client's connection, so the client
// connects again at once and learns of the expiry. It works on any server and despite
// all faults of the relay, because it takes the session over and closes it. If the server
// is stopped, ExpireSession fails at once. If the server is paused, it fails after ten
// seconds. The session must have been created or resumed through this relay or a [Route]
// to it. For the session of a lock, see Hold.Session and Entry.Session in package zklock.
func (r *Relay) ExpireSession(id int64) error {
	password, ok := r.known.lookUp(id)
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
	c, err := r.bypass(ctx)
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
