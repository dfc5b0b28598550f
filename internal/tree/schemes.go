package tree

import (
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/internal/x500"
)

// The schemes of identities and access control entries. World and auth occur in
// lists only, super among identities only: nobody can write it into a list.
const (
	schemeWorld  = "world"
	schemeAuth   = "auth"
	schemeIP     = "ip"
	schemeDigest = "digest"
	schemeSASL   = "sasl"
	schemeX509   = "x509"
	schemeSuper  = "super"
	// schemeEnsemble proves nothing about a client: with it a client says which ensemble
	// it means.
	schemeEnsemble = "ensemble"
	anyone         = "anyone"
)

// provides reports whether there is somebody to prove identities of a scheme
// (ProviderRegistry). Java has sasl and x509 where they are configured. Who came
// with a certificate has shown that this server takes certificates.
func (t *Tree) provides(scheme string, ids []identity) bool {
	switch scheme {
	case schemeIP, schemeDigest:
		return true
	case schemeSASL:
		if t.cfg.AuthProviders == nil {
			return t.cfg.SASLUsers != nil
		}
	case schemeX509:
		if slices.ContainsFunc(ids, func(i identity) bool { return i.scheme == schemeX509 }) {
			return true
		}
		if t.cfg.AuthProviders == nil {
			return t.cfg.X509SuperUser != ""
		}
	case schemeEnsemble:
	default:
		return false
	}
	return slices.Contains(t.cfg.AuthProviders, scheme)
}

// proves reports whether identities of a scheme say who somebody is, so that
// "auth" in a list means them (AuthenticationProvider.isAuthenticated). An
// address proves nothing about who is there, and super is no provider's.
func proves(scheme string) bool {
	return scheme == schemeDigest || scheme == schemeSASL || scheme == schemeX509
}

// validID reports whether an entry's id is one of its scheme
// (AuthenticationProvider.isValid).
func (t *Tree) validID(a wire.ACL) bool {
	switch a.Scheme {
	case schemeDigest:
		return validDigestID(a.ID)
	case schemeIP:
		// Up to 3.9.3 Java knows no longer addresses, and can't match them.
		return validIPExpr(a.ID) && !(t.cfg.Compat38 && strings.Contains(a.ID, ":"))
	case schemeSASL:
		return validSASLID(a.ID)
	case schemeX509:
		return x500.Valid(a.ID)
	}
	return false
}

// validSASLID wants a plain name, or service@REALM, or service/host@REALM
// (KerberosName).
func validSASLID(id string) bool {
	before, realm, ok := strings.Cut(id, "@")
	return !ok || !strings.ContainsAny(realm, "/@") && strings.Count(before, "/") <= 1
}

// saslMatches reports whether a SASL user is the one of an entry. As in Java
// (SASLAuthenticationProvider.matches) a user of the name super is all of them.
func saslMatches(user, entry string) bool {
	return user == entry || user == schemeSuper
}
