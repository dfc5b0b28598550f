package sasl

import "errors"

// The ways in which an exchange fails. A failed exchange can't be continued.
var (
	// ErrMalformed: what the peer sent is no message of the mechanism.
	ErrMalformed = errors.New("sasl: malformed message")
	// ErrUnsupported: the peer wants what this side does not do.
	ErrUnsupported = errors.New("sasl: the other side wants something else than DIGEST-MD5 for authentication alone")
	// ErrCredentials: the client's proof is wrong, or its user is unknown. The
	// two are not told apart, in words or in time.
	ErrCredentials = errors.New("sasl: wrong user or password")
	// ErrServerProof: the server has not proved that it knows the password.
	ErrServerProof = errors.New("sasl: the server does not know the password; it may not be the one it pretends to be")
	// ErrStep: the exchange is over, or the message came out of turn.
	ErrStep = errors.New("sasl: no message is expected any more")
)
