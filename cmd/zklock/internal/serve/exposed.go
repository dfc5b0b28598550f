package serve

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
)

// exposures returns warnings about addresses that other machines can reach. A client that
// reaches a ZooKeeper server may do everything that no ACL forbids, and the metrics page
// does not authenticate its readers.
func (p *plan) exposures() (warnings []string) {
	plain, secure, metrics := p.ownAddresses()
	for _, s := range p.sockets {
		at := addressOf(s)
		if path, ok := strings.CutPrefix(at, "unix:"); ok {
			warnings = append(warnings, exposedSocket(path, s.Name != socketMetrics && p.clientsProve(s.Name == socketTLS))...)
		}
		switch s.Name {
		case socketTLS:
			warnings = append(warnings, p.exposedTLS(at)...)
		case socketMetrics:
			warnings = append(warnings, exposedMetrics(at)...)
		default:
			warnings = append(warnings, p.exposedPlain(at)...)
		}
	}
	return slices.Concat(warnings, p.exposedPlain(plain), p.exposedTLS(secure), exposedMetrics(metrics))
}

// exposedSocket returns a warning about a unix socket that systemd passed, if its clients
// need not prove who they are. A socket that this process creates is closed to other users.
func exposedSocket(path string, clientsProve bool) []string {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o002 == 0 || clientsProve {
		return nil
	}
	return []string{fmt.Sprintf("listening at unix:%s, to which every user of this machine can connect (mode %04o): set SocketMode=0660 in its unit, unless its directory is closed to them",
		path, info.Mode().Perm())}
}

// exposedPlain returns a warning about an address where TLS is off or optional.
func (p *plan) exposedPlain(at string) []string {
	if !beyond(at) {
		return nil
	}
	return []string{"listening at " + at + " to other machines, without TLS: an attacker on the network can read everything, also session passwords, and every client that can connect can acquire and break locks that have no ACL; see --tls-listen, or listen at 127.0.0.1"}
}

// exposedTLS returns a warning about an address of TLS whose clients need not prove who they are.
func (p *plan) exposedTLS(at string) []string {
	if !beyond(at) || p.clientsProve(true) {
		return nil
	}
	return []string{"listening for TLS at " + at + " to other machines, without authentication of clients: " +
		"every client that can connect can acquire and break locks that have no ACL; see --tls-ca and --jaas"}
}

// exposedMetrics returns a warning about an address of the metrics.
func exposedMetrics(at string) []string {
	if !beyond(at) {
		return nil
	}
	return []string{"serving metrics at " + at + " to other machines, without a password: " +
		"serve them on the loopback, or behind a proxy"}
}

// clientsProve reports whether every client of an address must prove who it is. Every
// client has an identity of the scheme ip, and any password makes one of digest, so these
// schemes prove nothing. tlsOnly says that the address accepts only TLS.
func (p *plan) clientsProve(tlsOnly bool) bool {
	schemes := p.opts.EnforceAuthSchemes
	proofs := len(schemes) > 0 && !slices.ContainsFunc(schemes, func(s string) bool { return s != "sasl" && s != "x509" })
	return proofs || p.opts.RequireSASL || tlsOnly && p.tls.Files.ClientAuth == tls.RequireAndVerifyClientCert
}

// beyond reports whether other machines can reach an address. They cannot reach an empty
// one, a unix socket, or the loopback. A host name other than localhost counts as
// reachable.
func beyond(at string) bool {
	if at == "" || strings.HasPrefix(at, "unix:") {
		return false
	}
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return true
	}
	host, _, _ = strings.Cut(host, "%")
	if ip := net.ParseIP(host); ip != nil {
		return !ip.IsLoopback()
	}
	return host != "localhost"
}
