package mutants

// severalMutants break rules about several locks at once, permits, and the lock-delay.
func severalMutants() []Mutant {
	return []Mutant{
		{
			Name:   "AllOneByOne",
			Reason: "All enqueues at all its locks in one transaction; the mutant uses one transaction for each.",
			Edits: []Edit{
				{File: "internal/queue/claim.go",
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
			Reason: "The count of leases includes the own ones; the mutant leaves them out.",
			Edits: []Edit{
				{File: "internal/queue/leases.go",
					Before: `over := len(p.ahead) + len(p.nodes) - p.sem.Of`,
					After:  `over := len(p.ahead) - p.sem.Of`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `permits of \d+ are held`,
		},
		{
			Name:   "DelayIgnored",
			Reason: "A waiter keeps the lock-delay after a holder crashed; the mutant ignores it.",
			Edits: []Edit{
				{File: "internal/queue/records.go",
					Before: `if p.delay == 0 || len(p.seen) == 0 {`,
					After:  `if p.delay >= 0 {`},
			},
			Suite: simulation, Test: "TestMutant",
			Says: `granted .* after .* vanished, the delay`,
		},
		{
			Name:   "RecordLast",
			Reason: "A lock-delay record is deleted before its entry; the mutant deletes it afterwards.",
			Edits: []Edit{
				{File: "internal/queue/node.go",
					Before: `if (n.named == forever) == records {`,
					After:  `if (n.named == forever) == !records {`},
			},
			Suite: simulation, Test: "TestMutant", Args: []string{"-like=LateRecord"},
			Says: `whose claim has left in order`,
		},
	}
}
