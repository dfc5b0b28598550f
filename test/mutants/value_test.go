package mutants

// valueMutants break rules about values and Watch.
func valueMutants() []Mutant {
	return []Mutant{
		{
			Name:   "AnyVersion",
			Reason: "A hold writes its value only to a version of its entry that it has read; the mutant writes to any version, over a release request.",
			Edits: []Edit{
				{File: "request.go",
					Before: `zk.SetOp(p, r.Data, r.Versions[i])`,
					After:  `zk.SetOp(p, r.Data, -1+0*r.Versions[i])`},
			},
			Suite: bubble, Test: "TestSetValueKeepsReleaseRequest",
			Says: `Revoked:false`,
		},
		{
			Name:   "RequestForgotten",
			Reason: "A hold that has a release request writes the request again with its value; the mutant writes only the value.",
			Edits: []Edit{
				{File: "internal/queue/value.go",
					Before: `	if acq.revoked {
		return WithRequest`,
					After: `	if false {
		return WithRequest`},
			},
			Suite: bubble, Test: "TestSetValueKeepsReleaseRequest",
			Says: `Revoked:false`,
		},
		{
			Name:   "StaleCache",
			Reason: "An entry that changes while a Watch lists the queue is read again; the mutant keeps the earlier state.",
			Edits: []Edit{
				{File: "watch.go",
					Before: `			delete(known, e.Node)
			unwatched`,
					After: `			unwatched`},
			},
			Suite: bubble, Test: "TestWatchChangesAtAnyMoment",
			Says: `trouble none at .*, want changed`,
		},
		{
			Name:   "StaleAfterRefusal",
			Reason: "If a Watch may not read a changed entry, it does not use the earlier state of the entry; the mutant keeps it.",
			Edits: []Edit{
				{File: "watch.go",
					Before: `return unwatched[e.Node] })`,
					After:  `return false })`},
			},
			Suite: bubble, Test: "TestWatchRefusedRead",
			Says: `after a throttled read: "a\+1`,
		},
	}
}
