package zk

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/zklock/zklock/internal/boottime"
)

// defaultPort is ZooKeeper's default client port.
const defaultPort = "2181"

// address is one server of a connection string.
type address struct {
	network string // "tcp" or "unix"
	addr    string // address for the dialer
	host    string // host name for TLS; empty for unix
}

// String returns the address in the form of a connection string.
func (a address) String() string {
	if a.network == "unix" {
		return "unix:" + a.addr
	}
	return a.addr
}

// addressOf returns the address that prints as this.
func addressOf(server string) address {
	if path, ok := strings.CutPrefix(server, "unix:"); ok {
		return address{network: "unix", addr: path}
	}
	host, _, _ := net.SplitHostPort(server) // parseHost joined them
	return address{network: "tcp", addr: server, host: host}
}

// isName reports whether the host is a name, which can have several addresses.
func (a address) isName() bool {
	_, err := netip.ParseAddr(a.host)
	return a.network != "unix" && err != nil
}

// servers parses and checks a connection string.
func (o *Options) servers(s string) ([]string, chroot, error) {
	list, root, err := parseServers(s)
	if err == nil && !o.customDial {
		err = checkNames(list)
	}
	if err == nil {
		err = checkTLS(o.TLS, list)
	}
	if err != nil {
		return nil, "", err
	}
	var servers []string
	for _, a := range list {
		servers = append(servers, a.String())
	}
	return servers, root, nil
}

// UpdateServers replaces the servers, for example after [Client.Reconfig] or when a
// service directory reports new servers. servers is a connection string as for [Dial],
// with the same chroot as before. If the server in use is not in it, the client closes
// the connection and continues its session on one of the new servers; requests without an
// answer then fail with [ErrConnectionLost]. Otherwise, the client keeps the connection,
// and uses the new servers when it next reconnects. See ZooKeeper.updateServerList in
// Java.
func (c *Client) UpdateServers(servers string) error {
	list, root, err := c.opts.servers(servers)
	if err == nil && root != c.root {
		err = fmt.Errorf("%w: the chroot cannot change from %q to %q", ErrInvalidServers, string(c.root), string(root))
	}
	if err != nil {
		return &Error{Op: "update servers", Err: err, applied: AppliedNo}
	}
	now := boottime.Now()
	c.mu.Lock()
	c.core.SetServers(list, now)
	c.unlock(now, true)
	return nil
}

// parseServers parses a connection string: servers separated by commas, then an
// optional chroot. The error has the byte offset but quotes nothing, because users
// put passwords in the wrong place.
func parseServers(s string) ([]address, chroot, error) {
	fail := func(at int, why string) ([]address, chroot, error) {
		return nil, "", fmt.Errorf("%w at byte %d: %s", ErrInvalidServers, at, why)
	}
	if strings.TrimSpace(s) == "" {
		return fail(0, "it names no server; write host:port,host:port/chroot or unix:/path")
	}
	if at := strings.Index(s, "://"); at >= 0 {
		return fail(at, "it is not a URL; write host:port,host:port/chroot")
	}
	if at := strings.IndexByte(s, '@'); at >= 0 && !strings.HasPrefix(s, "unix:") {
		return fail(at, "it contains credentials; set them in the options")
	}
	if strings.HasPrefix(s, "unix:") {
		return parseUnix(s)
	}
	root := chroot("")
	hosts := s
	if at := strings.IndexByte(s, '/'); at >= 0 {
		hosts = s[:at]
		if err := checkPath(s[at:], false); err != nil {
			return fail(at, "the chroot is an invalid path")
		}
		root = chroot(strings.TrimSuffix(s[at:], "/"))
	}
	var list []address
	seen := make(map[string]bool)
	at := 0
	for part := range strings.SplitSeq(hosts, ",") {
		a, why := parseHost(strings.TrimSpace(part))
		if why != "" {
			return fail(at, why)
		}
		if !seen[a.addr] {
			seen[a.addr] = true
			list = append(list, a)
		}
		at += len(part) + 1
	}
	return list, root, nil
}

// parseUnix parses the address of one local server. Everything after the colon is the
// path, so there is neither a list nor a chroot.
func parseUnix(s string) ([]address, chroot, error) {
	path := strings.TrimPrefix(s, "unix:")
	if !strings.HasPrefix(path, "/") || strings.IndexByte(path, 0) >= 0 {
		return nil, "", fmt.Errorf("%w at byte %d: a socket's path begins with a slash", ErrInvalidServers, len("unix:"))
	}
	return []address{{network: "unix", addr: path}}, "", nil
}

// parseHost parses one of "host", "host:port", "1.2.3.4:port", "[::1]:port", "[::1]",
// and "::1". It returns what is wrong, or "".
func parseHost(s string) (a address, why string) {
	host, port := s, defaultPort
	switch {
	case s == "":
		return a, "a server is missing"
	case strings.ContainsAny(s, " \t\n;"):
		return a, "separate the servers by commas"
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return a, "the bracket of an IPv6 address is not closed"
		}
		rest := s[end+1:]
		host = s[1:end]
		if zoneless, _, _ := strings.Cut(host, "%"); net.ParseIP(zoneless) == nil {
			return a, "the text in brackets is not an IPv6 address"
		}
		if rest != "" {
			if rest[0] != ':' {
				return a, "a port is expected after the bracket"
			}
			port = rest[1:]
		}
	case strings.Count(s, ":") > 1:
		if net.ParseIP(s) == nil {
			return a, "too many colons; an IPv6 address with a port is written [::1]:2181"
		}
	case strings.Contains(s, ":"):
		host, port, _ = strings.Cut(s, ":")
	}
	if why := checkHost(host); why != "" {
		return a, why
	}
	if host == "unix" {
		return a, "a host cannot be named unix; a socket is written unix:/path"
	}
	n, err := strconv.ParseUint(port, 10, 32)
	if err != nil || n < 1 || n > 65535 {
		return a, "the port is not a number from 1 to 65535"
	}
	return address{network: "tcp", addr: net.JoinHostPort(host, strconv.FormatUint(n, 10)), host: host}, ""
}

// checkHost returns what is wrong if host cannot be a name or an address. It is
// called before a resolver is asked.
func checkHost(host string) (why string) {
	if host == "" {
		return "the host is missing"
	}
	for _, r := range host {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`"'\<>|;?#&=`, r) {
			return "the host contains an invalid character"
		}
	}
	return ""
}

// checkNames returns an error for names that no resolver knows: the domain invalid is
// reserved for names that do not exist (RFC 6761).
func checkNames(list []address) error {
	for _, a := range list {
		if strings.HasSuffix(strings.ToLower(strings.TrimSuffix(a.host, ".")), ".invalid") {
			return fmt.Errorf("%w: %s: no host has a name that ends in .invalid; set Options.DialContext if it knows the name", ErrInvalidServers, a.host)
		}
	}
	return nil
}
