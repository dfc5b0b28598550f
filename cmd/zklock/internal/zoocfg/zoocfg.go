// Package zoocfg reads ZooKeeper's zoo.cfg for a server of one node, so that a
// configuration that exists can be tried as it is.
//
// The names are those of ZooKeeper's administrator's guide and of
// QuorumPeerConfig; each may have the prefix "zookeeper.", which makes it a
// system property there.
package zoocfg

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// maxLine bounds a line of the file.
const maxLine = 64 << 10

// ErrConfig is wrapped by every error about the file.
var ErrConfig = errors.New("zoo.cfg")

// Config is what the file says; zero means that it says nothing.
type Config struct {
	TickTime          time.Duration
	DataDir           string
	ClientPort        int
	ClientAddress     string // host without port
	MaxClientConns    int    // -1 for the file's 0, which means no limit
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration
	FourLetterWords   []string // nil where the file says nothing
	ExtendedTypes     bool
	ContainerInterval time.Duration
	SuperDigest       string
	ReconfigEnabled   bool
	// Warnings tell of keys that were not understood, one line each.
	Warnings []string
}

// Listen is the address to listen at, host:port; port 2181 where the file
// names none.
func (c *Config) Listen() string {
	port := c.ClientPort
	if port == 0 {
		port = 2181
	}
	return net.JoinHostPort(c.ClientAddress, strconv.Itoa(port))
}

// Parse reads a file. name is for messages only.
func Parse(name string, r io.Reader) (*Config, error) {
	c := &Config{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		key, value, ok := split(lines.Text())
		if !ok {
			continue
		}
		known, err := c.set(key, value)
		if err != nil {
			return nil, fmt.Errorf("%w: %s line %d: %s: %w", ErrConfig, name, n, key, err)
		}
		if !known {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s line %d: %s is not known here and has no effect", name, n, key))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, name, err)
	}
	return c, nil
}

// split takes a line of a Java properties file apart: comments, then key and
// value around the first = or : or space.
func split(line string) (key, value string, ok bool) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' || line[0] == '!' {
		return "", "", false
	}
	at := strings.IndexAny(line, "=: \t")
	if at < 0 {
		return line, "", true
	}
	key, value = line[:at], strings.TrimSpace(line[at:])
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimSpace(value[1:])
	}
	return key, value, true
}

// set takes one setting and reports whether the key is known.
func (c *Config) set(key, value string) (known bool, err error) {
	key = strings.TrimPrefix(key, "zookeeper.")
	if strings.HasPrefix(key, "server.") || strings.HasPrefix(key, "group.") || key == "dynamicConfigFile" {
		return false, errors.New("this server is one node and cannot join an ensemble; run Apache ZooKeeper for that, and name its servers with --servers")
	}
	switch key {
	case "tickTime":
		c.TickTime, err = milliseconds(value, 1)
	case "dataDir":
		c.DataDir, err = absolute(value)
	case "clientPort":
		c.ClientPort, err = number(value, 1, 65535)
	case "clientPortAddress":
		c.ClientAddress = strings.Trim(value, "[]")
	case "maxClientCnxns":
		c.MaxClientConns, err = number(value, 0, 1<<31-1)
		if err == nil && c.MaxClientConns == 0 {
			c.MaxClientConns = -1
		}
	case "minSessionTimeout":
		c.MinSessionTimeout, err = milliseconds(value, -1)
	case "maxSessionTimeout":
		c.MaxSessionTimeout, err = milliseconds(value, -1)
	case "4lw.commands.whitelist":
		c.FourLetterWords = words(value)
	case "extendedTypesEnabled":
		c.ExtendedTypes, err = boolean(value)
	case "znode.container.checkIntervalMs":
		c.ContainerInterval, err = milliseconds(value, 1)
	case "DigestAuthenticationProvider.superDigest":
		c.SuperDigest, err = digest(value)
	case "reconfigEnabled":
		c.ReconfigEnabled, err = boolean(value)
	default:
		return false, nil
	}
	return true, err
}

// number reads a whole number within bounds.
func number(value string, least, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q is not a whole number from %d to %d", value, least, most)
	}
	return n, nil
}

// milliseconds reads a time; -1 means the default, as in ZooKeeper.
func milliseconds(value string, least int) (time.Duration, error) {
	n, err := number(value, least, 1<<31-1)
	return time.Duration(max(n, 0)) * time.Millisecond, err
}

// boolean reads what Java's Boolean takes, and refuses what it silently takes
// for false.
func boolean(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", value)
}

// absolute refuses a directory that would depend on where the server starts.
func absolute(value string) (string, error) {
	if !filepath.IsAbs(value) {
		return "", fmt.Errorf("%q is not an absolute path", value)
	}
	return filepath.Clean(value), nil
}

// digest checks the form only, and never quotes the value.
func digest(value string) (string, error) {
	if user, hash, ok := strings.Cut(value, ":"); !ok || user == "" || hash == "" {
		return "", errors.New("it is not of the form super:BASE64")
	}
	return value, nil
}

// words splits a list at its commas; an empty list allows none.
func words(value string) []string {
	list := []string{}
	for word := range strings.SplitSeq(value, ",") {
		if word = strings.TrimSpace(word); word != "" {
			list = append(list, word)
		}
	}
	return list
}
