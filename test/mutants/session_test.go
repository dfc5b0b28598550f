package mutants

// sessionMutants break rules about the session of the client.
func sessionMutants() []Mutant {
	return []Mutant{
		{
			Name:   "ExistsWatch",
			Reason: "An exists watch that found its node is set again as a data watch; the mutant sets it as one on a missing node.",
			Edits: []Edit{
				{File: "internal/session/watches.go",
					Before: `		// A failed request leaves no watch.`,
					After: `		// A failed request leaves no watch.
	case o.Code == wire.OpExists:
		w.add(o.Path, existWatch)`},
			},
			Suite: session, Test: "TestExistsWatchBecomesADataWatch",
			Says: `want a data watch alone`,
		},
		{
			Name:   "NoSetWatches",
			Reason: "Watches are set again on a new connection; the mutant sets none.",
			Edits: []Edit{
				{File: "internal/session/connect.go",
					Before: `	c.out, c.setWatches = c.watches.frames(c.out, c.lastZxid, c.cfg.MaxRequest)
`,
					After: ""},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `has not received after .* the release request|` + notServed,
		},
		{
			Name:   "SwappedSession",
			Reason: "If the server answers with another session ID, the session has ended; the mutant continues in the other session.",
			Edits: []Edit{
				{File: "internal/session/connect.go",
					Before: `case resuming && r.SessionID != c.sessionID:`,
					After:  `case false:`},
			},
			Suite: session, Test: "TestHandshakeAnswers/other_session",
			Says: `the connection is still wanted`,
		},
		{
			Name:   "LostIsNotDone",
			Reason: "A request that was sent and not answered may have been applied; the mutant reports that it was not.",
			Edits: []Edit{
				{File: "internal/session/connect.go",
					Before: `lost := Unknown`,
					After:  `lost := No`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `although nothing deleted it|` + notServed,
		},
		{
			Name:   "RequestInNextSession",
			Reason: "A request is sent only in the session for which it was made; the mutant sends it in the next one.",
			Edits: []Edit{
				{File: "internal/session/core.go",
					Before: `case epoch != c.epoch:`,
					After:  `case false:`},
			},
			Suite: session, Test: "TestNoRequestRunsInALaterSession",
			Says: `want session: the session is over`,
		},
		{
			Name:   "TwoCreates",
			Reason: "No batch has two creates of one lock, which would share a token; the mutant batches them.",
			Edits: []Edit{
				{File: "internal/session/batch.go",
					Before: `			own&(written|writtenBelow) != 0, parent&written != 0,
			p.isPlainCreate() && parent&createdBelow != 0:`,
					After: `			own&(written|writtenBelow) != 0, parent&written != 0:`},
			},
			Suite: session, Test: "TestConflictingCallsAreNotBatched",
			Says: `sent .*\+/l/a- \+/l/b-.* want`,
		},
		{
			Name:   "SharedFailure",
			Reason: "An operation that failed because of another in its batch was not applied; the mutant reports the error of the other one as its own.",
			Edits: []Edit{
				{File: "internal/session/batch_reply.go",
					Before: `	switch {
	case !whole.failedKnown && !rollsBack(whole.Code):`,
					After: `	switch {
	case true:
	case !whole.failedKnown && !rollsBack(whole.Code):`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `is said to be released and is there|the lock's znode was deleted by another client, although nothing deleted it|` + notServed,
		},
		{
			Name:   "ForgottenZxid",
			Reason: "A client tells each server the largest transaction that it has seen, so that no server with an earlier state accepts it; the mutant sends 0.",
			Edits: []Edit{
				{File: "internal/session/connect.go",
					Before: `LastZxidSeen: c.lastZxid,`,
					After:  `LastZxidSeen: 0,`},
			},
			Suite: bubble, Test: "TestWatchNeverGoesBack",
			Says: `at the server that lags: .*old`,
		},
		{
			Name:   "HeaderOfFoundNode",
			Reason: "The token of a retried create that found its znode is the czxid that a read returns; the mutant uses the zxid of the answer's header.",
			Edits: []Edit{
				{File: "internal/queue/fixed.go",
					Before: `		n.state, n.czxid = alive, r.Czxid
		c.queues[p.parent].enter(p)`,
					After: `		n.state, n.czxid = alive, r.Zxid
		c.queues[p.parent].enter(p)`},
			},
			Suite: conformance, Test: "TestTokenOfRetriedCreateOnOldServer",
			Says: `token \d+, czxid \d+, there true`,
		},
		{
			Name:   "EagerUpgrade",
			Reason: "New requests wait until every old server is upgraded; the mutant sends them after the first upgrade.",
			Edits: []Edit{
				{File: "internal/session/release.go",
					Before: `		delete(c.oldServers, server)`,
					After:  `		clear(c.oldServers)`},
			},
			Suite: session, Test: "TestNewRequestsWaitUntilEveryOldServerIsUpgraded",
			Says: `request 0 is create2, want \[create\]`,
		},
	}
}
