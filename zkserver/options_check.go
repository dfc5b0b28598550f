package zkserver

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// largestMaxFrame is the largest permitted MaxFrame.
const largestMaxFrame = 256 << 20

// withDefaults returns o with defaults for zero fields, or an error if o is invalid. Zero
// limits of the tree stay: the tree has its own defaults.
func (o Options) withDefaults() (Options, error) {
	o.TickTime = cmp.Or(o.TickTime, 2*time.Second)
	o.MinSessionTimeout = cmp.Or(o.MinSessionTimeout, 2*o.TickTime)
	o.MaxSessionTimeout = cmp.Or(o.MaxSessionTimeout, max(20*o.TickTime, o.MinSessionTimeout))
	o.HandshakeTimeout = cmp.Or(o.HandshakeTimeout, 10*time.Second)
	o.ContainerCheckInterval = cmp.Or(o.ContainerCheckInterval, time.Minute)
	o.MaxClientConns = cmp.Or(o.MaxClientConns, 60)
	o.MaxFrame = cmp.Or(o.MaxFrame, wire.DefaultMaxFrame)
	o.MaxOutstanding = cmp.Or(o.MaxOutstanding, 1000)
	o.MaxOutstandingTotal = cmp.Or(o.MaxOutstandingTotal, 100_000)
	o.MaxOutstandingBytes = cmp.Or(o.MaxOutstandingBytes, 100<<20)
	o.MaxUnread = cmp.Or(o.MaxUnread, 16<<20)
	o.MaxUnreadTotal = cmp.Or(o.MaxUnreadTotal, 1<<30)
	o.SnapshotRecords = cmp.Or(o.SnapshotRecords, 100_000)
	o.SnapshotBytes = cmp.Or(o.SnapshotBytes, 64<<20)
	o.SnapshotsKept = cmp.Or(o.SnapshotsKept, 3)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.FourLetterWords == nil {
		o.FourLetterWords = []string{"srvr"}
	}
	return o, o.check()
}

// check returns an error that names the first invalid field and its permitted values.
func (o *Options) check() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"TickTime", o.TickTime},
		{"MinSessionTimeout", o.MinSessionTimeout},
		{"MaxSessionTimeout", o.MaxSessionTimeout},
		{"HandshakeTimeout", o.HandshakeTimeout},
		{"ContainerCheckInterval", o.ContainerCheckInterval},
	} {
		// The protocol has timeouts as an int32 of milliseconds.
		if d.value < time.Millisecond || d.value > (1<<31-1)*time.Millisecond {
			return fmt.Errorf("%w: %s is %v: set 1ms to 596h, or 0 for the default", ErrInvalidOptions, d.name, d.value)
		}
	}
	if o.ContainerNeverUsed < 0 {
		return fmt.Errorf("%w: ContainerNeverUsed is %v: set a positive duration, or 0 for no limit", ErrInvalidOptions, o.ContainerNeverUsed)
	}
	if o.MinSessionTimeout > o.MaxSessionTimeout {
		return fmt.Errorf("%w: MinSessionTimeout %v is above MaxSessionTimeout %v: swap them, or set one to 0",
			ErrInvalidOptions, o.MinSessionTimeout, o.MaxSessionTimeout)
	}
	for _, n := range []struct {
		name  string
		value int64
		least int64
	}{
		{"MaxConns", int64(o.MaxConns), 0},
		// A connect request has 44 bytes and must always fit.
		{"MaxFrame", int64(o.MaxFrame), 64},
		{"MaxOutstanding", int64(o.MaxOutstanding), 1},
		{"MaxUnread", int64(o.MaxUnread), 1024},
		{"SnapshotRecords", int64(o.SnapshotRecords), 1},
		{"SnapshotBytes", o.SnapshotBytes, 1},
		{"SnapshotsKept", int64(o.SnapshotsKept), 1},
		{"MaxOutstandingTotal", int64(o.MaxOutstandingTotal), 1},
		{"MaxOutstandingBytes", o.MaxOutstandingBytes, 1024},
		{"MaxUnreadTotal", o.MaxUnreadTotal, 1024},
		{"MaxNodes", int64(o.MaxNodes), 0},
		{"MaxData", o.MaxData, 0},
		{"MaxWatches", int64(o.MaxWatches), 0},
		{"MaxWatchesPerConn", int64(o.MaxWatchesPerConn), 0},
		{"MaxSessions", int64(o.MaxSessions), 0},
		{"MaxReply", int64(o.MaxReply), 0},
	} {
		if n.value < n.least {
			return fmt.Errorf("%w: %s is %d: set at least %d, or 0 for the default", ErrInvalidOptions, n.name, n.value, max(n.least, 1))
		}
	}
	if o.MaxFrame > largestMaxFrame {
		return fmt.Errorf("%w: MaxFrame is %d: set at most %d", ErrInvalidOptions, o.MaxFrame, largestMaxFrame)
	}
	if o.KeepAlive > 0 && o.KeepAlive < time.Second {
		return fmt.Errorf("%w: KeepAlive is %v: set at least 1s, 0 for the default, or a negative value for none", ErrInvalidOptions, o.KeepAlive)
	}
	if err := o.checkAuth(); err != nil {
		return err
	}
	return o.checkWords()
}

// checkWords rejects unknown four-letter words. A misspelled one would otherwise show only
// when monitoring fails.
func (o *Options) checkWords() error {
	for _, w := range o.FourLetterWords {
		if _, ok := fourLetterWords[w]; !ok && w != "*" {
			return fmt.Errorf("%w: FourLetterWords contains %q, which is not a command: use names such as srvr, stat, and mntr, or * for all", ErrInvalidOptions, w)
		}
	}
	return nil
}

// setLimits copies the tree's limits to its configuration.
func (o *Options) setLimits(c *tree.Config) {
	c.MaxNodes, c.MaxData = o.MaxNodes, o.MaxData
	c.MaxWatches, c.MaxWatchesPerConn = o.MaxWatches, o.MaxWatchesPerConn
	c.MaxSessions, c.MaxReply = o.MaxSessions, o.MaxReply
}

// checkAuth rejects options about identities that would admit no client, or every client:
// each would show only when it is too late. No error contains a password.
func (o *Options) checkAuth() error {
	for _, user := range slices.Sorted(maps.Keys(o.SASLUsers)) {
		if err := sasl.CheckUser(user); err != nil {
			return fmt.Errorf("%w: SASLUsers contains the user %.50q: %w", ErrInvalidOptions, user, err)
		}
		if o.SASLUsers[user] == "" {
			return fmt.Errorf("%w: SASLUsers contains the user %q without a password: set one, or remove the user", ErrInvalidOptions, user)
		}
	}
	schemes := []string{"ip", "digest", "sasl", "x509"}
	for _, scheme := range o.EnforceAuthSchemes {
		if !slices.Contains(schemes, scheme) {
			return fmt.Errorf("%w: EnforceAuthSchemes contains %q: use some of %q", ErrInvalidOptions, scheme, schemes)
		}
	}
	for _, scheme := range o.AuthProviders {
		if providers := []string{"sasl", "x509", "ensemble"}; !slices.Contains(providers, scheme) {
			return fmt.Errorf("%w: AuthProviders contains %q: use some of %q", ErrInvalidOptions, scheme, providers)
		}
	}
	if len(o.SASLUsers) > 0 {
		return nil
	}
	if o.RequireSASL {
		return fmt.Errorf("%w: RequireSASL without SASLUsers admits no client: set SASLUsers", ErrInvalidOptions)
	}
	if slices.Equal(o.EnforceAuthSchemes, []string{"sasl"}) {
		return fmt.Errorf("%w: EnforceAuthSchemes is only sasl without SASLUsers, which admits no client: set SASLUsers", ErrInvalidOptions)
	}
	return nil
}

// Format implements fmt.Formatter. Options appear in logs and in messages of tests, so
// Format hides passwords and the super user's digest for every verb.
func (o Options) Format(f fmt.State, verb rune) {
	const hidden = "(hidden)"
	type plain Options // without this method
	p := plain(o)
	if p.SASLUsers = maps.Clone(o.SASLUsers); p.SASLUsers != nil {
		for user := range p.SASLUsers {
			p.SASLUsers[user] = hidden
		}
	}
	if p.SuperDigest != "" {
		p.SuperDigest = hidden
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), p)
}

// setAuth copies the options about identities to the tree's configuration. The caller's
// later changes to its slices and maps have no effect.
func (o *Options) setAuth(c *tree.Config) {
	if len(o.SASLUsers) > 0 {
		c.SASLUsers = maps.Clone(o.SASLUsers)
	}
	c.SuperUsers, c.X509SuperUser = slices.Clone(o.SuperUsers), o.X509SuperUser
	c.EnsembleNames = slices.Clone(o.EnsembleNames)
	c.AuthProviders = slices.Clone(o.AuthProviders)
	c.EnforceAuthSchemes = slices.Clone(o.EnforceAuthSchemes)
	c.RequireSASL, c.SkipACL = o.RequireSASL, o.SkipACL
}
