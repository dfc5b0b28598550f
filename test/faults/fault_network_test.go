package faults

import (
	"context"
	"slices"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zktest"
)

// faultWait is enough time for a contending client to cause an armed fault on a busy
// machine.
const faultWait = 10 * time.Second

// waitForFault waits until one of the armed faults has happened, and disarms the others.
func (s *round) waitForFault(ctx context.Context, all []*zktest.Fault) bool {
	ctx, cancel := context.WithTimeout(ctx, max(3*s.server.Timeout, faultWait))
	defer cancel()
	happened := func() bool {
		return slices.ContainsFunc(all, func(f *zktest.Fault) bool { return f.Count() > 0 })
	}
	for !happened() && harness.Sleep(ctx, 5*time.Millisecond) {
	}
	for _, f := range all {
		f.Stop()
	}
	return happened()
}

// lostFrames are losses of requests and replies: of each kind of write, and of any
// operation.
func lostFrames() []fault {
	var all []fault
	frames := func(name, op string, add func(*zktest.Relay, zktest.Match) *zktest.Fault) {
		var suits func(*Server) bool
		if op == "closeSession" {
			suits = hasWorkers // in a simulation, clients seldom close their sessions
		}
		all = append(all, fault{name: name, suits: suits, inject: func(ctx context.Context, s *round, step Step) (bool, error) {
			var armed []*zktest.Fault
			for _, p := range s.hit(step) {
				skip := step.Detail / 4 % 3
				if op == "closeSession" || op == "connect" {
					skip = 0 // these operations are rare
				}
				armed = append(armed, add(p, zktest.Match{Op: op, Skip: skip}))
				if op == "connect" {
					p.CutConnections() // so that a client connects
				}
			}
			return s.waitForFault(ctx, armed), nil
		}})
	}
	for _, op := range []struct{ name, op string }{
		{"create", "create2"}, {"delete", "delete"}, {"multi", "multi"}, {"closeSession", "closeSession"}, {"connect", "connect"}, {"any", ""},
	} {
		frames("reply lost: "+op.name, op.op, (*zktest.Relay).DropReply)
		frames("request lost: "+op.name, op.op, (*zktest.Relay).DropRequest)
	}
	frames("connection cut after a reply", "", (*zktest.Relay).CutAfter)
	return all
}

// connectionFaults are faults of connections.
func connectionFaults() []fault {
	// lasting returns a fault of the relays that lasts for the step's time.
	lasting := func(name string, begin, end func(*zktest.Relay, Step)) fault {
		return fault{name: name, inject: func(ctx context.Context, s *round, step Step) (bool, error) {
			for _, p := range s.hit(step) {
				begin(p, step)
			}
			harness.Sleep(ctx, s.span(step))
			for _, p := range s.hit(step) {
				end(p, step)
			}
			return true, nil
		}}
	}
	atOnce := func(name string, do func(*zktest.Relay)) fault {
		return fault{name: name, inject: func(_ context.Context, s *round, step Step) (bool, error) {
			some := false
			for _, p := range s.hit(step) {
				some = some || p.Connections() > 0
				do(p)
			}
			return some, nil
		}}
	}
	heal := func(r *zktest.Relay, _ Step) { r.Heal() }
	return []fault{
		atOnce("connections cut", (*zktest.Relay).CutConnections),
		atOnce("connections half open", (*zktest.Relay).HalfOpen),
		lasting("partition", func(r *zktest.Relay, _ Step) { r.Partition() }, heal),
		lasting("partition to the server", func(r *zktest.Relay, _ Step) { r.Partition(zktest.ToServer) }, heal),
		lasting("partition to the client", func(r *zktest.Relay, _ Step) { r.Partition(zktest.ToClient) }, heal),
		{name: "flapping partition", inject: flap},
		lasting("connections refused", func(r *zktest.Relay, _ Step) {
			r.Refuse(true)
			r.CutConnections()
		}, func(r *zktest.Relay, _ Step) { r.Refuse(false) }),
		lasting("a byte a second", func(r *zktest.Relay, _ Step) { r.Trickle(time.Second) }, func(r *zktest.Relay, _ Step) { r.Trickle(0) }),
		lasting("delay", func(r *zktest.Relay, step Step) { r.Delay(time.Duration(1+step.Detail%40) * time.Millisecond) },
			func(r *zktest.Relay, _ Step) { r.Delay(0) }),
	}
}

// flap begins and ends a partition several times.
func flap(ctx context.Context, s *round, step Step) (bool, error) {
	const times = 5
	for range times {
		for _, p := range s.hit(step) {
			p.Partition()
		}
		harness.Sleep(ctx, s.span(step)/(2*times))
		for _, p := range s.hit(step) {
			p.Heal()
		}
		harness.Sleep(ctx, s.span(step)/(2*times))
	}
	return true, nil
}
