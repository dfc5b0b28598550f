package bench

import (
	"context"
	"fmt"
	"sync"

	"github.com/zklock/zklock/zk"
)

// dialsAtOnce bounds how many sessions are begun at the same time: each is a
// write of the servers.
const dialsAtOnce = 32

// session has a session, its meter, and the contenders that share it. The
// members are all there before listen, and do not change afterwards.
type session struct {
	client  *zk.Client
	meter   *meter
	members []contender
	unhear  func() // ends the listening
}

// dialSessions begins n sessions. If some can't be had, those that could are
// returned with the error.
func dialSessions(ctx context.Context, cfg *HerdConfig, n int) ([]*session, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		found []*session
		first error
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slots := make(chan struct{}, dialsAtOnce)
	for range n {
		// Each of these goroutines ends with its dial, which ctx bounds.
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			s, err := dialSession(ctx, cfg)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				found = append(found, s)
			} else if first == nil {
				first = err
				cancel() // where one is refused, so are the rest
			}
		})
	}
	wg.Wait()
	if first != nil {
		return found, fmt.Errorf("herd: %d of %d sessions could be had: %w", len(found), n, first)
	}
	return found, nil
}

// dialSession begins one session, on metered connections.
func dialSession(ctx context.Context, cfg *HerdConfig) (*session, error) {
	if cfg.Connect > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Connect)
		defer cancel()
	}
	s := &session{meter: &meter{}}
	opts := cfg.Options
	opts.DialContext = s.meter.over(opts.DialContext)
	client, err := zk.Dial(ctx, cfg.Servers, &opts)
	s.client = client
	return s, err
}

// listen hands events to the members, which are complete by now. A lost
// connection is told to disturbed, since counts are then void.
func (s *session) listen(disturbed func(error)) {
	present := true
	s.unhear = s.client.Listen(zk.Listener{
		State: func(c zk.StateChange) {
			if !present || c.State != zk.Connected {
				disturbed(fmt.Errorf("%w: %s: %v", ErrDisturbed, c.State, c.Err))
			}
			present = false
		},
		Event: func(e zk.Event) {
			for _, m := range s.members {
				m.event(e)
			}
		},
	})
}

// closeSessions ends sessions and what their members have on the servers. It
// takes as long as a client's Close at most, however many there are.
func closeSessions(sessions []*session) {
	for _, s := range sessions {
		if s.unhear != nil {
			s.unhear()
		}
		for _, m := range s.members {
			m.stop()
		}
	}
	var wg sync.WaitGroup
	for _, s := range sessions {
		// Each of these goroutines ends with the bounded closing of one session.
		wg.Go(func() {
			// An end that was not confirmed comes by the session's timeout.
			_ = s.client.Close()
			for _, m := range s.members {
				m.close()
			}
		})
	}
	wg.Wait()
}

// quiet waits until all that counts has been counted. The answer to a sync comes
// behind all that the session had been told before, so that the client has heard
// of it, and queued what it asks because of that; a second sync is behind that in
// turn, so that it was written, and answered. If both brought nothing, nothing
// was under way when they began.
func quiet(ctx context.Context, sessions []*session) error {
	for before := total(sessions); ; {
		for range 2 {
			if err := syncAll(ctx, sessions); err != nil {
				return err
			}
		}
		after := total(sessions)
		if after == before {
			return nil
		}
		before = after
	}
}

// syncAll makes a sync in every session, all at once, and waits for the answers.
func syncAll(ctx context.Context, sessions []*session) error {
	answers := make(chan error, len(sessions)) // one answer each, so that sending never blocks
	for _, s := range sessions {
		s.client.Go(zk.SyncOp("/"), func(r zk.Result) { answers <- r.Err })
	}
	for range sessions {
		select {
		case err := <-answers:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// total is what all sessions have counted. It is no picture of one moment, and
// need not be: where it matters, all is quiet.
func total(sessions []*session) (sum Traffic) {
	for _, s := range sessions {
		sum.add(s.meter.read())
	}
	return sum
}
