package config

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/zklock/zklock/zkserver"
)

// This file reads ZooKeeper's zoo.cfg for a server of one node, so that users can keep an
// existing configuration.
//
// The keys are those of ZooKeeper's administrator's guide and of QuorumPeerConfig, and
// Java system properties of ZooKeeper, which can have the prefix "zookeeper." in the file.
// JVM flags (JVMFLAGS, SERVER_JVMFLAGS) are not read.
//
// There are four kinds of keys: keys that have an effect here; keys of ZooKeeper that have
// none in a server of one node, which produce a note; keys of an ensemble, which are
// errors; and unknown keys, which produce a warning.

// MaxServerConfig limits the size of a file. ZooKeeper's own files have a few kilobytes.
const MaxServerConfig = 1 << 20

// ServerConfig has the settings of the file. A zero field means that the file does not set it.
type ServerConfig struct {
	// Server has the options of the server itself, without the users of JAAS.
	Server zkserver.Options

	ClientPort    int
	ClientAddress string // host without port
	SecurePort    int
	SecureAddress string
	Unify         bool // TLS and plain connections at ClientPort
	TLS           JavaTLS

	// Metrics is host:port of the metrics page, "" for none.
	Metrics string

	// JAAS is the file of SASL users, and Section its section for the server.
	JAAS, Section string

	// Notes are remarks for the user, in the order of the lines.
	Notes []Note

	// SchemeNotes are, for the schemes sasl and x509, the starts of remarks that apply if no
	// client can authenticate with the scheme. The reason follows after a colon.
	SchemeNotes map[string][]Note

	// SuperPassword is the SASL password of the user super, which ZooKeeper reads from
	// SASLAuthenticationProvider.superPassword.
	SuperPassword string

	// Confidential means that the file contains a secret: a password, or a digest, with
	// which an attacker can test passwords.
	Confidential bool

	noClientPort bool // clientPort=0
	metrics      metrics
	enforce      bool
	schemes      []string
}

// Note is a remark about a line of the file. Its text contains no control characters and
// no secrets.
type Note struct {
	Line    int // 0 for the file as a whole
	Warning bool
	Text    string
}

// Listen returns the plain address to listen at, host:port. If the file sets only a port
// for TLS, or clientPort=0, it is "". If the file does not mention a port, the address is
// 127.0.0.1:2181.
func (c *ServerConfig) Listen() string {
	switch {
	case c.ClientPort != 0:
		return net.JoinHostPort(c.ClientAddress, strconv.Itoa(c.ClientPort))
	case c.SecurePort != 0 || c.noClientPort:
		return ""
	}
	return "127.0.0.1:2181"
}

// Secure returns the address for TLS, "" for none.
func (c *ServerConfig) Secure() string {
	if c.SecurePort == 0 {
		return ""
	}
	return net.JoinHostPort(c.SecureAddress, strconv.Itoa(c.SecurePort))
}

// ParseServerConfig parses a file. name is for messages only.
func ParseServerConfig(name string, r io.Reader) (*ServerConfig, error) {
	fail := func(err error) (*ServerConfig, error) {
		return nil, fmt.Errorf("zoo.cfg: %s: %w", shown(name), err)
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxServerConfig+1))
	if err != nil {
		return fail(err)
	}
	if len(text) > MaxServerConfig {
		return fail(fmt.Errorf("the file is longer than %d bytes", MaxServerConfig))
	}
	// Some Windows editors write a byte order mark, with which ZooKeeper fails.
	list, err := properties(strings.TrimPrefix(string(text), "\ufeff"))
	if err != nil {
		return fail(err)
	}
	c := &ServerConfig{Section: DefaultJAASSection, SchemeNotes: map[string][]Note{}}
	k := newKnown()
	last := map[string]int{}
	for i, p := range list {
		last[bare(p.key)] = i
	}
	for i, p := range list {
		if last[bare(p.key)] != i {
			c.note(Note{Line: p.line, Text: fmt.Sprintf("%s is set again on line %d, which applies", shown(p.key), list[last[bare(p.key)]].line)})
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

// known has the known keys.
type known struct {
	keys     map[string]setter
	prefixes map[string]prefixSetter
	idle     idle
	names    []string // of all keys
	guesses  int      // for how many more unknown keys similar ones are searched
}

func newKnown() *known {
	const guesses = 20 // with more unknown keys it is probably another file
	k := &known{keys: knownKeys(), prefixes: knownPrefixes(), idle: idleKeys(), guesses: guesses}
	k.names = everyKey(k.keys, k.idle)
	return k
}

// bare returns a key without the prefix of a system property.
func bare(key string) string { return strings.TrimPrefix(strings.TrimSpace(key), "zookeeper.") }

func (c *ServerConfig) note(n Note) { c.Notes = append(c.Notes, n) }

// set handles one setting.
func (c *ServerConfig) set(k *known, p property) error {
	key, value := bare(p.key), strings.TrimSpace(p.value)
	if err := ensembleKey(key, value); err != nil {
		return err
	}
	if isSecret(key) && value != "" {
		c.Confidential = true
	}
	if scheme, effect := schemeOf(key, value); scheme != "" {
		c.SchemeNotes[scheme] = append(c.SchemeNotes[scheme], Note{Line: p.line, Warning: true, Text: shown(p.key) + effect})
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
	text := shown(p.key) + " is unknown and has no effect"
	if k.guesses > 0 {
		k.guesses--
		if meant := Similar(key, k.names); meant != "" {
			text += "; is " + meant + " meant?"
		}
	}
	c.note(Note{Line: p.line, Warning: true, Text: text})
	return nil
}

// isSecret reports whether the value of a key is a secret.
func isSecret(key string) bool {
	lower := strings.ToLower(key)
	return strings.HasSuffix(lower, "password") || strings.HasSuffix(lower, "superdigest")
}

// ensembleKey returns an error for a key of an ensemble.
func ensembleKey(key, value string) error {
	const advice = "this server is one node and cannot join an ensemble: run Apache ZooKeeper for that, and name its servers with --servers; " +
		"if this is the only server, remove the line"
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

// shown returns a text of the file for messages. It quotes the text unless it is a name.
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
