package mutants

// deadlineMutants break rules about the deadline of holds.
func deadlineMutants() []Mutant {
	all := []Mutant{
		{
			Name:   "SentApart",
			Reason: "The second request of a proof must be sent a ping interval after the first was answered; the mutant counts from the time when the first was sent, so both can reach the leader together.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `!a.hasB && sent >= a.received+gap {`,
					After:  `!a.hasB && (sent >= a.received+gap || sent >= a.sent+gap) {`},
			},
			Suite: property, Test: "TestRequestsThatArriveTogether",
			Says: `the deadline moved .* by requests that were only sent apart`,
		},
		{
			Name:   "HandshakeProves",
			Reason: "A handshake proves nothing before a later quorum write is answered; the mutant accepts a resumed session, which a deposed leader also resumes.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `	d.opened, d.open, d.told = sent, true, false`,
					After: `	d.opened, d.open, d.told = sent, true, false
	d.raise(sent)`},
			},
			Suite: property, Test: "TestDeposedLeaderMovesNoDeadline",
			Says: `moved \d+ times, and was .* before the expiry`,
		},
		{
			Name:   "NoGap",
			Reason: "The second request of a proof must be sent a ping interval after the first was answered; the mutant accepts any three requests.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `return time.Duration(float64(halfTick)/(1-d.drift)) + d.late`,
					After:  `return 0`},
			},
			Suite: property, Test: "TestDeadlineIsBeforeExpiry",
			Says: lateDeadline,
		},
		{
			Name:   "BoundedTick",
			Reason: "A tick from the caller's options is also used for sessions below two ticks; the mutant bounds it by a quarter of the timeout.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `		return d.gap(d.tick / 2)`,
					After:  `		return min(d.longest, d.gap(d.tick/2))`},
			},
			Suite: property, Test: "TestStatedTickLengthensTheGap",
			Says: `562ms, want 1.073s|563ms, want 1.073s`,
		},
		{
			Name:   "TwoRequests",
			Reason: "The answer to the third request of a proof, not to the second, proves the first; the mutant accepts two.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `			a.b, a.hasB = received, true`,
					After: `			a.b, a.hasB = received, true
			d.raise(a.sent)`},
			},
			Suite: property, Test: "TestDeadlineIsBeforeExpiry",
			Says: lateDeadline,
		},
		{
			Name:   "OneReply",
			Reason: "One answered write does not prove that the leader received the client's requests at that time; the mutant accepts it as a proof.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `	d.Continue(sent, received)`,
					After: `	d.raise(sent)
	d.Continue(sent, received)`},
			},
			Suite: property, Test: "TestDeadlineIsBeforeExpiry",
			Says: lateDeadline,
		},
		{
			Name:   "FromReply",
			Reason: "The deadline counts from the time when the first request was sent; the mutant counts from its answer.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `append(d.firsts, proof{sent: sent, received: received})`,
					After:  `append(d.firsts, proof{sent: received, received: received})`},
			},
			Suite: property, Test: "TestDeadlineIsBeforeExpiry",
			Says: lateDeadline,
		},
		{
			Name:   "ThirdAtOnce",
			Reason: "The third request of a proof is sent a slack after the second was answered, because a paused leader may ping later; the mutant accepts one that was sent at once.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `a.hasB && sent >= a.b+d.slack {`,
					After:  `a.hasB && sent >= a.b {`},
			},
			Suite: property, Test: "TestThirdRequestWaitsForALeaderThatWasPaused",
			Says: `a c that was sent at b's answer moved the deadline`,
		},
		{
			Name:   "SyncProves",
			Reason: "The third request of a proof is a write, because a deposed leader answers syncs; the mutant accepts a sync.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `func (d *Deadline) Continue(sent, received time.Duration) {
	gap := d.Gap()`,
					After: `func (d *Deadline) Continue(sent, received time.Duration) {
	gap := d.Gap()
	for i := range d.firsts {
		if a := &d.firsts[i]; a.hasB && sent >= a.b+d.slack {
			d.raise(a.sent)
		}
	}`},
			},
			Suite: property, Test: "TestDeposedLeaderMovesNoDeadline",
			Says: `moved \d+ times, and was .* before the expiry`,
		},
		{
			Name:   "PingUnanswered",
			Reason: "The server can lose one touch of a session, so a proof's first request counts only after the next ping is answered too; the mutant does not wait for the ping.",
			Edits: []Edit{
				{File: "internal/queue/heartbeat.go",
					Before: `if answers++; answers == 2 {`,
					After:  `if answers++; answers == 1 {`},
			},
			Suite: property, Test: "TestTranscripts/deadline-ping",
			Says: `the core did otherwise`,
		},
		{
			Name:   "OldTick",
			Reason: "A bound of the tick is valid for one connection, because another server may have a larger tick; the mutant keeps it.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `	d.opened, d.open, d.told = sent, true, false`,
					After:  `	d.opened, d.open = sent, true`},
			},
			Suite: property, Test: "TestTickShortensTheGap",
			Says: `another connection: .*, want 5.625s`,
		},
		{
			Name:   "IdleWrites",
			Reason: "A client that neither holds nor waits sends no writes; the mutant continues to send heartbeats.",
			Edits: []Edit{
				{File: "internal/queue/heartbeat.go",
					Before: `	case len(c.acquires) == 0:
		c.beat.begin(now)
`,
					After: ""},
			},
			Suite: property, Test: "TestTranscripts/idle",
			Says: `the core did otherwise`,
		},
		{
			Name:   "NoDrift",
			Reason: "The deadline allows for clock drift; the mutant assumes that all clocks have the same rate.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `if t := timeout - time.Duration(float64(timeout)*drift); d.timeout == 0`,
					After:  `if t := timeout; d.timeout == 0`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: goneEarly,
		},
		{
			Name:   "PingHeartbeat",
			Reason: "The heartbeat is answered by the leader and a quorum; the mutant sends reads, which a follower that is cut off still answers, and accepts each answer as a proof.",
			Edits: []Edit{
				{File: "internal/queue/heartbeat.go",
					Before: `ask := Request{Kind: Check, Paths: paths(nodes)}`,
					After:  `ask := Request{Kind: List, Path: "/"}`},
				{File: "internal/queue/heartbeat.go",
					Before: `	c.beat.syncs++
	c.send(Request{Kind: Sync, Path: "/"}`,
					After: `	c.beat.syncs++
	c.send(Request{Kind: Ping, Path: "/"}`},
				{File: "internal/queue/deadline.go",
					Before: `	d.Continue(sent, received)`,
					After: `	d.raise(sent)
	d.Continue(sent, received)`},
			},
			Suite: ensemble, Test: "TestPartitionEndsHoldBeforeGrant/usual/follower",
			Says: `two hold: granted .* after the fault`,
		},
		{
			Name:   "Boottime",
			Reason: "The clock runs during a suspend; the mutant stops it.",
			Edits: []Edit{
				{File: "internal/boottime/boottime.go",
					Before: `simulated := time.Duration(c.simulated.Load())`,
					After:  `simulated := time.Duration(0)`},
				{File: "internal/boottime/boottime.go",
					Before: `	if !ok {
		return 0
	}`,
					After: `	if ok || !ok {
		return 0
	}`},
			},
			Suite: bubble, Test: "TestSuspendEndsHold",
			Says: `after a suspend: <nil>`,
		},
		{
			Name:   "RecentCheck",
			Reason: "The check of a hold detects a suspend; the mutant reads the clock that does not.",
			Edits: []Edit{
				{File: "hold.go",
					Before: `func now() time.Duration { return boottime.Now() }`,
					After:  `func now() time.Duration { return boottime.Recent() }`},
			},
			Suite: bubble, Test: "TestSuspendEndsHold",
			Says: `after a suspend: <nil>`,
		},
		{
			Name:   "RecentReceipt",
			Reason: "The receive time of an answer includes an earlier suspend; the mutant reads the clock that may not.",
			Edits: []Edit{
				{File: "zk/run.go",
					Before: `		if !whole {
			now = boottime.Now()
		}`,
					After: `		if !whole {
			now = boottime.Recent()
		}`},
			},
			Suite: client, Test: "TestReceiptCountsSuspend",
			Says: `between Sent and Received, want at least`,
		},
		{
			Name:   "NoDeadline",
			Reason: "A hold is lost at its deadline without any message of the servers; the mutant waits for the servers.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `if c.holds > 0 && c.deadline.Ahead(now) == 0 {`,
					After:  `if false {`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `still holds .* past its deadline`,
		},
		{
			Name:   "NoAlarm",
			Reason: "Done closes at the deadline without any event; the mutant sets no timer.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `if d, proven := c.deadline.At(); proven {`,
					After:  `if d, proven := c.deadline.At(); proven && false {`},
			},
			Suite: property, Test: "TestRandomHistories",
			Says: heldWithout,
		},
		{
			Name:   "CheckWithoutClock",
			Reason: "Err and Remaining read the clock; the mutant reports the state as of the last event.",
			Edits: []Edit{
				{File: "hold.go",
					Before: `		core.Tick(now)
		c.apply(core, now)
`,
					After: ""},
			},
			Suite: bubble, Test: "TestSuspendEndsHold",
			Says: `after a suspend: <nil>, 0s left`,
		},
	}
	return append(all, partitionMutants(all)...)
}

// partitionMutants returns mutants of the deadline that partitions of a real ensemble detect:
// a hold is lost after the timeout of its session.
func partitionMutants(rules []Mutant) []Mutant {
	edits := map[string][]Edit{"NoSlack": {
		{File: "internal/queue/deadline.go",
			Before: `return time.Duration(float64(halfTick)/(1-d.drift)) + d.late`,
			After:  `return time.Duration(float64(halfTick) / (1 - d.drift))`},
		{File: "internal/queue/deadline.go",
			Before: `d.late, d.slack = timeout/32, timeout/64`,
			After:  `d.late, d.slack = 0, 0`},
		{File: "internal/queue/heartbeat.go",
			Before: `lead := timeout/64 + trip // from b to c`,
			After:  `lead := trip`},
		{File: "internal/queue/heartbeat.go",
			Before: `min(b.secondAt+timeout/64, third+b.late+timeout/64)`,
			After:  `min(b.secondAt, third+b.late+timeout/64)`},
	}}
	for _, m := range rules {
		edits[m.Name] = m.Edits
	}
	var all []Mutant
	for _, m := range []struct {
		rule, test, reason string
		full               bool
		size               string
	}{
		{"NoGap", "local_sessions/follower", "Without the gap, the leader may not have pinged before c is answered.", false, "-locks.short-trials=240"},
		{"TwoRequests", "local_sessions/leader_paused,_then_cut", "When b is answered, the follower has answered the ping, but the leader may not have received that.", false, "-locks.short-trials=240"},
		{"BoundedTick", "short_sessions/follower", "In a session below two ticks, a quarter of the timeout is less than half a tick.", true, "-locks.short-trials=240"},
		{"OneReply", "usual/follower", "The leader may have extended the session up to half a tick before it answers.", true, "-locks.short-trials=240"},
		{"HandshakeProves", "usual/paused_leader", "A paused leader resumes sessions after the others have elected another one.", true, "-locks.short-trials=240"},
		{"NoSlack", "local_sessions/late_pings", "The leader's pings may be late by a slack.", true, "-locks.trials=60"},
	} {
		all = append(all, Mutant{
			Name: m.rule + "InPartition", Reason: m.reason, Edits: edits[m.rule],
			Suite: ensemble, Test: "TestPartitionEndsHoldBeforeGrant/" + m.test, Args: []string{m.size}, Says: afterTimeout, Full: m.full,
		})
	}
	return all
}
