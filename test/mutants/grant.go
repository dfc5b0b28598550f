package mutants

// grantMutants break the rules of grants.
func grantMutants() []Mutant {
	return []Mutant{
		{
			Name:   "FirstDeletion",
			Reason: "A grant needs an empty list of predecessors; the mutant grants when the watched predecessor is deleted.",
			Edits: []Edit{
				{File: "internal/queue/position.go",
					Before: `	p.blocker = blocker{}
`,
					After: `	p.blocker = blocker{}
	c.clear(now, p)
	return
`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: passedBy,
		},
		{
			Name:   "GrantDuringCheck",
			Reason: "No grant while the client checks whose entries are next to its own; the mutant keeps the blocker during the check, so that its deletion grants.",
			Edits: []Edit{
				{File: "internal/queue/position.go",
					Before: `p.query, p.blocker = reading, blocker{}`,
					After:  `p.query = reading`},
			},
			Suite: property, Test: "TestTranscripts/prefetch-foreign",
			Says: `the core did otherwise`,
		},
		{
			Name:   "HandToNext",
			Reason: "A hand-over inside the client grants by the list of predecessors; the mutant grants the next waiter of the client.",
			Edits: []Edit{
				{File: "internal/queue/handover.go",
					Before: `	p.blocker = blocker{}`,
					After: `	p.blocker = blocker{}
	c.clear(now, p)
	return`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: passedBy,
		},
		{
			Name:   "CancelHandsOver",
			Reason: "A cancelled waiter proves nothing about its predecessors; the mutant treats them as gone.",
			Edits: []Edit{
				{File: "internal/queue/handover.go",
					Before: `case e.clearance == clearedAlone:`,
					After:  `case true:`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: passedBy,
		},
		{
			Name:   "AnyNumber",
			Reason: "Only the very next sequence number makes a listing superfluous; the mutant accepts any number.",
			Edits: []Edit{
				{File: "internal/queue/follow.go",
					Before: `return class == Contender && mine.Seq == theirs.Seq+1`,
					After:  `return class == Contender && mine.Seq != theirs.Seq`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: passedBy,
		},
		{
			Name:   "GuardPassed",
			Reason: "A lock is not handed over while a guarded write of the hold is unanswered; the mutant hands it over.",
			Edits: []Edit{
				{File: "internal/queue/leave.go",
					Before: `handed := acq.guards == 0`,
					After:  `handed := true`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `was written by .* while .* holds`,
		},
		{
			Name:   "NoRelist",
			Reason: "A waiter lists the queue again after a writer ahead of it is gone, because a downgraded writer leaves a reader; the mutant does not.",
			Edits: []Edit{
				{File: "internal/queue/handover.go",
					Before: `p.relist = p.delay > 0 || p.kind() == Exclusive && slices.ContainsFunc(p.ahead, Entry.Writer)`,
					After:  `p.relist = p.delay > 0`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=read-write"},
			Says: passedBy,
		},
		{
			Name:   "OwnWatch",
			Reason: "A waiter whose own entry is deleted is not granted by it; the mutant ignores the event on its own entry.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `			if kind == Deleted {
				c.vanished(now, n)`,
					After: `			if kind == Deleted {`},
			},
			Suite: conformance, Test: "TestLocks/WaiterDeleted",
			Says: `granted by a znode that was deleted`,
		},
		{
			Name:   "EagerGrant",
			Reason: "Every event that was read is handled before a grant; the mutant grants at once.",
			Edits: []Edit{
				{File: "internal/queue/acquire.go",
					Before: `	c.dirty = true`,
					After: `	c.dirty = true
	c.grantReady(now)`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=deleted"},
			Says: `granted although the same read told that its znode is gone`,
		},
		{
			Name:   "DeafHeartbeat",
			Reason: "A holder learns that its entry is missing; the mutant sets no watch and ignores the heartbeat's answer.",
			Edits: []Edit{
				{File: "internal/queue/ownwatch.go",
					Before: `			c.watchOwnNodes(acq)
		}
	}
}`,
					After: `		}
	}
}`},
				{File: "internal/queue/heartbeat.go",
					Before: `			}
		case r.Failed < 0 || r.Failed >= len(nodes): // no entry's fault: the next one will tell`,
					After: `			}
		case true:
		case r.Failed < 0 || r.Failed >= len(nodes): // no entry's fault: the next one will tell`},
			},
			Suite: bubble, Test: "TestManyLocks",
			Says: `hold \d+: <nil>`,
		},
		{
			Name:   "UnwatchedHold",
			Reason: "The entry of a hold that lasts is watched; the mutant leaves it to the heartbeat.",
			Edits: []Edit{
				{File: "internal/queue/ownwatch.go",
					Before: `			c.watchOwnNodes(acq)
		}
	}
}`,
					After: `		}
	}
}`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `did not notice within`,
		},
		{
			Name:   "MissedWakeup",
			Reason: "A predecessor that is gone before it is watched counts as gone; the mutant waits for its event.",
			Edits: []Edit{
				{File: "internal/queue/position.go",
					Before: `		case NoNode:
			c.removeBlocker(now, p, name)`,
					After: `		case NoNode:`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: notServed,
		},
		{
			Name:   "Herd",
			Reason: "A release notifies one other session; the mutant has every waiter watch the head of the queue.",
			Edits: []Edit{
				{File: "internal/queue/order.go",
					Before: `func Blocker(kind Kind, ahead []Entry) (Entry, bool) {`,
					After: `func Blocker(kind Kind, ahead []Entry) (Entry, bool) {
	if kind == Exclusive {
		ahead = ahead[:min(1, len(ahead))]
	}`},
			},
			Suite: herd, Test: "TestOneWakesOneOrAll",
			Says: `sessions woken by a release, want 1`,
		},
		{
			Name:   "BargingReader",
			Reason: "A reader waits for waiting writers ahead of it; the mutant waits for the head of the queue only.",
			Edits: []Edit{
				{File: "internal/queue/order.go",
					Before: `func Blocker(kind Kind, ahead []Entry) (Entry, bool) {`,
					After: `func Blocker(kind Kind, ahead []Entry) (Entry, bool) {
	if kind == Shared {
		ahead = ahead[:min(1, len(ahead))]
	}`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: aheadStill,
		},
		{
			Name:   "LaterWriters",
			Reason: "A reader does not wait for later writers; the mutant does.",
			Edits: []Edit{
				{File: "internal/queue/position.go",
					Before: `	p.setRelist()`,
					After: `	p.setRelist()
	if p.kind() == Shared {
		p.ahead = slices.DeleteFunc(slices.Clone(l.Queue), p.owns)
	}`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: notServed,
		},
		{
			Name:   "SequenceLimit",
			Reason: "Near the last sequence number no client is granted; the mutant continues.",
			Edits: []Edit{
				{File: "internal/queue/enqueue.go",
					Before: `case class != Contender || e.Seq >= SequenceLimit:`,
					After:  `case class != Contender:`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `granted, with a number at the limit`,
		},
		{
			Name:   "HoldsOutliveSession",
			Reason: "Holds end with their session; the mutant keeps them in the next one.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `if former.Session != s.Session {`,
					After:  `if former.Timeout == 0 {`},
				{File: "internal/queue/core.go",
					Before: `	case Expired:
		c.over(ErrExpired, nil)`,
					After: `	case Expired:
		return
		c.over(ErrExpired, nil)`},
			},
			Suite: property, Test: "TestTranscripts/expired",
			Says: `the core did otherwise`,
		},
		{
			Name:   "SequenceToken",
			Reason: "The fencing token is the czxid; the mutant takes the sequence number.",
			Edits: []Edit{
				{File: "internal/queue/acquire.go",
					Before: `	s.Node = s.Nodes[0]`,
					After: `	s.Token = 0
	for _, digit := range nodes[0].name[max(0, len(nodes[0].name)-digits):] {
		s.Token = 10*s.Token + int64(digit-'0')
	}
	s.Token++
	s.Node = s.Nodes[0]`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `granted with token`,
		},
		{
			Name:   "TimerGrant",
			Reason: "A timer grants nothing, because it may expire in the middle of what one read brought; the mutant grants.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `func (c *Core) Tick(now time.Duration) {
	c.advance(now)`,
					After: `func (c *Core) Tick(now time.Duration) {
	c.advance(now)
	c.grantReady(now)`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=ticking"},
			Says: `granted although the same read told that its znode is gone`,
		},
		{
			Name:   "AnyEvent",
			Reason: "Only the deletion of the predecessor may grant; the mutant takes every event on it for its deletion.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `	case p.blocker.name == name && kind == Deleted:`,
					After:  `	case p.blocker.name == name:`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: passedBy,
		},
	}
}
