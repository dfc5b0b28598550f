package zk

import (
	"bytes"
	"fmt"
	"io"
)

// hidden stands for a secret where credentials are printed.
const hidden = "(hidden)"

// Format implements fmt.Formatter: options end up in logs and in the messages of
// tests, so every verb prints the user and hides the password.
func (s SASL) Format(f fmt.State, _ rune) { _, _ = f.Write(s.shown()) }

// MarshalText implements encoding.TextMarshaler, for JSON and package slog, and
// hides the password as Format does. There is no way back from it.
func (s SASL) MarshalText() ([]byte, error) { return s.shown(), nil }

func (s SASL) shown() []byte { return fmt.Appendf(nil, "sasl:%q:%s", s.User, hidden) }

// Format implements fmt.Formatter: every verb prints the scheme, of the scheme
// digest the user as well, and hides the rest.
func (a Auth) Format(f fmt.State, _ rune) { _, _ = f.Write(a.shown()) }

// MarshalText implements encoding.TextMarshaler, for JSON and package slog, and
// hides what Format does. There is no way back from it.
func (a Auth) MarshalText() ([]byte, error) { return a.shown(), nil }

func (a Auth) shown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%q:", a.Scheme)
	if user, _, paired := bytes.Cut(a.Data, []byte(":")); paired && a.Scheme == "digest" {
		fmt.Fprintf(&b, "%q:", user)
	}
	_, _ = io.WriteString(&b, hidden)
	return b.Bytes()
}
