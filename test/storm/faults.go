package storm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/zklock/zktest"
)

// fault is something that can be done, as the steps of a script name it.
type fault struct {
	name string
	// inject does it, to its end, and reports whether it happened. An error is the
	// test's own failure.
	inject func(ctx context.Context, s *Storm, step Step) (happened bool, err error)
	// suits says on which servers it can be done; nil for all.
	suits func(*Server) bool
}

// faults are all that can be done to a server's users.
func faults(server *Server) []fault {
	all := slices.Concat(lostFrames(), networkFaults(), processFaults(), operatorFaults())
	return slices.DeleteFunc(all, func(f fault) bool { return f.suits != nil && !f.suits(server) })
}

// span is how long a step lasts.
func (s *Storm) span(step Step) time.Duration {
	return time.Duration(step.For * float64(s.server.Timeout))
}

// hit are the proxies that a step concerns: mostly one, now and then all.
func (s *Storm) hit(step Step) []*zktest.Proxy {
	if step.What%4 == 0 {
		return s.relays
	}
	i := step.Who % len(s.relays)
	return s.relays[i : i+1]
}

// happens waits for one of the faults to happen, for so long that those who
// contend come by for certain, and takes the others back.
func (s *Storm) happens(ctx context.Context, all []*zktest.Fault) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*s.server.Timeout)
	defer cancel()
	happened := func() bool {
		return slices.ContainsFunc(all, func(f *zktest.Fault) bool { return f.Count() > 0 })
	}
	for !happened() && rest(ctx, 5*time.Millisecond) {
	}
	for _, f := range all {
		f.Stop()
	}
	return happened()
}

// lostFrames are the requests and replies that get lost: of every operation that
// changes something, and of any other.
func lostFrames() []fault {
	var all []fault
	frames := func(name, op string, add func(*zktest.Relay, zktest.Match) *zktest.Fault) {
		all = append(all, fault{name: name, inject: func(ctx context.Context, s *Storm, step Step) (bool, error) {
			var armed []*zktest.Fault
			for _, p := range s.hit(step) {
				skip := step.What / 4 % 3
				if op == "closeSession" || op == "connect" {
					skip = 0 // there are not that many
				}
				armed = append(armed, add(&p.Relay, zktest.Match{Op: op, Skip: skip}))
				if op == "connect" {
					p.CutConnections() // or nobody would connect
				}
			}
			return s.happens(ctx, armed), nil
		}})
	}
	for _, op := range []struct{ name, op string }{
		{"create", "create2"}, {"delete", "delete"}, {"multi", "multi"}, {"closeSession", "closeSession"}, {"connect", "connect"}, {"any", ""},
	} {
		frames("reply lost: "+op.name, op.op, (*zktest.Relay).DropReply)
		frames("request lost: "+op.name, op.op, (*zktest.Relay).DropRequest)
	}
	frames("cut behind a reply", "", (*zktest.Relay).CutAfter)
	return all
}

// networkFaults are what can be done to connections.
func networkFaults() []fault {
	// lasting begins something on the proxies, and ends it after the step's time.
	lasting := func(name string, begin, end func(*zktest.Relay, Step)) fault {
		return fault{name: name, inject: func(ctx context.Context, s *Storm, step Step) (bool, error) {
			for _, p := range s.hit(step) {
				begin(&p.Relay, step)
			}
			rest(ctx, s.span(step))
			for _, p := range s.hit(step) {
				end(&p.Relay, step)
			}
			return true, nil
		}}
	}
	atOnce := func(name string, do func(*zktest.Relay)) fault {
		return fault{name: name, inject: func(_ context.Context, s *Storm, step Step) (bool, error) {
			some := false
			for _, p := range s.hit(step) {
				some = some || p.Connections() > 0
				do(&p.Relay)
			}
			return some, nil
		}}
	}
	heal := func(r *zktest.Relay, _ Step) { r.Heal() }
	return []fault{
		atOnce("connections cut", (*zktest.Relay).CutConnections),
		atOnce("half open", (*zktest.Relay).HalfOpen),
		lasting("partition", func(r *zktest.Relay, _ Step) { r.Partition() }, heal),
		lasting("partition to the server", func(r *zktest.Relay, _ Step) { r.Partition(zktest.ToServer) }, heal),
		lasting("partition to the client", func(r *zktest.Relay, _ Step) { r.Partition(zktest.ToClient) }, heal),
		{name: "flapping partition", inject: flap},
		lasting("connections refused", func(r *zktest.Relay, _ Step) {
			r.Refuse(true)
			r.CutConnections()
		}, func(r *zktest.Relay, _ Step) { r.Refuse(false) }),
		lasting("a byte a second", func(r *zktest.Relay, _ Step) { r.Trickle(time.Second) }, func(r *zktest.Relay, _ Step) { r.Trickle(0) }),
		lasting("delay", func(r *zktest.Relay, step Step) { r.Delay(time.Duration(1+step.What%40) * time.Millisecond) },
			func(r *zktest.Relay, _ Step) { r.Delay(0) }),
	}
}

// flap is a partition that comes and goes.
func flap(ctx context.Context, s *Storm, step Step) (bool, error) {
	const times = 5
	for range times {
		for _, p := range s.hit(step) {
			p.Partition()
		}
		rest(ctx, s.span(step)/(2*times))
		for _, p := range s.hit(step) {
			p.Heal()
		}
		rest(ctx, s.span(step)/(2*times))
	}
	return true, nil
}

// find returns the fault that a script names.
func find(all []fault, name string) (fault, error) {
	i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
	if i < 0 {
		return fault{}, fmt.Errorf("storm: no fault is called %q", name)
	}
	return all[i], nil
}
