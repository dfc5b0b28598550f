package mutants

// kerberosMutants break rules about the authentication of the server.
func kerberosMutants() []Mutant {
	return []Mutant{
		{
			Name:   "OldProof",
			Reason: "The proof of a server must match the authenticator of this connection; the mutant accepts a proof for another connection.",
			Edits: []Edit{
				{File: "zkkerberos/exchange.go",
					Before: `if part.CTime.Unix() != x.auth.CTime.Unix() || part.Cusec != x.auth.Cusec {`,
					After:  `if false {`},
			},
			Suite: kerberos, Test: "TestServerMustProveItself",
			Says: `the proof of another connection: done false, <nil>`,
		},
		{
			Name:   "UnsignedOffer",
			Reason: "A server signs the list of security layers; the mutant does not check the signature.",
			Edits: []Edit{
				{File: "zkkerberos/exchange.go",
					Before: `!ok || err != nil {
		return nil, errors.New("its token has a wrong signature")`,
					After: `!ok && err == nil {
		return nil, errors.New("its token has a wrong signature")`},
			},
			Suite: kerberos, Test: "TestServerMustProveItself",
			Says: `an offer with another key: done true, <nil>`,
		},
		{
			Name:   "NoConsent",
			Reason: "After the last token of SASL, the server must accept the client; the mutant does not wait for its answer.",
			Edits: []Edit{
				{File: "internal/session/sasl.go",
					Before: `	if done && token == nil {`,
					After:  `	if done {`},
			},
			Suite: session, Test: "TestLastTokenNeedsConsent",
			Says: `want one token`,
		},
	}
}
