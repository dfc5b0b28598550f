package mutants

// unknownMutants break rules about canceled or unanswered creates and deletes.
func unknownMutants() []Mutant {
	return []Mutant{
		{
			Name:   "CancelLeaves",
			Reason: "A cancelled acquire deletes its entry; the mutant leaves it.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `	if acq := c.acquireByID(id); acq != nil {
		c.leave(now, acq, false)`,
					After: `	if acq := c.acquireByID(id); acq != nil {
		c.remove(acq)`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: notServed,
		},
		{
			Name:   "CancelsWithoutLimit",
			Reason: "Canceled acquires without an answer make new acquires wait; the mutant does not count them.",
			Edits: []Edit{
				{File: "internal/queue/leave.go",
					Before: `	c.backlog.countLeft(positions)
`,
					After: ``},
			},
			Suite: property, Test: "TestCanceledAcquiresStayBounded",
			Says: `requests without an answer, \d+ of them creates`,
		},
		{
			Name:   "ParkedForever",
			Reason: "The answer to a canceled acquire resumes a parked one; the mutant does not resume it.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `	c.resumeParked(now)
`,
					After: ``},
			},
			Suite: property, Test: "TestFullBacklogParksAcquires",
			Says: `creates after that: \[\]`,
		},
		{
			Name:   "ReleaseForgets",
			Reason: "A delete is repeated until the entry is gone; the mutant treats a lost answer as success.",
			Edits: []Edit{
				{File: "internal/queue/node.go",
					Before: `	case Unknown, NotApplied:`,
					After: `	case Unknown, NotApplied:
		c.finish(n, nil)
		return`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `is said to be released and is there|` + notServed,
		},
		{
			Name:   "BrokenIsReleased",
			Reason: "A release that finds its entry gone reports the loss; the mutant reports success.",
			Edits: []Edit{
				{File: "internal/queue/node.go",
					Before: `	if n.due {`,
					After:  `	if false {`},
			},
			Suite: conformance, Test: "TestLocks/BrokenHold",
			Says: `released a broken hold: <nil>`,
		},
		{
			Name:   "CreateForgotten",
			Reason: "A create without an answer may have been applied; the mutant assumes that it was not.",
			Edits: []Edit{
				{File: "internal/queue/enqueue.go",
					Before: `n.state, n.unsure = unknown, true`,
					After:  `n.state = absent`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: notServed,
		},
		{
			Name:   "NoBarrier",
			Reason: "Only a listing after an answered write proves that a znode is absent; the mutant uses a read instead of the write.",
			Edits: []Edit{
				{File: "internal/queue/node.go",
					Before: `barrier := Request{Kind: Check, Paths: []string{parent}}`,
					After:  `barrier := Request{Kind: Get, Path: parent}`},
			},
			Suite: property, Test: "TestTranscripts/unknown-create-absent",
			Says: `the core did otherwise`,
		},
		{
			Name:   "NotSearchedAgain",
			Reason: "A create without an answer is searched for on each new connection; the mutant searches once.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `	c.searchAgain()
`,
					After: ``},
			},
			Suite: property, Test: "TestTranscripts/unknown-create-reappears",
			Says: `the core did otherwise`,
		},
		{
			Name:   "CopyFound",
			Reason: "If several znodes have the GUID of a create without an answer, the owner identifies the client's znode; the mutant uses the first.",
			Edits: []Edit{
				{File: "internal/queue/node.go",
					Before: `		case len(found) > 1: // another client has copied the GUID
			n.name = ""
			c.searchData(now, n, found, proof)
		case len(found) == 1:`,
					After: `		case len(found) > 0:`},
			},
			Suite: property, Test: "TestTranscripts/unknown-create-copied",
			Says: `the core did otherwise`,
		},
		{
			Name:   "BlindDelete",
			Reason: "A znode with a reusable name is read before its delete is repeated; the mutant repeats the delete at once.",
			Edits: []Edit{
				{File: "internal/queue/node.go",
					Before: `if n.state == alive && n.named == byData {`,
					After:  `if false {`},
			},
			Suite: property, Test: "TestRandomHistories",
			Says: heldWithout,
		},
		{
			Name:   "LateDelete",
			Reason: "A delete with a reusable name is not repeated while the session may move back to a server that still has the first one; the mutant repeats it.",
			Edits: []Edit{
				{File: "internal/queue/node.go",
					Before: `case n.state == alive && n.asked && asOf < c.unsettledUntil:`,
					After:  `case false:`},
			},
			Suite: property, Test: "TestTranscripts/node-lock-delete-given-up",
			Says: `the core did otherwise`,
		},
		{
			Name:   "LateAnswer",
			Reason: "The result of a read is valid for the time at which the read was sent; the mutant uses the time of the answer and deletes the znode.",
			Edits: []Edit{
				{File: "internal/queue/fixed.go",
					Before: `n.state = alive
			c.dispose(r.Sent, n)`,
					After: `n.state = alive
			c.dispose(now, n)`},
			},
			Suite: property, Test: "TestTranscripts/node-lock-delete-given-up-late",
			Says: `the core did otherwise`,
		},
		{
			Name:   "LateRecord",
			Reason: "A record whose create had no answer is deleted again on each new connection, like its entry; the mutant deletes only the entry.",
			Edits: []Edit{
				{File: "internal/queue/node.go",
					Before: `(n.czxid == 0 || n.unsure) && n.state != creating`,
					After:  `(n.czxid == 0 || n.unsure) && n.named != forever && n.state != creating`},
			},
			Suite: property, Test: "TestTranscripts/delay-reappears",
			Says: `the core did otherwise`,
		},
		{
			Name:   "OwnerUnchecked",
			Reason: "A client adopts no node lock of another session; the mutant adopts any after a lost answer.",
			Edits: []Edit{
				{File: "internal/queue/fixed.go",
					Before: `return r.Owner == n.session && carries(r.Data, n.id)`,
					After:  `return n.state == unknown || r.Owner == n.session && carries(r.Data, n.id)`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `granted (.* while .* holds .*, safe for|with token .* after)|` + goneEarly,
		},
		{
			Name:   "OverwrittenIsOwn",
			Reason: "A znode of the session with overwritten data belongs to an acquire only if no other acquire of the client owns it; the mutant accepts any.",
			Edits: []Edit{
				{File: "internal/queue/fixed.go",
					Before: `	another := func(o *node) bool { return o != n &&`,
					After:  `	another := func(o *node) bool { return false && o != n &&`},
			},
			Suite: bubble, Test: "TestOverwrittenWithReplyLost",
			Says: `was granted while`,
		},
		{
			Name:   "SessionIsOwner",
			Reason: "A znode of the same session belongs to an acquire only if its data has the acquire's ID; the mutant checks only the session.",
			Edits: []Edit{
				{File: "internal/queue/fixed.go",
					Before: `return r.Owner == n.session && carries(r.Data, n.id)`,
					After:  `return r.Owner == n.session`},
			},
			Suite: property, Test: "TestRandomHistories",
			Says: `hold /q/n/lock|` + heldWithout + `|` + notSettled,
		},
		{
			Name:   "NodeGuard",
			Reason: "A reusable name cannot guard writes; the mutant permits the guard.",
			Edits: []Edit{
				{File: "guard.go",
					Before: `if h.grant.lock.hasReusableNames() {`,
					After:  `if false && h.grant.lock.hasReusableNames() {`},
			},
			Suite: bubble, Test: "TestNodeLockRefusesGuards",
			Says: `guard: <nil>, want zklock: invalid use of a lock`,
		},
		{
			Name:   "GuardByVersion",
			Reason: "A guard checks that the entry exists, not its version; the mutant checks version 0, which a release request changes.",
			Edits: []Edit{
				{File: "request.go",
					Before: `		own := checkOps(r)`,
					After: `		var own []zk.Op
		for _, p := range r.Paths {
			own = append(own, zk.CheckOp(p, 0))
		}`},
			},
			Suite: conformance, Test: "TestLocks/Revoke",
			Says: `the znode has another version`,
		},
		{
			Name:   "BlindRecovery",
			Reason: "A client searches for the znode of a create without an answer; the mutant assumes that it is absent.",
			Edits: []Edit{
				{File: "internal/queue/node.go",
					Before: `if strings.HasPrefix(name, n.prefix) {`,
					After:  `if false {`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: notServed,
		},
		{
			Name:   "UndoneIsDone",
			Reason: "A delete that was undone because another operation in its batch failed is sent again; the mutant treats it as done.",
			Edits: []Edit{
				{File: "internal/queue/node.go",
					Before: `	case Undone:
		n.state, n.apart = alive, true
		c.dispose(now, n)`,
					After: `	case Undone:
		c.finish(n, nil)`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=batch"},
			Says: `is said to be released and is there|` + notServed,
		},
	}
}
