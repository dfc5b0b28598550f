package mutants

// deadlineMutants break rules about how long a session is certain to be alive.
func deadlineMutants() []Mutant {
	return []Mutant{
		{
			Name:   "SentApart",
			Reason: "The second request of a proof must be sent a ping interval after the first was answered; the mutant counts from when the first was sent, so both can reach the leader together.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `if !a.hasB && sent >= a.received+d.gap {`,
					After:  `if !a.hasB && (sent >= a.received+d.gap || sent >= a.sent+d.gap) {`},
			},
			Suite: property, Test: "TestRequestsThatArriveTogether",
			Says: `the deadline moved .* by requests that were only sent apart`,
		},
		{
			Name:   "HandshakeProves",
			Reason: "A handshake proves nothing before a quorum write behind it is answered; the mutant trusts a resumed session, which a deposed leader also resumes.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `	d.opened, d.open = sent, true`,
					After: `	d.opened, d.open = sent, true
	d.raise(sent)`},
			},
			Suite: property, Test: "TestDeposedLeader",
			Says: `moved \d+ times, and lay .* before the expiry`,
		},
		{
			Name:   "NoGap",
			Reason: "The second request of a proof must be sent a ping interval after the first was answered; the mutant takes any three requests.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `d.gap = max(timeout/4+timeout/32, time.Duration(float64(timeout/4)/(1-drift))+timeout/64)`,
					After:  `d.gap = 0`},
			},
			Suite: property, Test: "TestDeadlineIsBeforeExpiry",
			Says: lateDeadline,
		},
		{
			Name:   "TwoRequests",
			Reason: "The answer to the third request of a proof, not to the second, proves the first; the mutant takes two.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `			a.b, a.hasB = received, true`,
					After: `			a.b, a.hasB = received, true
			newest = i`},
			},
			Suite: property, Test: "TestDeadlineIsBeforeExpiry",
			Says: lateDeadline,
		},
		{
			Name:   "OneReply",
			Reason: "One answered write does not prove that the leader heard the client when it was sent; the mutant takes it for a proof.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `	d.remember(proof{sent: sent, received: received})`,
					After: `	d.raise(sent)
	d.remember(proof{sent: sent, received: received})`},
			},
			Suite: property, Test: "TestDeadlineIsBeforeExpiry",
			Says: lateDeadline,
		},
		{
			Name:   "FromReply",
			Reason: "The deadline counts from when the first request was sent; the mutant counts from its answer.",
			Edits: []Edit{
				{File: "internal/queue/deadline.go",
					Before: `d.remember(proof{sent: sent, received: received})`,
					After:  `d.remember(proof{sent: received, received: received})`},
			},
			Suite: property, Test: "TestDeadlineIsBeforeExpiry",
			Says: lateDeadline,
		},
		{
			Name:   "NoDrift",
			Reason: "The deadline allows for clock drift; the mutant assumes that all clocks run at one rate.",
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
			Reason: "The heartbeat is a quorum write; the mutant sends a read, which a follower that is cut off still answers, and takes each answer for a proof.",
			Edits: []Edit{
				{File: "internal/queue/heartbeat.go",
					Before: `ask := Request{Kind: Check, Paths: paths(nodes)}`,
					After:  `ask := Request{Kind: List, Path: "/"}`},
				{File: "internal/queue/deadline.go",
					Before: `	d.remember(proof{sent: sent, received: received})`,
					After: `	d.raise(sent)
	d.remember(proof{sent: sent, received: received})`},
			},
			Suite: ensemble, Test: "TestCutOff/follower",
			Says: `two hold: granted .* after the fault`,
		},
		{
			Name:   "Boottime",
			Reason: "The clock runs during a suspend; the mutant stops it.",
			Edits: []Edit{
				{File: "internal/boottime/boottime.go",
					Before: `slept := time.Duration(c.slept.Load())`,
					After:  `slept := time.Duration(0)`},
				{File: "internal/boottime/boottime.go",
					Before: `	if !ok {
		return 0
	}`,
					After: `	if ok || !ok {
		return 0
	}`},
			},
			Suite: bubble, Test: "TestSuspend",
			Says: `after a suspend: <nil>`,
		},
		{
			Name:   "NoDeadline",
			Reason: "A hold is lost at its deadline, whatever the servers say; the mutant waits for the servers.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `if c.deadline.Ahead(now) == 0 {`,
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
			Suite: property, Test: "TestStorms",
			Says: heldWithout,
		},
		{
			Name:   "NoLook",
			Reason: "Err and Remaining read the clock; the mutant reports the state as of the last event.",
			Edits: []Edit{
				{File: "hold.go",
					Before: `		core.Tick(now)
		c.apply(core, now)
`,
					After: ""},
			},
			Suite: bubble, Test: "TestSuspend",
			Says: `after a suspend: <nil>, 0s left`,
		},
	}
}
