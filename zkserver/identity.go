package zkserver

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/tree"
)

// checkAuth refuses options about identities by which nobody could get in, or
// everybody: each would show only when it is too late. No error has a password
// in it.
func (o *Options) checkAuth() error {
	for _, user := range slices.Sorted(maps.Keys(o.SASLUsers)) {
		if err := sasl.CheckUser(user); err != nil {
			return fmt.Errorf("%w: SASLUsers has the user %.50q: %w", ErrOptions, user, err)
		}
		if o.SASLUsers[user] == "" {
			return fmt.Errorf("%w: SASLUsers has the user %q without a password: give one or remove the user", ErrOptions, user)
		}
	}
	schemes := []string{"ip", "digest", "sasl", "x509"}
	for _, scheme := range o.EnforceAuthSchemes {
		if !slices.Contains(schemes, scheme) {
			return fmt.Errorf("%w: EnforceAuthSchemes has %q: use some of %q", ErrOptions, scheme, schemes)
		}
	}
	for _, scheme := range o.AuthProviders {
		if providers := []string{"sasl", "x509", "ensemble"}; !slices.Contains(providers, scheme) {
			return fmt.Errorf("%w: AuthProviders has %q: use some of %q", ErrOptions, scheme, providers)
		}
	}
	if len(o.SASLUsers) > 0 {
		return nil
	}
	if o.RequireSASL {
		return fmt.Errorf("%w: RequireSASL without SASLUsers lets nobody in: give users", ErrOptions)
	}
	if slices.Equal(o.EnforceAuthSchemes, []string{"sasl"}) {
		return fmt.Errorf("%w: EnforceAuthSchemes is sasl without SASLUsers, which lets nobody in: give users", ErrOptions)
	}
	return nil
}

// Format implements fmt.Formatter: options end up in logs and in the messages of
// tests, so passwords and the super user's hash are hidden, whatever the verb.
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

// setAuth translates the options about identities. The copies keep a caller
// that changes its own from changing who gets in.
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
