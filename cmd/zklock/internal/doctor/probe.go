package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/zk"
)

// samples is how many requests of each kind doctor times at most.
const samples = 5

// servers queries all servers concurrently.
func (c Config) servers(ctx context.Context) []Server {
	network, hosts, chroot := cli.Addresses(c.Servers)
	found := make([]Server, len(hosts))
	var all sync.WaitGroup // all have ended when servers returns
	for i, host := range hosts {
		all.Go(func() {
			s := &found[i]
			s.Address, s.Synced = host, -1
			serving := c.words(ctx, s, network)
			s.err = c.session(ctx, s, host+chroot)
			if !serving && s.err == nil {
				c.words(ctx, s, network) // an election has ended
			}
			if s.err != nil {
				s.Error = s.err.Error()
			}
			s.Answers = s.Answers || s.err == nil
		})
	}
	all.Wait()
	return found
}

// words reads what a server reports without a session, and reports whether it serves requests.
// If the server does not answer these words, that leaves time for a session.
func (c Config) words(ctx context.Context, s *Server, network string) (serving bool) {
	serving = true
	ctx, cancel := context.WithTimeout(ctx, c.Limit/4)
	defer cancel()
	address := strings.TrimPrefix(s.Address, "unix:")
	words := []struct {
		name   string
		take   func(string)
		answer string
		err    error
	}{{name: "conf", take: s.conf}, {name: "mntr", take: s.mntr}, {name: "srvr", take: s.srvr}}
	var all sync.WaitGroup // all have ended before the answers are used
	for i := range words {
		w := &words[i]
		all.Go(func() { w.answer, w.err = c.ask(ctx, network, address, w.name) })
	}
	all.Wait()
	for _, w := range words {
		switch {
		case errors.Is(w.err, errNotAllowed):
			s.Answers = true
		case errors.Is(w.err, errNotServing):
			s.Answers, serving = true, false
		}
		if w.err == nil && w.answer != "" {
			s.Answers = true
			s.Words = append(s.Words, w.name)
			w.take(w.answer)
		}
	}
	slices.Sort(s.Words)
	s.Words = slices.Compact(s.Words)
	return serving
}

// session opens sessions on one server and measures latencies.
func (c Config) session(ctx context.Context, s *Server, servers string) error {
	opts := c.Zk
	opts.ReadOnly = true // to tell a server that lost its quorum from one that is down
	// The four-letter words take up to a quarter of the limit.
	dialing, cancel := context.WithTimeout(ctx, c.Limit*3/4)
	defer cancel()
	z, err := zk.Dial(dialing, servers, &opts)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }() // if this fails, the session times out
	ctx, stop := context.WithTimeout(ctx, c.Limit)
	defer stop()
	s.Timeout = Span(z.SessionTimeout())
	if z.State() == zk.ConnectedReadOnly {
		s.Role = "read-only"
		return nil
	}
	if err := c.measure(ctx, z, s); err != nil {
		return err
	}
	if data, _, err := z.GetConfig(ctx); err == nil {
		s.config = string(data)
	}
	// The server limits the requested timeout to its bounds, which shows them. If that
	// fails, conf may report them.
	s.MinTimeout = cmp.Or(c.negotiated(ctx, servers, 10*time.Millisecond), s.MinTimeout)
	s.MaxTimeout = cmp.Or(c.negotiated(ctx, servers, 24*time.Hour), s.MaxTimeout)
	return nil
}

// measure times requests, one after another.
func (c Config) measure(ctx context.Context, z *zk.Client, s *Server) error {
	at := c.Prefix
	if err := z.Sync(ctx, "/"); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	for {
		stat, there, err := z.Exists(ctx, at)
		if !answered(err) {
			return err
		}
		if there {
			s.identity = stat.Czxid
			break
		}
		if at == "/" {
			break
		}
		at = parentOf(at)
	}
	for _, m := range []struct {
		into *Latency
		ask  func() error
	}{
		{&s.Read, func() error { _, _, err := z.Exists(ctx, at); return err }},
		{&s.Sync, func() error { return z.Sync(ctx, at) }},
		{&s.Write, func() error { _, err := z.Multi(ctx, zk.CheckOp(at, -1)); return err }},
	} {
		var took []time.Duration
		// A slow server answers fewer than all samples in time.
		for start := time.Now(); len(took) == 0 || len(took) < samples && time.Since(start) < c.Limit/8; {
			began := time.Now()
			// The chroot may not exist: see judgeAccess.
			if err := m.ask(); !answered(err) && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		*m.into = Latency{Median: Span(took[len(took)/2]), Max: Span(took[len(took)-1])}
	}
	return nil
}

// negotiated returns the session timeout that a server grants for a requested one, 0 if
// the session fails. On a slow network the shortest sessions fail, because they expire
// before they begin.
func (c Config) negotiated(ctx context.Context, servers string, ask time.Duration) Span {
	ctx, cancel := context.WithTimeout(ctx, c.Limit/8)
	defer cancel()
	opts := c.Zk
	opts.SessionTimeout = ask
	z, err := zk.Dial(ctx, servers, &opts)
	if err != nil {
		return 0
	}
	defer func() { _ = z.Close() }() // a short session also ends by itself
	return Span(z.SessionTimeout())
}

// parentOf returns the path of the parent.
func parentOf(path string) string {
	return path[:max(1, strings.LastIndexByte(path, '/'))]
}
