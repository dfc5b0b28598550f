package bench

import (
	"context"
	"fmt"
	"sync"

	"github.com/zklock/zklock/zk"
)

// dialsAtOnce bounds how many sessions are opened concurrently, because each one is a write
// on the servers.
const dialsAtOnce = 32

// session is a session with its meter and the contenders that share it. The members do not
// change after listen.
type session struct {
	client  *zk.Client
	meter   *meter
	members []contender
	unhear  func() // ends the listening
}

// dialSessions opens n sessions. If some cannot be opened, it returns the others with the
// error.
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
				cancel() // if one is refused, so are the rest
			}
		})
	}
	wg.Wait()
	if first != nil {
		return found, fmt.Errorf("herd: %d of %d sessions could be had: %w", len(found), n, first)
	}
	return found, nil
}

// dialSession opens one session on metered connections.
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

// listen passes events to the members. If a connection is lost, it calls disturbed, because
// the counts are then invalid.
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

// closeSessions ends sessions and removes what their members have on the servers. It takes
// at most as long as the Close of one client.
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
		// Each of these goroutines ends when one session is closed, which takes a bounded
		// time.
		wg.Go(func() {
			// If the end is not confirmed, the session ends at its timeout.
			_ = s.client.Close()
			for _, m := range s.members {
				m.close()
			}
		})
	}
	wg.Wait()
}

// quiet waits until all traffic has been counted. The answer to a sync arrives after all
// events that the session received before, so the client has handled these events and
// queued its requests. The answer to a second sync arrives after the answers to those
// requests. If both brought no traffic, nothing was in flight when they began.
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

// syncAll sends a sync in every session at the same time, and waits for the answers.
func syncAll(ctx context.Context, sessions []*session) error {
	answers := make(chan error, len(sessions)) // room for one answer each, so that sending never blocks
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

// total returns the sum of all sessions' counts. The counts are not read at the same
// moment, which does not matter without traffic.
func total(sessions []*session) (sum Traffic) {
	for _, s := range sessions {
		sum.add(s.meter.read())
	}
	return sum
}
