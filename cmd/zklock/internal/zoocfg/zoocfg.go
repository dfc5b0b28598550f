// Package zoocfg reads ZooKeeper's zoo.cfg for a server of one node, so that a
// configuration that exists can be brought along as it is.
//
// The names are those of ZooKeeper's administrator's guide and of
// QuorumPeerConfig, and those that Java takes as system properties: in the file
// they may have the prefix "zookeeper." or not. Flags of a JVM (JVMFLAGS,
// SERVER_JVMFLAGS) are not looked at.
//
// Keys fall into four groups: those that have a meaning here; those of
// ZooKeeper that have none for a server of one node in one process, which is
// said; those that make an ensemble, which are refused; and those that nobody
// knows, which are warned about.
package zoocfg

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/zklock/zklock/cmd/zklock/internal/jaas"
	"github.com/zklock/zklock/cmd/zklock/internal/similar"
	"github.com/zklock/zklock/cmd/zklock/internal/tlsconf"
	"github.com/zklock/zklock/zkserver"
)

// maxFile bounds a file. ZooKeeper's own have a few kilobytes.
const maxFile = 1 << 20

// ErrConfig is wrapped by every error about the file.
var ErrConfig = errors.New("zoo.cfg")

// Config is what the file says; zero means that it says nothing.
type Config struct {
	// Server is what concerns the server itself, without the users of JAAS.
	Server zkserver.Options

	ClientPort    int
	ClientAddress string // host without port
	SecurePort    int
	SecureAddress string
	Unify         bool // TLS beside plain connections at ClientPort
	TLS           tlsconf.Java

	// Metrics is host:port of the metrics page, empty for none.
	Metrics string

	// JAAS is the file of users for SASL, and Section the part of it that is
	// the server's.
	JAAS, Section string

	// Notes are what the user should know, in the order of the lines.
	Notes []Note

	metrics      metrics
	enforce      bool
	schemes      []string
	superSecret  string
	confidential bool
}

// Note is a remark about a line of the file. Its text has nothing in it that a
// terminal would obey, and no secret.
type Note struct {
	Line    int // 0 for the file as a whole
	Warning bool
	Text    string
}

// Listen is the plain address to listen at, host:port: port 2181 where the file
// names no port at all, and then only at the loopback unless it names an address,
// for ZooKeeper itself would listen nowhere; empty where it names a port for TLS
// alone.
func (c *Config) Listen() string {
	switch {
	case c.ClientPort != 0:
		return net.JoinHostPort(c.ClientAddress, strconv.Itoa(c.ClientPort))
	case c.SecurePort != 0:
		return ""
	}
	return net.JoinHostPort(cmp.Or(c.ClientAddress, "127.0.0.1"), "2181")
}

// Secure is the address for TLS, empty for none.
func (c *Config) Secure() string {
	if c.SecurePort == 0 {
		return ""
	}
	return net.JoinHostPort(c.SecureAddress, strconv.Itoa(c.SecurePort))
}

// SuperPassword is the SASL password of the user super, which ZooKeeper takes
// from SASLAuthenticationProvider.superPassword; empty for none.
func (c *Config) SuperPassword() string { return c.superSecret }

// Confidential reports whether the file holds what others must not read: a
// password, or a digest that passwords can be tried on.
func (c *Config) Confidential() bool { return c.confidential }

// Parse reads a file. name is for messages only.
func Parse(name string, r io.Reader) (*Config, error) {
	fail := func(err error) (*Config, error) {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, shown(name), err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return fail(err)
	}
	if len(text) > maxFile {
		return fail(fmt.Errorf("it is longer than %d bytes", maxFile))
	}
	// Editors of Windows begin a file with a mark that ZooKeeper trips over.
	list, err := properties(strings.TrimPrefix(string(text), "\ufeff"))
	if err != nil {
		return fail(err)
	}
	c := &Config{Section: jaas.DefaultSection}
	k := newKnown()
	last := map[string]int{}
	for i, p := range list {
		last[bare(p.key)] = i
	}
	for i, p := range list {
		if last[bare(p.key)] != i {
			c.note(Note{Line: p.line, Text: fmt.Sprintf("%s is set again on line %d, which counts", shown(p.key), list[last[bare(p.key)]].line)})
			continue
		}
		if err := c.set(k, p); err != nil {
			return fail(fmt.Errorf("line %d: %s: %w", p.line, shown(p.key), err))
		}
	}
	if err := c.finish(); err != nil {
		return fail(err)
	}
	return c, nil
}

// known is what is known of keys.
type known struct {
	keys     map[string]setter
	prefixes map[string]prefixSetter
	idle     idle
	names    []string // of all of them
	guesses  int      // how many misspelt keys are still to be guessed
}

func newKnown() *known {
	const guesses = 20 // after so many it is another file
	k := &known{keys: knownKeys(), prefixes: knownPrefixes(), idle: idleKeys(), guesses: guesses}
	k.names = everyKey(k.keys, k.idle)
	return k
}

// bare is a key without the prefix that makes it a system property.
func bare(key string) string { return strings.TrimPrefix(strings.TrimSpace(key), "zookeeper.") }

func (c *Config) note(n Note) { c.Notes = append(c.Notes, n) }

// set takes one setting.
func (c *Config) set(k *known, p property) error {
	key, value := bare(p.key), strings.TrimSpace(p.value)
	if err := ensembleKey(key, value); err != nil {
		return err
	}
	if isSecret(key) && value != "" {
		c.confidential = true
	}
	if set, ok := k.keys[key]; ok {
		return set(c, p.line, value)
	}
	if strings.HasPrefix(key, "ssl.") && !strings.HasPrefix(key, "ssl.quorum.") {
		if mine, err := c.TLS.Set(key, value); mine {
			return err
		}
	}
	for prefix, set := range k.prefixes {
		if strings.HasPrefix(key, prefix) {
			return set(c, p.line, key, value)
		}
	}
	if why, ok := k.idle.reason(key); ok {
		c.note(Note{Line: p.line, Text: shown(p.key) + " has no effect: " + why})
		return nil
	}
	text := shown(p.key) + " is not known here and has no effect"
	if k.guesses > 0 {
		k.guesses--
		if meant := similar.To(key, k.names); meant != "" {
			text += "; is " + meant + " meant?"
		}
	}
	c.note(Note{Line: p.line, Warning: true, Text: text})
	return nil
}

// isSecret reports whether a key's value is one that others must not read.
func isSecret(key string) bool {
	lower := strings.ToLower(key)
	return strings.HasSuffix(lower, "password") || strings.HasSuffix(lower, "superdigest")
}

// ensembleKey refuses keys that make the server one of several.
func ensembleKey(key, value string) error {
	const advice = "this server is one node and cannot join an ensemble: run Apache ZooKeeper for that, and name its servers with --servers; " +
		"if it is the only server, take the line out"
	for _, prefix := range []string{"server.", "group.", "weight."} {
		if strings.HasPrefix(key, prefix) && key != "server.principal" && key != "server.realm" {
			return errors.New(advice)
		}
	}
	if key == "dynamicConfigFile" || key == "peerType" && !strings.EqualFold(value, "participant") {
		return errors.New(advice)
	}
	return nil
}

// shown is a text of the file as a terminal may have it: quoted where it is
// more than a name.
func shown(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most] + "..."
	}
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r == '.' || r == '-' || r == '_' || r == '/' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) < 0
	if plain {
		return s
	}
	return strconv.QuoteToASCII(s)
}
