package checkup

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/zklock/internal/survey"
	"github.com/zklock/zklock/zk"
)

// errNobody is why there is nobody to ask: no server gave a session.
var errNobody = errors.New("no server gives a session")

// Run looks at everything and judges it. It fails in no way but through ctx: servers
// that do not answer are a finding.
func Run(ctx context.Context, c Config) (Report, error) {
	f := &Facts{Config: c.filled(), Now: time.Now()}
	rate := measureRate()
	f.Servers = f.Config.servers(ctx)
	if f.Main = errNobody; len(f.reached()) > 0 {
		f.Main = f.ensemble(ctx)
	}
	f.Rate = rate(ctx)
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	return f.report(), nil
}

// ensemble asks whichever server answers for what all have in common.
func (f *Facts) ensemble(ctx context.Context) error {
	dialing, cancel := context.WithTimeout(ctx, f.Limit)
	defer cancel()
	z, err := zk.Dial(dialing, f.Config.Servers, &f.Zk)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }() // it ends by its timeout where this fails
	r := survey.NewReader(z, f.Layout)
	defer func() { _ = r.Close() }() // it has nothing on the servers
	if err := f.locks(ctx, r); err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, f.Limit)
	defer cancel()
	if f.Who, err = z.WhoAmI(asking); err != nil && zk.Applied(err) == zk.AppliedUnknown {
		return err // else the servers are older than 3.7
	}
	if f.Zxid, err = lastZxid(asking, z); err != nil {
		return err
	}
	if err := f.probe(asking, z); err != nil {
		return err
	}
	return f.parents(asking, z)
}

// lastZxid asks for the ensemble's last transaction id. Every answer has its server's;
// behind a sync it is not older than the leader's was.
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

// locks looks at the locks, and once more if there seems to be a deadlock.
func (f *Facts) locks(ctx context.Context, r *survey.Reader) error {
	first, err := f.walk(ctx, r)
	f.Locks = first
	if err != nil || len(survey.Deadlocks(first)) == 0 {
		return err
	}
	select {
	case <-time.After(f.Apart):
	case <-ctx.Done():
		return ctx.Err()
	}
	second, err := f.walk(ctx, r)
	f.Locks, f.Now = second, time.Now()
	f.Deadlocks = survey.Deadlocks(survey.Steady(first, second))
	return err
}

// walk finds the locks. That it may not see all of them is a finding.
func (f *Facts) walk(ctx context.Context, r *survey.Reader) ([]*survey.Lock, error) {
	found, err := r.Walk(ctx, f.Prefix, survey.Limits{Each: f.Limit})
	if errors.Is(err, survey.ErrTooMany) || errors.Is(err, survey.ErrHidden) || errors.Is(err, survey.ErrInvalid) {
		f.Walk, err = err, nil
	}
	return found.Locks, err
}

// report judges the facts.
func (f *Facts) report() Report {
	r := Report{At: f.Now, Prefix: f.Prefix, Locks: len(f.Locks), Servers: f.Servers, Zxid: f.Zxid}
	for _, judge := range []func() []Finding{
		f.judgeServers, f.judgeQuorum, f.judgeVersions, f.judgeLatency, f.judgeTimeout, f.judgeClock, f.judgeRate,
		f.judgeTokens, f.judgeAccess, f.judgeLocks, f.judgeLayouts, f.judgeSequence, f.judgeSessions, f.judgeDeadlocks, f.judgeHeld,
	} {
		r.Findings = append(r.Findings, judge()...)
	}
	r.Level = Worst(r.Findings)
	r.Exit = r.Level.Exit()
	return r
}
