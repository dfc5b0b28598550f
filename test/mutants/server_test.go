package mutants

// serverMutants break rules about the embedded server.
func serverMutants() []Mutant {
	return []Mutant{
		{
			Name:   "AckBeforeSync",
			Reason: "An answer is sent after the log is synced; the mutant sends it before.",
			Edits: []Edit{
				{File: "zkserver/batch.go",
					Before: `		c.filling, c.inFlight = c.inFlight, c.filling`,
					After: `		c.filling, c.inFlight = c.inFlight, c.filling
		c.deliver(false)`},
			},
			Suite: durability, Test: "TestCrashCycles",
			Says: `cycle \d+ of seed \d+`,
		},
		{
			Name:   "NoSync",
			Reason: "An answer is sent after the log is synced; the mutant does not sync.",
			Edits: []Edit{
				{File: "internal/wal/wal.go",
					Before: `err = l.active.file.Sync()`,
					After:  `err = nil`},
			},
			Suite: durability, Test: "TestCrashCycles",
			Says: `cycle \d+ of seed \d+`,
		},
		{
			Name:   "ExpiryKeepsNodes",
			Reason: "The ephemeral znodes of a session end with it; the mutant keeps them.",
			Edits: []Edit{
				{File: "internal/tree/session.go",
					Before: `for _, n := range s.ownedNodes() {`,
					After:  `for _, n := range s.ownedNodes()[:0] {`},
			},
			Suite: tree, Test: "TestEventsOfSessionEndAreComplete",
			Says: `nodes are left, want`,
		},
		{
			Name:   "EarlyExpiry",
			Reason: "A session lasts for its timeout; the mutant ends it a quarter early.",
			Edits: []Edit{
				{File: "internal/tree/session.go",
					Before: `s.deadline = now.Mono + time.Duration(s.timeout)*time.Millisecond`,
					After:  `s.deadline = now.Mono + time.Duration(s.timeout)*time.Millisecond*3/4`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: goneEarly,
		},
		{
			Name:   "NoEvent",
			Reason: "A deletion notifies its watchers; the mutant sends no event.",
			Edits: []Edit{
				{File: "internal/tree/fire.go",
					Before: `func (t *Tree) fireDeleted(path string, p *node, acl *aclSet, out *Out) {
	if t.watches.total == 0 {`,
					After: `func (t *Tree) fireDeleted(path string, p *node, acl *aclSet, out *Out) {
	if t.watches.total >= 0 {`},
			},
			Suite: conformance, Test: "TestClient/WatchData",
			Says: `no event of type 2`,
		},
		{
			Name:   "SequenceReset",
			Reason: "A sequence number is never repeated; the mutant counts the current children.",
			Edits: []Edit{
				{File: "internal/tree/create.go",
					Before: `	if q.Flags.Sequential() {`,
					After: `	if q.Flags.Sequential() {
		parent.creates = parent.children`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `granted with token .* after|` + aheadStill,
		},
		{
			Name:   "PartialMulti",
			Reason: "A multi is applied as a whole or not at all; the mutant applies the operations before the failed one.",
			Edits: []Edit{
				{File: "internal/tree/multi.go",
					Before: `err = p.prepare(op.Op, op.Req); err != wire.ErrOK {`,
					After: `err = p.prepare(op.Op, op.Req); err != wire.ErrOK {
			t.commit(&txn{op: wire.OpMulti, subs: x.subs[:i]}, now, out)`},
			},
			Suite: tree, Test: "TestMultiIsAtomic",
			Says: `took 2 transactions`,
		},
	}
}
