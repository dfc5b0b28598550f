package hold

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// Reactions to a release request.
const (
	onRevokeNotice = "notice" // print a notice
	onRevokeTerm   = "term"   // end as on TERM
)

// onRevoke is the flag --on-revoke. The zero value is notice.
type onRevoke struct{ term bool }

// flag adds --on-revoke.
func (v *onRevoke) flag(c *cobra.Command) {
	c.Flags().Var(v, "on-revoke", "on a release request: notice (default) or term")
	cli.CompleteFlagWords(c, "on-revoke", []string{onRevokeNotice, onRevokeTerm})
}

// Type returns the name of the argument in the help.
func (v *onRevoke) Type() string { return "notice|term" }

// String returns the argument, "" for the default.
func (v *onRevoke) String() string {
	if v.term {
		return onRevokeTerm
	}
	return ""
}

// Set parses the argument.
func (v *onRevoke) Set(s string) error {
	if s != onRevokeNotice && s != onRevokeTerm {
		return fmt.Errorf("%q is neither notice nor term%s", s, cli.DidYouMean(s, []string{onRevokeNotice, onRevokeTerm}))
	}
	v.term = s == onRevokeTerm
	return nil
}

// warn prints a release request, and what the command does about it: ending with term,
// otherwise staying.
func (v *onRevoke) warn(title, ending, staying string) {
	if v.term {
		cli.Warn("a client asks to release %s: %s", title, ending)
		return
	}
	cli.Warn("a client asks to release %s; %s (--on-revoke term releases it)", title, staying)
}
