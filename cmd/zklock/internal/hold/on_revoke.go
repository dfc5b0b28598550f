package hold

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/inspect"
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
		return fmt.Errorf("%q is neither notice nor term%s", s, config.DidYouMean(s, []string{onRevokeNotice, onRevokeTerm}))
	}
	v.term = s == onRevokeTerm
	return nil
}

// warn prints a release request, and what the command does about it: ending with term,
// otherwise staying.
func (v *onRevoke) warn(title string, r zklock.ReleaseRequest, ending, staying string) {
	by := cmp.Or(inspect.RequesterName(r), "a client")
	why := ""
	if reason := inspect.RequestReason(r); reason != "" {
		why = " (" + reason + ")"
	}
	if v.term {
		cli.Warn("%s asks to release %s%s: %s", by, title, why, ending)
		return
	}
	cli.Warn("%s asks to release %s%s; %s (--on-revoke term releases it)", by, title, why, staying)
}

// revocable has the methods of a hold that show a release request.
type revocable interface {
	Done() <-chan struct{}
	Revoked() <-chan struct{}
	ReleaseRequest(context.Context) (zklock.ReleaseRequest, error)
}

// requestTime limits the read of which client requested the release. The request counts
// without it too.
const requestTime = 2 * time.Second

// releaseRequests returns a channel that gets a request to release the hold, once. The
// goroutine ends with the hold.
func releaseRequests(hold revocable) <-chan zklock.ReleaseRequest {
	requests := make(chan zklock.ReleaseRequest, 1)
	done, revoked := hold.Done(), hold.Revoked()
	go func() {
		select {
		case <-revoked:
		case <-done:
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), requestTime)
		defer cancel()
		r, err := hold.ReleaseRequest(ctx)
		if err != nil {
			r = zklock.ReleaseRequest{} // unknown
		}
		requests <- r
	}()
	return requests
}
