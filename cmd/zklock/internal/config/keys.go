package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/zkserver"
)

// setter handles the value of one key.
type setter func(c *ServerConfig, line int, value string) error

// knownKeys has the keys that have an effect here, without prefix.
func knownKeys() map[string]setter {
	keys := map[string]setter{}
	for _, group := range []map[string]setter{placeKeys(), limitKeys(), storageKeys(), authKeys(), otherKeys()} {
		maps.Copy(keys, group)
	}
	return keys
}

// into returns a setter that parses a value and stores it.
func into[T any](read func(string) (T, error), place func(*ServerConfig) *T) setter {
	return func(c *ServerConfig, _ int, value string) error {
		v, err := read(value)
		if err == nil {
			*place(c) = v
		}
		return err
	}
}

// count parses an integer that fits an int.
func count(least, most int64) func(string) (int, error) {
	return func(value string) (int, error) {
		n, err := number(value, least, most)
		return int(n), err
	}
}

// span parses a time in milliseconds.
func span(least int64) func(string) (time.Duration, error) {
	return func(value string) (time.Duration, error) { return milliseconds(value, least) }
}

// text stores a value unchanged.
func text(value string) (string, error) { return value, nil }

// path parses a path of a file or directory. ZooKeeper resolves a relative one in its
// working directory, and warns about it.
func path(key string, place func(*ServerConfig) *string) setter {
	return func(c *ServerConfig, line int, value string) error {
		full, err := absolute(value)
		if err == nil && !filepath.IsAbs(value) {
			c.note(Note{Line: line, Warning: true, Text: key + " is " + shown(value) + ", a relative path; the server uses " + shown(full)})
		}
		*place(c) = full
		return err
	}
}

func placeKeys() map[string]setter {
	return map[string]setter{
		"dataDir": path("dataDir", func(c *ServerConfig) *string { return &c.Server.DataDir }),
		"clientPort": func(c *ServerConfig, _ int, value string) (err error) {
			c.ClientPort, err = count(0, 65535)(value)
			c.noClientPort = c.ClientPort == 0
			return err
		},
		"clientPortAddress":       into(host, func(c *ServerConfig) *string { return &c.ClientAddress }),
		"secureClientPort":        into(count(0, 65535), func(c *ServerConfig) *int { return &c.SecurePort }),
		"secureClientPortAddress": into(host, func(c *ServerConfig) *string { return &c.SecureAddress }),
		"client.portUnification":  into(boolean, func(c *ServerConfig) *bool { return &c.Unify }),
	}
}

func limitKeys() map[string]setter {
	return map[string]setter{
		"tickTime":                   into(span(1), func(c *ServerConfig) *time.Duration { return &c.Server.TickTime }),
		"minSessionTimeout":          into(sessionTimeout, func(c *ServerConfig) *time.Duration { return &c.Server.MinSessionTimeout }),
		"maxSessionTimeout":          into(sessionTimeout, func(c *ServerConfig) *time.Duration { return &c.Server.MaxSessionTimeout }),
		"nio.sessionlessCnxnTimeout": into(span(1), func(c *ServerConfig) *time.Duration { return &c.Server.HandshakeTimeout }),
		"maxClientCnxns":             into(perAddress, func(c *ServerConfig) *int { return &c.Server.MaxClientConns }),
		"maxCnxns":                   into(inAll, func(c *ServerConfig) *int { return &c.Server.MaxConns }),
		"jute.maxbuffer":             into(count(64, 256<<20), func(c *ServerConfig) *int { return &c.Server.MaxFrame }),
		"globalOutstandingLimit":     into(count(1, most32), func(c *ServerConfig) *int { return &c.Server.MaxOutstandingTotal }),
	}
}

// perAddress parses maxClientCnxns. A value of 0 or less means no limit.
func perAddress(value string) (int, error) {
	n, err := number(value, math.MinInt32, most32)
	if n <= 0 {
		n = -1
	}
	return int(n), err
}

// inAll parses maxCnxns. A value of 0 or less means no limit, which is 0 here.
func inAll(value string) (int, error) {
	n, err := number(value, math.MinInt32, most32)
	return int(max(n, 0)), err
}

func storageKeys() map[string]setter {
	return map[string]setter{
		"snapCount":         into(count(1, most32), func(c *ServerConfig) *int { return &c.Server.SnapshotRecords }),
		"snapSizeLimitInKb": into(snapshotBytes, func(c *ServerConfig) *int64 { return &c.Server.SnapshotBytes }),
		"forceSync": func(c *ServerConfig, line int, value string) error {
			sync, err := yesOrNo(value)
			if !sync && err == nil && value != "no" {
				err = fmt.Errorf("ZooKeeper ignores %q and syncs: write yes or no", value)
			}
			if c.Server.NoSync = !sync; c.Server.NoSync && err == nil {
				c.note(Note{Line: line, Warning: true, Text: "with forceSync=no, a power loss loses acknowledged writes and locks that are held"})
			}
			return err
		},
		"dataLogDir": func(c *ServerConfig, line int, value string) error {
			c.note(Note{Line: line, Warning: true, Text: "dataLogDir has no effect: the log and the snapshots are both in dataDir; put dataDir on the faster disk"})
			return nil
		},
		"autopurge.snapRetainCount": func(c *ServerConfig, line int, value string) error {
			n, err := number(value, 0, most32)
			if n < 3 && err == nil {
				c.note(Note{Line: line, Text: "autopurge.snapRetainCount is at least 3, as in ZooKeeper"})
			}
			c.Server.SnapshotsKept = int(max(n, 3))
			return err
		},
		"autopurge.purgeInterval": func(c *ServerConfig, line int, value string) error {
			_, err := number(value, math.MinInt32, most32)
			c.note(Note{Line: line, Text: "autopurge.purgeInterval has no effect: the server removes old files after each snapshot"})
			return err
		},
	}
}

// snapshotBytes parses snapSizeLimitInKb. A value of 0 or less means no limit.
func snapshotBytes(value string) (int64, error) {
	n, err := number(value, math.MinInt32, 1<<40)
	if n <= 0 {
		return math.MaxInt64, err
	}
	return n << 10, err
}

func authKeys() map[string]setter {
	return map[string]setter{
		"DigestAuthenticationProvider.superDigest": into(digest, func(c *ServerConfig) *string { return &c.Server.SuperDigest }),
		"DigestAuthenticationProvider.digestAlg":   only("SHA1", "this server supports only SHA1 for digests"),
		"DigestAuthenticationProvider.enabled":     only("true", "this server cannot disable the scheme digest"),
		"superUser":                                (*ServerConfig).superUser,
		"X509AuthenticationProvider.superUser":     into(text, func(c *ServerConfig) *string { return &c.Server.X509SuperUser }),
		"SASLAuthenticationProvider.superPassword": into(text, func(c *ServerConfig) *string { return &c.SuperPassword }),
		"java.security.auth.login.config":          path("java.security.auth.login.config", func(c *ServerConfig) *string { return &c.JAAS }),
		"sasl.serverconfig":                        into(text, func(c *ServerConfig) *string { return &c.Section }),
		"sessionRequireClientSASLAuth":             into(boolean, func(c *ServerConfig) *bool { return &c.Server.RequireSASL }),
		"enforce.auth.enabled":                     into(boolean, func(c *ServerConfig) *bool { return &c.enforce }),
		"enforce.auth.schemes": func(c *ServerConfig, _ int, value string) error {
			c.schemes = words(value)
			return nil
		},
		"skipACL": func(c *ServerConfig, line int, value string) (err error) {
			switch c.Server.SkipACL, err = yesOrNo(value); {
			case c.Server.SkipACL && value != "yes":
				return fmt.Errorf("ZooKeeper ignores %q and checks ACLs: write yes or no", value)
			case c.Server.SkipACL:
				c.note(Note{Line: line, Warning: true, Text: "with skipACL, every client may do everything"})
			}
			return err
		},
		"ensembleAuthName": func(c *ServerConfig, _ int, value string) error {
			if c.Server.EnsembleNames = words(value); c.Server.EnsembleNames == nil {
				return errors.New("it names no ensemble: ZooKeeper then refuses every client that names one")
			}
			return nil
		},
		"letAnySaslUserDoX": func(*ServerConfig, int, string) error {
			return errors.New("this server has no name for all SASL users: name the users in the ACLs, and remove the line")
		},
		"allowSaslFailedClients": only("false", "this server disconnects a client whose SASL authentication fails"),
	}
}

// superUser handles superUser and superUser.*.
func (c *ServerConfig) superUser(_ int, value string) error {
	if value != "" {
		c.Server.SuperUsers = append(c.Server.SuperUsers, value)
	}
	return nil
}

// only accepts only the value that this server has.
func only(want, why string) setter {
	return func(_ *ServerConfig, _ int, value string) error {
		if !strings.EqualFold(value, want) {
			return fmt.Errorf("%.100q is not supported: %s", value, why)
		}
		return nil
	}
}

func otherKeys() map[string]setter {
	return map[string]setter{
		"4lw.commands.whitelist":                 (*ServerConfig).whitelist,
		"extendedTypesEnabled":                   into(boolean, func(c *ServerConfig) *bool { return &c.Server.ExtendedTypes }),
		"znode.container.checkIntervalMs":        into(span(1), func(c *ServerConfig) *time.Duration { return &c.Server.ContainerCheckInterval }),
		"znode.container.maxNeverUsedIntervalMs": into(span(0), func(c *ServerConfig) *time.Duration { return &c.Server.ContainerNeverUsed }),
		"datadir.autocreate":                     only("true", "this server always creates a missing data directory; remove the line"),
		"db.autocreate":                          only("true", "this server starts empty if the data directory has no data; remove the line"),
		"emulate353TTLNodes":                     only("false", "this server has only the TTL nodes of ZooKeeper 3.5.4 and later"),
		"testingonly.initialZxid":                only("0", "a new data directory starts at transaction 0"),
		"reconfigEnabled":                        into(boolean, func(c *ServerConfig) *bool { return &c.Server.ReconfigEnabled }),
		"enforceQuota":                           into(boolean, func(c *ServerConfig) *bool { return &c.Server.EnforceQuota }),
		"audit.enable":                           into(boolean, func(c *ServerConfig) *bool { return &c.Server.Audit }),
	}
}

// whitelist parses the list of allowed four-letter words. It ignores words that this
// server does not have, as Java ignores unknown words.
func (c *ServerConfig) whitelist(line int, value string) error {
	known := zkserver.FourLetterWords()
	for _, w := range words(value) {
		if w == "*" || slices.Contains(known, w) {
			c.Server.FourLetterWords = append(c.Server.FourLetterWords, w)
			continue
		}
		c.note(Note{Line: line, Warning: true, Text: "the four-letter word " + shown(w) + " is unknown"})
	}
	return nil
}

// prefixSetter handles keys that begin with a prefix.
type prefixSetter func(c *ServerConfig, line int, key, value string) error

func knownPrefixes() map[string]prefixSetter {
	return map[string]prefixSetter{
		"authProvider.":    (*ServerConfig).provider,
		"metricsProvider.": (*ServerConfig).metricsKey,
		"superUser.":       func(c *ServerConfig, line int, _, value string) error { return c.superUser(line, value) },
	}
}

// provider handles authProvider.*, whose value is a Java class.
func (c *ServerConfig) provider(line int, key, value string) error {
	class := value[strings.LastIndexByte(value, '.')+1:]
	switch class {
	case "SASLAuthenticationProvider":
		c.Server.AuthProviders = append(c.Server.AuthProviders, "sasl")
	case "X509AuthenticationProvider":
		c.Server.AuthProviders = append(c.Server.AuthProviders, "x509")
	case "EnsembleAuthenticationProvider":
		c.Server.AuthProviders = append(c.Server.AuthProviders, "ensemble")
	case "DigestAuthenticationProvider", "IPAuthenticationProvider":
		c.note(Note{Line: line, Text: shown(key) + " has no effect: " + class + " is there anyway"})
	default:
		c.note(Note{Line: line, Warning: true, Text: shown(key) + ": this server cannot load the Java class " + shown(value) + ", so no client can have an identity of its scheme"})
	}
	return nil
}

// defaultTick is the tick if the file sets none, as ZooKeeperServer.DEFAULT_TICK_TIME. The
// sample zoo.cfg of ZooKeeper sets a shorter one.
const defaultTick = 3 * time.Second

// finish handles settings that depend on several keys.
func (c *ServerConfig) finish() error {
	if c.enforce {
		if len(c.schemes) == 0 {
			return errors.New("enforce.auth.enabled is true, but enforce.auth.schemes names no scheme, such as sasl or x509")
		}
		known := []string{"ip", "digest", "sasl", "x509"}
		for _, s := range c.schemes {
			if !slices.Contains(known, s) {
				return fmt.Errorf("enforce.auth.schemes names %.100q: use some of %s",
					s, strings.Join(known, ", "))
			}
		}
		c.Server.EnforceAuthSchemes = c.schemes
	} else if len(c.schemes) > 0 {
		c.note(Note{Warning: true, Text: "enforce.auth.schemes has no effect without enforce.auth.enabled=true"})
	}
	if len(c.Server.EnsembleNames) > 0 && !slices.Contains(c.Server.AuthProviders, "ensemble") {
		c.note(Note{Warning: true, Text: "ensembleAuthName has no effect without an authProvider.N of EnsembleAuthenticationProvider"})
	}
	if c.Server.TickTime == 0 {
		c.Server.TickTime = defaultTick
	}
	if c.ClientAddress != "" && c.ClientPort == 0 {
		return errors.New("clientPortAddress is set, but clientPort is not: set clientPort, or remove clientPortAddress")
	}
	if c.SecureAddress != "" && c.SecurePort == 0 {
		return errors.New("secureClientPortAddress is set, but secureClientPort is not: set secureClientPort, or remove secureClientPortAddress")
	}
	if (c.SecurePort != 0 || c.Unify) && !c.TLS.Configured() {
		return errors.New("TLS needs ssl.keyStore.location, the file with the server's certificate")
	}
	if err := c.checkTimeouts(); err != nil {
		return err
	}
	c.finishMetrics()
	slices.SortStableFunc(c.Notes, func(a, b Note) int { return a.Line - b.Line })
	return nil
}

// checkTimeouts returns an error if the limits of the session timeout contradict each
// other. The error uses the names of the keys.
func (c *ServerConfig) checkTimeouts() error {
	s := &c.Server
	least := cmp.Or(s.MinSessionTimeout, 2*s.TickTime)
	if s.MaxSessionTimeout == 0 || least <= s.MaxSessionTimeout {
		return nil
	}
	what := fmt.Sprintf("minSessionTimeout=%d", least.Milliseconds())
	if s.MinSessionTimeout == 0 {
		what = fmt.Sprintf("minSessionTimeout, which is twice tickTime=%d unless it is set,", s.TickTime.Milliseconds())
	}
	return fmt.Errorf("%s is above maxSessionTimeout=%d: raise maxSessionTimeout, or lower minSessionTimeout or tickTime", what, s.MaxSessionTimeout.Milliseconds())
}
