package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
)

// errNoSession means that no server opened a session, so doctor cannot query the ensemble.
var errNoSession = errors.New("no server opens a session")

// Run gathers all facts and judges them. It fails only if ctx ends: servers that do not
// answer are a finding.
func Run(ctx context.Context, c Config) (Report, error) {
	f := &Facts{Config: c, Now: time.Now()}
	rate := measureRate()
	f.Servers = f.Config.servers(ctx)
	if f.Main = errNoSession; len(f.reached()) > 0 {
		f.Main = f.ensemble(ctx)
	}
	f.Rate = rate(ctx)
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	return f.report(), nil
}

// ensemble queries any server for the facts that all servers share.
func (f *Facts) ensemble(ctx context.Context) error {
	dialing, cancel := context.WithTimeout(ctx, f.Limit)
	defer cancel()
	z, err := zk.Dial(dialing, f.Config.Servers, &f.Zk)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }() // if this fails, the session times out
	r := inspect.NewReader(z, f.Layout)
	defer func() { _ = r.Close() }() // it owns nothing on the servers
	if err := f.locks(ctx, r); err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, f.Limit)
	defer cancel()
	if f.Who, err = z.WhoAmI(asking); err != nil && zk.Applied(err) == zk.AppliedUnknown {
		return err // otherwise the servers are older than 3.7
	}
	if f.Zxid, err = lastZxid(asking, z); err != nil {
		return err
	}
	if err := f.probe(asking, z); err != nil {
		return err
	}
	f.silences(asking, z)
	if err := f.parents(asking, z); err != nil {
		return err
	}
	return f.replaceable(asking, z)
}

// lastZxid returns the last transaction id of the ensemble. Every answer has the id of its
// server; after a sync it is at least the leader's at the time of the call.
func lastZxid(ctx context.Context, z *zk.Client) (int64, error) {
	answer := make(chan zk.Result, 1)
	z.Go(zk.SyncOp("/"), func(r zk.Result) { answer <- r })
	select {
	case r := <-answer:
		return r.Zxid, r.Err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// locks reads the locks, and a second time if there seems to be a deadlock.
func (f *Facts) locks(ctx context.Context, r *inspect.Reader) error {
	first, err := f.walk(ctx, r)
	f.Locks = first
	if err != nil || len(inspect.Deadlocks(first)) == 0 {
		return err
	}
	select {
	case <-time.After(f.Apart):
	case <-ctx.Done():
		return ctx.Err()
	}
	second, err := f.walk(ctx, r)
	f.Locks, f.Now = second, time.Now()
	f.Deadlocks = inspect.Deadlocks(inspect.Unchanged(first, second))
	return err
}

// walk finds the locks. If it may not read all of them, that is a finding.
func (f *Facts) walk(ctx context.Context, r *inspect.Reader) ([]*inspect.Lock, error) {
	found, err := r.List(ctx, f.Prefix, inspect.ListOptions{Timeout: f.Limit})
	if errors.Is(err, inspect.ErrTooMany) || errors.Is(err, inspect.ErrUnreadable) || errors.Is(err, inspect.ErrInvalidNames) {
		f.Walk, err = err, nil
	}
	return found.Locks, err
}

// report judges the facts.
func (f *Facts) report() Report {
	r := Report{At: f.Now, Prefix: f.Prefix, Locks: len(f.Locks), Servers: f.Servers, Zxid: f.Zxid}
	for _, judge := range []func() []Finding{
		f.judgeServers, f.judgeQuorum, f.judgeVersions, f.judgeLatency, f.judgeTimeout, f.judgeClock, f.judgeRate,
		f.judgeTokens, f.judgeAccess, f.judgeLocks, f.judgeLayouts, f.judgeSequence, f.judgeSessions, f.judgeDeadlocks, f.judgeJeopardy, f.judgeHeld,
	} {
		r.Findings = append(r.Findings, judge()...)
	}
	r.Level = Worst(r.Findings)
	r.Exit = r.Level.Exit()
	return r
}
