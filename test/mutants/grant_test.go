package mutants

// grantMutants break the rules of grants.
func grantMutants() []Mutant {
	return []Mutant{
		{
			Name:   "FirstDeletion",
			Reason: "A grant needs an empty list of predecessors; the mutant grants when the watched predecessor is deleted.",
			Edits: []Edit{
				{File: "internal/queue/position.go",
					Before: `	c.block(p, blocker{})
	if _, blocked`,
					After: `	c.clear(now, p)
	return
	if _, blocked`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: passedBy,
		},
		{
			Name:   "HandToNext",
			Reason: "A handover inside the client grants by the list of predecessors; the mutant grants the next waiter of the client.",
			Edits: []Edit{
				{File: "internal/queue/handover.go",
					Before: `	c.block(p, blocker{})
	if !c.connected() {`,
					After: `	c.block(p, blocker{})
	c.clear(now, p)
	return
	if !c.connected() {`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: passedBy,
		},
		{
			Name:   "CancelHandsOver",
			Reason: "A cancelled waiter proves nothing about its predecessors; the mutant treats them as gone.",
			Edits: []Edit{
				{File: "internal/queue/handover.go",
					Before: `	case e.clearance == clearedAlone:
		for`,
					After: `	case true:
		for`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: passedBy,
		},
		{
			Name:   "AnyNumber",
			Reason: "Only the next sequence number makes a listing unnecessary; the mutant accepts any number.",
			Edits: []Edit{
				{File: "internal/queue/follow.go",
					Before: `return class == Contender && mine.Seq == theirs.Seq+1`,
					After:  `return class == Contender && mine.Seq != theirs.Seq`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: passedBy,
		},
		{
			Name:   "UnwatchedParent",
			Reason: "The next number proves that the queue was empty only if the parent is the same; the mutant ignores that the parent was deleted.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `	if kind == Deleted || kind == Changed {
		delete`,
					After: `	if kind == Changed {
		delete`},
			},
			Suite: property, Test: "TestRandomHistoriesOfSoleUse",
			Says: `was granted, and .* is ahead|hold /q/a|does not watch /q/a`,
		},
		{
			Name:   "FollowerOfOtherParent",
			Reason: "The watch on the parent must not have fired when the second entry is created; the mutant relies on the watch that was set when the first one was.",
			Edits: []Edit{
				{File: "internal/queue/parentwatch.go",
					Before: `return p.watchedBy != 0 && p.watchedBy == q.watchedBy`,
					After:  `return q.watchedBy != 0`},
			},
			Suite: property, Test: "TestTranscripts/follow-parent-deleted",
			Says: `the core did otherwise`,
		},
		{
			Name:   "ParentWatchOfOldConnection",
			Reason: "A watch on the parent ends with its connection; the mutant relies on the watch of the last connection.",
			Edits: []Edit{
				{File: "internal/queue/ownwatch.go",
					Before: `	c.unproveParentWatches()
	lost`,
					After: `	lost`},
			},
			Suite: property, Test: "TestTranscripts/sole-use-reconnected",
			Says: `the core did otherwise`,
		},
		{
			Name:   "SoleUseOfDeletedEntry",
			Reason: "Only an entry that this client deleted shows that the parent was the same until then; the mutant accepts one that another client deleted.",
			Edits: []Edit{
				{File: "internal/queue/sole.go",
					Before: `last.wentAt > 0 && last.wentAt < p.nodes[0].czxid`,
					After:  `last != nil`},
			},
			Suite: property, Test: "TestTranscripts/sole-use-broken",
			Says: `the core did otherwise`,
		},
		{
			Name:   "HandoverDuringGuard",
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
					Before: `	p.relist = p.delay > 0 || p.kind() == Exclusive && slices.ContainsFunc(list, Entry.Writer)
	if len(list)`,
					After: `	p.relist = p.delay > 0
	if len(list)`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=read-write"},
			Says: passedBy,
		},
		{
			Name:   "OwnWatch",
			Reason: "A waiter whose own entry is deleted is not granted by it; the mutant ignores the event on its own entry.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `				n.watchReq = 0
				c.vanished(now, n)`,
					After: `				n.watchReq = 0`},
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
			Name:   "IgnoredDeletion",
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
			Suite: bubble, Test: "TestOneHeartbeatCoversAllEntries",
			Says: `hold \d+: <nil>`,
		},
		{
			Name:   "UnwatchedHold",
			Reason: "The entry of a lasting hold is watched; the mutant relies on the heartbeat.",
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
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=deleted"},
			Says: `did not notice within`,
		},
		{
			Name:   "MissedWakeup",
			Reason: "A predecessor that is gone before it is watched counts as gone; the mutant waits for its event.",
			Edits: []Edit{
				{File: "internal/queue/position.go",
					Before: `			c.removeBlocker(now, p, name)
		case Unknown, NotApplied:`,
					After: `		case Unknown, NotApplied:`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: notServed,
		},
		{
			Name:   "CopiedGUID",
			Reason: "The mark of an entry has its sequence number, because another client can copy its GUID; the mutant omits the number.",
			Edits: []Edit{
				{File: "internal/queue/mark.go",
					Before: `e.Name[len(e.Name)-digits:], true`,
					After:  `"0000000000", true`},
			},
			Suite: security, Test: "TestCopiedEntryNameGrantsNoWaiter",
			Says: `was granted while`,
		},
		{
			Name:   "ReplacedEntry",
			Reason: "A znode with the name of an entry and another czxid is not the entry; the mutant accepts it as the entry.",
			Edits: []Edit{
				{File: "internal/queue/ownwatch.go",
					Before: `n.named == byGUID && n.replaced(r)`,
					After:  `n.named == byGUID && n.replaced(Reply{})`},
			},
			Suite: bubble, Test: "TestDeletionIsReportedInTime",
			Says: `not told`,
		},
		{
			Name:   "ReplacedWriter",
			Reason: "A downgrade whose transaction deletes a znode that replaced the writer's entry ends the hold; the mutant keeps the hold.",
			Edits: []Edit{
				{File: "internal/queue/swap.go",
					Before: `			case s.replaced:
`,
					After: `			case false:
`},
			},
			Suite: bubble, Test: "TestDowngradeOfReplacedEntry",
			Says: `while .* is held`,
		},
		{
			Name:   "BlindDowngrade",
			Reason: "A downgrade deletes only the version of the writer's entry whose data the client knows; the mutant deletes any version, and loses a release request.",
			Edits: []Edit{
				{File: "internal/queue/swap.go",
					Before: `		version := n.version
`,
					After: `		version := int32(-1)
`},
			},
			Suite: bubble, Test: "TestDowngradeKeepsReleaseRequest",
			Says: `waits for a request`,
		},
		{
			Name:   "EarlyEnd",
			Reason: "A release reports a session that ended before its deadline; the mutant treats it like an expiry after the deadline.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `c.deadline.Ahead(now) > 0
	for`,
					After: `false
	for`},
			},
			Suite: bubble, Test: "TestReleaseReportsEndedSession",
			Says: `Release: <nil>`,
		},
		{
			Name:   "Herd",
			Reason: "A release notifies one other session; in the mutant, every waiter also watches the head of the queue.",
			Edits: []Edit{
				{File: "internal/queue/mark.go",
					Before: `	ask.Paths = append(ask.Paths, p.parent+"/"+b.name)`,
					After:  `	ask.Paths = append(ask.Paths, p.parent+"/"+b.name, p.parent+"/"+p.ahead[0].Name)`},
			},
			Suite: herd, Test: "TestOneWakesOneOrAll",
			Says: `sessions woken by a release, want 1`,
		},
		{
			Name:   "ReaderOvertakesWriter",
			Reason: "A reader waits for all writers ahead of it; the mutant waits only for the head of the queue.",
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
					Before: `	p.setAhead(c.discount(p, l.Queue[:i]))`,
					After: `	p.setAhead(c.discount(p, l.Queue[:i]))
	if p.kind() == Shared {
		p.ahead = slices.DeleteFunc(slices.Clone(l.Queue), p.owns)
	}`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: notServed,
		},
		{
			Name:   "MarkAlone",
			Reason: "A mark clears a waiter only together with the end of its blocker; the mutant treats the mark as the end.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `	case kind == Created && p.markMade(path, zxid):
`,
					After: `	case kind == Created && p.markMade(path, zxid):
		if p.blocker.mark == markSeen {
			c.removeBlocker(now, p, p.blocker.name)
		}
`},
			},
			Suite: property, Test: "TestTranscripts/mark-early",
			Says: `the core did otherwise`,
		},
		{
			Name:   "EarlyMark",
			Reason: "A mark that exists before its watch is set proves nothing; the mutant accepts it.",
			Edits: []Edit{
				{File: "internal/queue/mark.go",
					Before: `		p.blocker.mark = markUnwatched // it existed`,
					After:  `		p.blocker.mark = markSeen // it existed`},
			},
			Suite: property, Test: "TestTranscripts/mark-early",
			Says: `the core did otherwise`,
		},
		{
			Name:   "ReaderMarks",
			Reason: "A hold that was not cleared alone proves nothing about the entries ahead of it; the mutant marks its release too.",
			Edits: []Edit{
				{File: "internal/queue/mark.go",
					Before: `	if p.clearance != clearedAlone || !p.waited || p.kind() != Exclusive ||`,
					After:  `	if !p.waited || p.role == leases ||`},
			},
			Suite: property, Test: "TestRandomHistoriesWithMarks",
			Says: `hold /q/a`,
		},
		{
			Name:   "UnansweredMarks",
			Reason: "A release is marked only if no other entry of the client waits for the answer to its delete; the mutant does not wait.",
			Edits: []Edit{
				{File: "internal/queue/mark.go",
					Before: `		if n.parent == p.parent {
			return false`,
					After: `		if n == nil {
			return false`},
			},
			Suite: property, Test: "TestTranscripts/mark-unanswered",
			Says: `the core did otherwise`,
		},
		{
			Name:   "ForgedMark",
			Reason: "A mark counts only for the release in the same transaction, if the servers report the transaction; the mutant ignores the transactions.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `		if p.blocker.mark == markSeen && zxid != p.blocker.marked {`,
					After:  `		if p.blocker.mark == markSeen && zxid < 0 && p.blocker.marked > 0 {`},
			},
			Suite: property, Test: "TestTranscripts/mark-forged",
			Says: `the core did otherwise`,
		},
		{
			Name:   "OldMark",
			Reason: "The state of a mark is valid for one connection; the mutant keeps it for the next one.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `				p.blocker.mark = markUnwatched // the blocker is read and watched again
`,
					After: ``},
			},
			Suite: property, Test: "TestTranscripts/mark-reconnected",
			Says: `the core did otherwise`,
		},
		{
			Name:   "DelayMarkClears",
			Reason: "With a lock-delay, a waiter must list the records before a grant; the mutant lets a mark clear it.",
			Edits: []Edit{
				{File: "internal/queue/mark.go",
					Before: `	if p.delay > 0 || p.acquire.spec.Try ||`,
					After:  `	if p.acquire.spec.Try ||`},
			},
			Suite: property, Test: "TestTranscripts/mark-delay",
			Says: `the core did otherwise`,
		},
		{
			Name:   "KeptMark",
			Reason: "A waiter removes the watch on a mark that it no longer needs; the mutant leaves it on the server.",
			Edits: []Edit{
				{File: "internal/queue/mark.go",
					Before: `m := p.blocker.mark; (m == markRequested || m == markWatched) && c.connected()`,
					After:  `m := p.blocker.mark; m != m && c.connected()`},
			},
			Suite: property, Test: "TestTranscripts/mark-cancelled",
			Says: `the core did otherwise`,
		},
		{
			Name:   "SequenceLimit",
			Reason: "Near the last sequence number, no client is granted; the mutant continues.",
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
		c.over(now, ErrExpired, nil)`,
					After: `	case Expired:
		return
		c.over(now, ErrExpired, nil)`},
			},
			Suite: property, Test: "TestTranscripts/expired",
			Says: `the core did otherwise`,
		},
		{
			Name:   "SequenceToken",
			Reason: "The fencing token is the czxid; the mutant uses the sequence number.",
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
			Reason: "A timer must not grant, because it may expire between the messages of one read; the mutant grants.",
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
			Reason: "Only the deletion of the predecessor may grant; the mutant treats every event on it as its deletion.",
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
