package mutants

// commandMutants break rules about the command that zklock run starts.
func commandMutants() []Mutant {
	return []Mutant{
		{
			Name:   "LongerMaxHold",
			Reason: "A command gets TERM after the time of --max-hold; the mutant waits for twice as long.",
			Edits: []Edit{
				{File: "cmd/zklock/internal/hold/max_hold.go",
					Before: `m.at = now + min(m.limit,`,
					After:  `m.at = now + min(2*m.limit,`},
			},
			Suite: wrapper, Test: "TestMaxHoldEndsCommand",
			Says: `got \["TERM@2m0s"`,
		},
		{
			Name:   "HookBeforeTerm",
			Reason: "The command of --on-lost starts after the locked command got TERM; the mutant starts it first, so that it can delay TERM.",
			Edits: []Edit{
				{File: "cmd/zklock/internal/hold/supervise.go",
					Before: `		s.cmd.Terminate(core.killAt)
		s.runHook()`,
					After: `		s.runHook()
		s.cmd.Terminate(core.killAt)`},
			},
			Suite: wrapper, Test: "TestHookOfLossRunsOnce",
			Says: `the hook started .* after \[\]`,
		},
		{
			Name:   "UnreadDeadline",
			Reason: "The lock of a program that does not read is kept only until the last deadline that the program may have read; the mutant extends that deadline.",
			Edits: []Edit{
				{File: "cmd/zklock/internal/hold/stdio_promise.go",
					Before: `case ready && safe-p.until`,
					After:  `case safe-p.until`},
			},
			Suite: wrapper, Test: "TestPromiseStep",
			Says: `unread lines: 1`,
		},
		{
			Name:   "SignalReleases",
			Reason: "A signal to zklock lock --stdio goes to its program too, which may still need the lock; the mutant releases the lock.",
			Edits: []Edit{
				{File: "cmd/zklock/internal/hold/stdio.go",
					Before: `s.out.add(event{Event: eventReleaseRequested, Signal: sig.String()})`,
					After:  `return reasonRelease, ""`},
			},
			Suite: wrapper, Test: "TestStdioRequestsDoNotEndHold",
			Says: `a signal is `,
		},
		{
			Name:   "BreakSuccessor",
			Reason: "A break after a release request breaks only the hold that the request was sent to, which the transaction that created its entry identifies; the mutant compares names.",
			Edits: []Edit{
				{File: "inspect/lock.go",
					Before: `case e.Czxid == 0:`,
					After:  `case true:`},
			},
			Suite: inspection, Test: "TestAwaitReleaseWaitsForAskedHoldOnly",
			Says: `the next hold counts as the asked one`,
		},
	}
}
