package differential

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zkserver"
)

// authSuperDigest is the digest of super:man.
const authSuperDigest = "super:S4H5m176R1dad6bEBL3wcwJhF44="

// users returns the SASL users of both servers.
func users() map[string]string {
	return map[string]string{"bob": "builder", "eve": "apple", "super": "man", "root": "open sesame", "jürgen": "grüße"}
}

// authConfig has settings of a pair of servers.
type authConfig struct {
	requireSASL bool
	schemes     []string // required
	skipACL     bool
	noSASL      bool // no SASL users
}

// servers are Apache ZooKeeper and the embedded server, with the same settings.
type servers struct {
	java, ours string // addresses
}

// sides returns the addresses of both servers, Java's first. Its answers are the expected ones.
func (p servers) sides() [2]string { return [2]string{p.java, p.ours} }

// jaas writes a JAAS file with one section.
func jaas(t *testing.T, section, options string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jaas.conf")
	text := section + " {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n" + options + ";\n};\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startJava starts Apache ZooKeeper.
func startJava(t *testing.T, c authConfig) string {
	t.Helper()
	flags := []string{
		"-Dfile.encoding=UTF-8",
		"-Dzookeeper.fips-mode=false", // in FIPS mode, later releases refuse DIGEST-MD5
		"-Dzookeeper.authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider",
	}
	if !c.noSASL {
		var options strings.Builder
		for user, password := range users() {
			fmt.Fprintf(&options, "  user_%s=%q\n", user, password)
		}
		flags = append(flags, "-Djava.security.auth.login.config="+jaas(t, "Server", options.String()),
			"-Dzookeeper.authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
			"-Dzookeeper.superUser=root")
	}
	if c.requireSASL {
		flags = append(flags, "-Dzookeeper.sessionRequireClientSASLAuth=true")
	}
	if len(c.schemes) > 0 {
		flags = append(flags, "-Dzookeeper.enforce.auth.enabled=true", "-Dzookeeper.enforce.auth.schemes="+strings.Join(c.schemes, ","))
	}
	if c.skipACL {
		flags = append(flags, "-Dzookeeper.skipACL=yes")
	}
	return harness.StartServer(t, harness.ServerConfig{Release: harness.Release39, SuperDigest: authSuperDigest, JavaFlags: flags}).Addr()
}

// startOurs starts the embedded server.
func startOurs(t *testing.T, c authConfig) string {
	t.Helper()
	options := zkserver.Options{
		ExtendedTypes: true, TickTime: 500 * time.Millisecond, MaxSessionTimeout: time.Hour, MaxClientConns: -1,
		SuperDigest: authSuperDigest, SASLUsers: users(), SuperUsers: []string{"root"}, AuthProviders: []string{"sasl", "x509"},
		RequireSASL: c.requireSASL, EnforceAuthSchemes: c.schemes, SkipACL: c.skipACL,
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if c.noSASL {
		options.SASLUsers, options.SuperUsers, options.AuthProviders = nil, nil, []string{"x509"}
	}
	return harness.Serve(t, options)
}

// startServers starts both servers.
func startServers(t *testing.T, c authConfig) servers {
	t.Helper()
	return servers{java: startJava(t, c), ours: startOurs(t, c)}
}

// identity is an identity with its authentication.
type identity struct {
	name         string
	authenticate func(c *authConn) (frame, error)
}

func digest(secret string) func(*authConn) (frame, error) {
	return func(c *authConn) (frame, error) {
		return c.call(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte(secret)})
	}
}

func saslAs(user, password string) func(*authConn) (frame, error) {
	return func(c *authConn) (frame, error) {
		return c.sasl(user, password, rand.NewChaCha8([32]byte{9}))
	}
}

// identities returns the identities of the comparison.
func identities() []identity {
	return []identity{
		{"nobody", func(*authConn) (frame, error) { return frame{}, nil }},
		{"digest", digest("ann:1")},
		{"another digest", digest("ann:2")},
		{"bob", saslAs("bob", "builder")},
		{"eve", saslAs("eve", "apple")},
		{"the user super", saslAs("super", "man")},
		{"the SASL super user", saslAs("root", "open sesame")},
		{"the digest super user", digest("super:man")},
	}
}

// connect opens a session and authenticates.
func (w identity) connect(addr string) (*authConn, error) {
	c, err := connect(addr)
	if err != nil {
		return nil, err
	}
	got, err := w.authenticate(c)
	if err == nil && (got.closed || got.header.Err != wire.ErrOK) {
		err = fmt.Errorf("differential: %s: %s", w.name, showReply(wire.OpAuth, got))
	}
	return c, err
}
