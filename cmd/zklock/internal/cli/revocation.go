package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// What to do when somebody asks for a lock back.
const (
	onRevokeNotice = "notice" // tell the user
	onRevokeTerm   = "term"   // behave as if TERM had come
)

// onRevoke is --on-revoke. The zero value is a notice.
type onRevoke struct{ term bool }

// flag adds --on-revoke.
func (v *onRevoke) flag(c *cobra.Command) {
	c.Flags().Var(v, "on-revoke", "on a release request: notice (default) or term")
	offer(c, "on-revoke", []string{onRevokeNotice, onRevokeTerm})
}

// Type is what help calls the argument.
func (v *onRevoke) Type() string { return "notice|term" }

// String is the choice, empty for the default.
func (v *onRevoke) String() string {
	if v.term {
		return onRevokeTerm
	}
	return ""
}

// Set reads the flag's argument.
func (v *onRevoke) Set(s string) error {
	if s != onRevokeNotice && s != onRevokeTerm {
		return fmt.Errorf("%q is neither notice nor term%s", s, didYouMean(s, []string{onRevokeNotice, onRevokeTerm}))
	}
	v.term = s == onRevokeTerm
	return nil
}

// tell tells of the wish; ending and staying say what becomes of it.
func (v *onRevoke) tell(title, ending, staying string) {
	if v.term {
		warn("somebody asks for %s back: %s", title, ending)
		return
	}
	warn("somebody asks for %s back; %s (--on-revoke term gives it back)", title, staying)
}
