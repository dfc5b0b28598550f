package mutants

// severalMutants break rules about several locks at once, permits, and the lock-delay.
func severalMutants() []Mutant {
	return []Mutant{
		{
			Name:   "AllOneByOne",
			Reason: "All enqueues at all its locks in one transaction; the mutant uses one transaction for each.",
			Edits: []Edit{
				{File: "internal/queue/acquire.go",
					Before: `func (s *Spec) oneByOne() bool { return s.InOrder }`,
					After:  `func (s *Spec) oneByOne() bool { return true }`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `granted with token .*, but .* of`,
		},
		{
			Name:   "PermitsOneByOne",
			Reason: "Several permits are taken in one transaction; the mutant takes them one after another.",
			Edits: []Edit{
				{File: "internal/queue/core.go",
					Before: `	c.lastID++`,
					After: `	c.lastID++
	var apart []Semaphore
	for _, s := range spec.Semaphores {
		for range s.Permits {
			apart = append(apart, Semaphore{Path: s.Path, Permits: 1, Of: s.Of})
		}
	}
	spec.Semaphores = apart`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: notServed,
		},
		{
			Name:   "OwnUncounted",
			Reason: "The count of leases includes the client's own leases; the mutant omits them.",
			Edits: []Edit{
				{File: "internal/queue/leases.go",
					Before: `over := len(p.ahead) + len(p.nodes) - of`,
					After:  `over := len(p.ahead) - of`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `permits of \d+ are held`,
		},
		{
			Name:   "DelayIgnored",
			Reason: "A waiter waits for the lock delay after a holder crashed; the mutant ignores it.",
			Edits: []Edit{
				{File: "internal/queue/records.go",
					Before: `if p.delay == 0 || p.leftover == nil {`,
					After:  `if p.delay >= 0 {`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `granted .* after .* vanished, the delay`,
		},
		{
			Name:   "RecordWithoutHold",
			Reason: "A completed run is recorded in a transaction with a check of the hold; the mutant only sets the record.",
			Edits: []Edit{
				{File: "once.go",
					Before: `			err = h.Guard(ctx, ops...)`,
					After:  `			_, err = h.grant.client.zk.Multi(ctx, ops...)`},
			},
			Suite: bubble, Test: "TestRunOfBrokenHoldIsNotRecorded",
			Says: `deleted: <nil>, want`,
		},
		{
			Name:   "BeganWhenGranted",
			Reason: "A run begins with the creation of its entry; the mutant uses the time of the grant, so that each waiter of a long round runs again.",
			Edits: []Edit{
				{File: "once.go",
					Before: `	at = time.UnixMilli(stat.Ctime)`,
					After: `	_ = stat
	at = time.Now()`},
			},
			Suite: bubble, Test: "TestOncePerRoundLongerThanPeriod",
			Says: `an acquire of the same round would run`,
		},
		{
			Name:   "RecordLast",
			Reason: "A lock-delay record is deleted before its entry; the mutant deletes it afterwards.",
			Edits: []Edit{
				{File: "internal/queue/node.go",
					Before: `if (n.named == forever) == records {`,
					After:  `if (n.named == forever) == !records {`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=lock-delay"},
			Says: `waits for the delay of .*, which was released`,
		},
		{
			Name:   "LastToken",
			Reason: "Each lock of an All in order has its own token; the mutant gives all of them the last one.",
			Edits: []Edit{
				{File: "internal/queue/acquire.go",
					Before: `s.Tokens = append(s.Tokens, n.czxid)`,
					After:  `s.Tokens = append(s.Tokens, nodes[len(nodes)-1].czxid)`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=in-order"},
			Says: `granted while .* is not on the server`,
		},
		{
			Name:   "FirstClear",
			Reason: "Several locks are granted when all are clear; the mutant grants them when the first is.",
			Edits: []Edit{
				{File: "internal/queue/acquire.go",
					Before: `if acq.phase != working || slices.ContainsFunc(acq.positions, func(p *position) bool { return p.clearance == notCleared }) {`,
					After:  `if acq.phase != working {`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=several"},
			Says: passedBy,
		},
		{
			Name:   "AnyOrder",
			Reason: "All in order takes its locks in the order of their paths; the mutant keeps the order of the caller.",
			Edits: []Edit{
				{File: "kinds.go",
					Before: `return strings.Compare(a.path, b.path)`,
					After:  `return 0`},
			},
			Suite: bubble, Test: "TestInOrder",
			Says: `kinds_test.go`,
		},
		{
			Name:   "UncountedLeases",
			Reason: "A semaphore counts the leases of all clients; the mutant counts its own.",
			Edits: []Edit{
				{File: "internal/queue/leases.go",
					Before: `over := len(p.ahead) + len(p.nodes) - of`,
					After:  `over := len(p.nodes) - of`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=semaphore"},
			Says: `permits of \d+ are held`,
		},
		{
			Name:   "AnySize",
			Reason: "Clients that disagree about the size of a semaphore get an error; the mutant does not compare.",
			Edits: []Edit{
				{File: "internal/queue/leases.go",
					Before: `	case err == nil && others > 0 && !p.sem.stored():
		return false`,
					After: `	case err == nil && others > 0 && !p.sem.stored():
		return true`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=size"},
			Says: `granted .*, one of \d, while .* holds .*, one of \d`,
		},
		{
			Name:   "SizeBeforeListing",
			Reason: "The stored size is read after the listing of the leases; the mutant reads it before.",
			Edits: []Edit{
				{File: "internal/queue/size.go",
					Before: `	var list Reply
	c.send(Request{Kind: List, Path: dir, Watch: watch}, func(_ time.Duration, r Reply) { list = r })
	watch = watch && c.useSizeWatch(p)
	if watch {
		w := c.sizeWatches[SizePath(p.sem.Path)]
		w.req, w.fired = c.lastReq+1, false
	}
	c.send(Request{Kind: Get, Path: SizePath(p.sem.Path), Watch: watch}, func(now time.Duration, r Reply) { then(now, list, r) })`,
					After: `	var size Reply
	c.send(Request{Kind: Get, Path: SizePath(p.sem.Path), Watch: watch}, func(_ time.Duration, r Reply) { size = r })
	c.send(Request{Kind: List, Path: dir, Watch: watch}, func(now time.Duration, r Reply) { then(now, r, size) })`},
			},
			Suite: property, Test: "TestTranscripts/semaphore-resized-between",
			Says: `the core did otherwise`,
		},
		{
			Name:   "CachedSize",
			Reason: "Each count of the leases reads the stored size again; the mutant keeps the first one.",
			Edits: []Edit{
				{File: "internal/queue/size.go",
					Before: `	again := p.query == outdated
	if !c.answers(now, p, list) {
		return
	}`,
					After: `	again := p.query == outdated
	if !c.answers(now, p, list) {
		return
	}
	if size.Code == OK && p.limit.size == nil {
		p.limit.size = size.Data
	}
	if size.Code == OK {
		size.Data = p.limit.size
	}`},
				{File: "internal/queue/leases.go",
					Before: `	agreed  bool // it was`,
					After: `	size    []byte
	agreed  bool // it was`},
			},
			Suite: property, Test: "TestRandomHistoriesWithResizes",
			Says: `always more leases than the size`,
		},
		{
			Name:   "SizeUnwatched",
			Reason: "An acquire that waits for a permit watches the stored size; the mutant watches only the leases.",
			Edits: []Edit{
				{File: "internal/queue/size.go",
					Before: `Path: SizePath(p.sem.Path), Watch: watch}`,
					After:  `Path: SizePath(p.sem.Path)}`},
			},
			Suite: bubble, Test: "TestResize",
			Says: `the third: not granted`,
		},
		{
			Name:   "EventBetweenReads",
			Reason: "An event between the answers to the listing and to the read of the size makes an acquire read both again; the mutant ignores the event.",
			Edits: []Edit{
				{File: "internal/queue/size.go",
					Before: `		p.query = outdated`,
					After:  `		return`},
			},
			Suite: property, Test: "TestTranscripts/semaphore-resized-between",
			Says: `the core did otherwise`,
		},
		{
			Name:   "OpenGate",
			Reason: "One client at a time adds leases, under the gate; the mutant lets all clients through.",
			Edits: []Edit{
				{File: "internal/queue/position.go",
					Before: `	acq := p.acquire
	b, blocked := Blocker(p.kind(), p.ahead)`,
					After: `	acq := p.acquire
	b, blocked := Blocker(p.kind(), p.ahead)
	blocked = blocked && p.role != gate`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-scenario=semaphore"},
			Says: notServed,
		},
		{
			Name:   "DowngradedToken",
			Reason: "A downgraded hold keeps the token of the writer in the data of the new entry; the mutant omits it.",
			Edits: []Edit{
				{File: "value.go",
					Before: `owner.Token = p.token`,
					After:  `owner.Token = 0`},
			},
			Suite: bubble, Test: "TestDowngrade",
			Says: `rwmutex_test.go`,
		},
	}
}
