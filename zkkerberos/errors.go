package zkkerberos

import (
	"errors"
	"strings"

	"github.com/jcmturner/gokrb5/v8/krberror"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// Error is the error type of this package. It matches zk.ErrAuthFailed if the KDC refused the
// client's key, does not know its principal, or says that the principal or its password has
// expired, or if the server did not prove its identity. After such an error, also a
// client that was connected before ends permanently: Dial a new one. It matches
// zk.ErrInvalidOptions if the client has no usable file or ticket, or cannot get a ticket for this
// server.
type Error struct {
	Op   string // what failed: "log in as", "read the keytab", ...
	Name string // the principal or the file
	Err  error  // the cause
	kind error  // zk.ErrAuthFailed, zk.ErrInvalidOptions, or nil
}

// maxCause limits the cause in a text, in bytes before escapes: an attacker on the path to a
// KDC can send megabytes.
const maxCause = 2 << 10

// Error returns the operation, the name, and the cause in one line. It escapes what a terminal
// would not show, and truncates a long cause.
func (e *Error) Error() string {
	cause := e.Err.Error()
	if len(cause) > maxCause {
		cause = strings.ToValidUTF8(cause[:maxCause], "") + "..."
	}
	return "kerberos: " + e.Op + " " + legible.Path(e.Name) + ": " + legible.Text(cause)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the kind of the error.
func (e *Error) Is(target error) bool { return e.kind != nil && target == e.kind }

// unusable returns an error about a file, an option, or a ticket.
func unusable(op, name, why string) error {
	return &Error{Op: op, Name: name, Err: errors.New(why), kind: zk.ErrInvalidOptions}
}

// refused returns an error that another attempt cannot avoid.
func refused(op, name, why string) error {
	return &Error{Op: op, Name: name, Err: errors.New(why), kind: zk.ErrAuthFailed}
}

// verdicts are the answers of a KDC that need an explanation. gokrb5 reports answers only
// as text.
var verdicts = []struct {
	code string
	kind error
	why  string
}{
	{"KDC_ERR_C_PRINCIPAL_UNKNOWN", zk.ErrAuthFailed, "the KDC does not know this principal; check its spelling and its realm"},
	// Only this server, or this replica of the KDC, may be affected.
	{"KDC_ERR_S_PRINCIPAL_UNKNOWN", zk.ErrInvalidOptions, "the KDC does not know this principal; check the name of the server in the connection string and in DNS, and the option for the principal of the servers"},
	{"KDC_ERR_PREAUTH_FAILED", zk.ErrAuthFailed, "the KDC refused the key; the password of the principal has changed, so export its keytab again"},
	// Without pre-authentication, the client notices that itself.
	{"client password/keytab incorrect", zk.ErrAuthFailed, "the key does not decrypt the answer of the KDC; the password of the principal has changed, so export its keytab again"},
	// A stranger can lock a principal for some minutes by wrong passwords.
	{"KDC_ERR_CLIENT_REVOKED", nil, "the KDC has locked this principal; ask the administrator of the realm"},
	{"KDC_ERR_NAME_EXP", zk.ErrAuthFailed, "this principal has expired; ask the administrator of the realm"},
	{"KDC_ERR_KEY_EXPIRED", zk.ErrAuthFailed, "the password of this principal has expired; change it, and export its keytab again"},
	{"KRB_AP_ERR_TKT_EXPIRED", zk.ErrInvalidOptions, "the ticket has expired; run kinit"},
	{"KRB_AP_ERR_SKEW", nil, "the clocks of this machine and of the KDC differ by more than the KDC permits; synchronize them"},
}

// kdcError returns the error for a failed request to a KDC.
func kdcError(op, name string, err error) error {
	text := err.Error()
	for _, v := range verdicts {
		if strings.Contains(text, v.code) {
			return &Error{Op: op, Name: name, Err: errors.New(v.why), kind: v.kind}
		}
	}
	var k krberror.Krberror
	if errors.As(err, &k) && k.RootCause == krberror.NetworkingError {
		return &Error{Op: op, Name: name, Err: errors.New("no KDC of the realm answered; check krb5.conf and the network: " + k.EText[len(k.EText)-1])}
	}
	return &Error{Op: op, Name: name, Err: err}
}

// guard turns a panic into an error. gokrb5 does not check all lengths of its input.
func guard(err *error) {
	if recover() != nil {
		*err = errMalformed
	}
}

var errMalformed = errors.New("malformed data")
