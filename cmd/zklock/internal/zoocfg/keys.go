package zoocfg

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/zkserver"
)

// setter takes the value of one key, from a line of the file.
type setter func(c *Config, line int, value string) error

// knownKeys are the keys that have a meaning here, without prefix.
func knownKeys() map[string]setter {
	keys := map[string]setter{}
	for _, group := range []map[string]setter{placeKeys(), limitKeys(), storageKeys(), authKeys(), otherKeys()} {
		for key, set := range group {
			keys[key] = set
		}
	}
	return keys
}

// into makes a setter of a function that reads a value and the place for it.
func into[T any](read func(string) (T, error), place func(*Config) *T) setter {
	return func(c *Config, _ int, value string) error {
		v, err := read(value)
		if err == nil {
			*place(c) = v
		}
		return err
	}
}

// count reads a whole number that fits an int.
func count(least, most int64) func(string) (int, error) {
	return func(value string) (int, error) {
		n, err := number(value, least, most)
		return int(n), err
	}
}

// span reads a time in milliseconds.
func span(least int64) func(string) (time.Duration, error) {
	return func(value string) (time.Duration, error) { return milliseconds(value, least) }
}

// text takes a value as it is.
func text(value string) (string, error) { return value, nil }

// path takes the name of a file or directory. ZooKeeper takes one that is not
// absolute from where it was started, and warns about it.
func path(key string, place func(*Config) *string) setter {
	return func(c *Config, line int, value string) error {
		full, err := absolute(value)
		if err == nil && !filepath.IsAbs(value) {
			c.note(Note{Line: line, Warning: true, Text: key + " is " + shown(value) + ", taken from where the server was started: " + shown(full)})
		}
		*place(c) = full
		return err
	}
}

func placeKeys() map[string]setter {
	return map[string]setter{
		"dataDir":                 path("dataDir", func(c *Config) *string { return &c.Server.DataDir }),
		"clientPort":              into(count(0, 65535), func(c *Config) *int { return &c.ClientPort }),
		"clientPortAddress":       into(host, func(c *Config) *string { return &c.ClientAddress }),
		"secureClientPort":        into(count(0, 65535), func(c *Config) *int { return &c.SecurePort }),
		"secureClientPortAddress": into(host, func(c *Config) *string { return &c.SecureAddress }),
		"client.portUnification":  into(boolean, func(c *Config) *bool { return &c.Unify }),
	}
}

func limitKeys() map[string]setter {
	return map[string]setter{
		"tickTime":                   into(span(1), func(c *Config) *time.Duration { return &c.Server.TickTime }),
		"minSessionTimeout":          into(span(-1), func(c *Config) *time.Duration { return &c.Server.MinSessionTimeout }),
		"maxSessionTimeout":          into(span(-1), func(c *Config) *time.Duration { return &c.Server.MaxSessionTimeout }),
		"nio.sessionlessCnxnTimeout": into(span(1), func(c *Config) *time.Duration { return &c.Server.HandshakeTimeout }),
		"maxClientCnxns":             into(perAddress, func(c *Config) *int { return &c.Server.MaxClientConns }),
		"maxCnxns":                   into(inAll, func(c *Config) *int { return &c.Server.MaxConns }),
		"jute.maxbuffer":             into(count(64, 256<<20), func(c *Config) *int { return &c.Server.MaxFrame }),
		"globalOutstandingLimit": func(c *Config, line int, value string) (err error) {
			c.note(Note{Line: line, Text: "globalOutstandingLimit bounds the requests of each connection here, not of all together"})
			c.Server.MaxOutstanding, err = count(1, most32)(value)
			return err
		},
	}
}

// perAddress reads maxClientCnxns. Nothing above 0 means no limit.
func perAddress(value string) (int, error) {
	n, err := number(value, math.MinInt32, most32)
	if n <= 0 {
		n = -1
	}
	return int(n), err
}

// inAll reads maxCnxns. Nothing above 0 means no limit, here written as 0.
func inAll(value string) (int, error) {
	n, err := number(value, math.MinInt32, most32)
	return int(max(n, 0)), err
}

func storageKeys() map[string]setter {
	return map[string]setter{
		"snapCount":         into(count(1, most32), func(c *Config) *int { return &c.Server.SnapshotRecords }),
		"snapSizeLimitInKb": into(snapshotBytes, func(c *Config) *int64 { return &c.Server.SnapshotBytes }),
		"forceSync": func(c *Config, line int, value string) error {
			sync, err := boolean(value)
			if c.Server.NoSync = !sync; c.Server.NoSync && err == nil {
				c.note(Note{Line: line, Warning: true, Text: "with forceSync=no a loss of power loses acknowledged writes and locks that are held"})
			}
			return err
		},
		"dataLogDir": func(c *Config, line int, value string) error {
			c.note(Note{Line: line, Warning: true, Text: "dataLogDir has no effect: the log is in dataDir beside the snapshots; put dataDir on the faster disk"})
			return nil
		},
		"autopurge.snapRetainCount": func(c *Config, line int, value string) error {
			n, err := number(value, 0, most32)
			if n < 3 && err == nil {
				c.note(Note{Line: line, Text: "autopurge.snapRetainCount is 3 at least, as in ZooKeeper"})
			}
			c.Server.SnapshotsKept = int(max(n, 3))
			return err
		},
		"autopurge.purgeInterval": func(c *Config, line int, value string) error {
			_, err := number(value, math.MinInt32, most32)
			c.note(Note{Line: line, Text: "autopurge.purgeInterval has no effect: what is too old is removed after each snapshot"})
			return err
		},
	}
}

// snapshotBytes reads snapSizeLimitInKb, where nothing above 0 means no limit.
func snapshotBytes(value string) (int64, error) {
	n, err := number(value, math.MinInt32, 1<<40)
	if n <= 0 {
		return math.MaxInt64, err
	}
	return n << 10, err
}

func authKeys() map[string]setter {
	return map[string]setter{
		"DigestAuthenticationProvider.superDigest": into(digest, func(c *Config) *string { return &c.Server.SuperDigest }),
		"DigestAuthenticationProvider.digestAlg":   only("SHA1", "digests of identities are of SHA1 here"),
		"DigestAuthenticationProvider.enabled":     only("true", "the scheme digest cannot be turned off here"),
		"superUser":                                (*Config).superUser,
		"X509AuthenticationProvider.superUser":     into(text, func(c *Config) *string { return &c.Server.X509SuperUser }),
		"SASLAuthenticationProvider.superPassword": into(text, func(c *Config) *string { return &c.superSecret }),
		"java.security.auth.login.config":          path("java.security.auth.login.config", func(c *Config) *string { return &c.JAAS }),
		"sasl.serverconfig":                        into(text, func(c *Config) *string { return &c.Section }),
		"sessionRequireClientSASLAuth":             into(boolean, func(c *Config) *bool { return &c.Server.RequireSASL }),
		"enforce.auth.enabled":                     into(boolean, func(c *Config) *bool { return &c.enforce }),
		"enforce.auth.schemes": func(c *Config, _ int, value string) error {
			c.schemes = words(value)
			return nil
		},
		"skipACL": func(c *Config, line int, value string) (err error) {
			if c.Server.SkipACL, err = boolean(value); c.Server.SkipACL {
				c.note(Note{Line: line, Warning: true, Text: "with skipACL everybody who can connect may do everything"})
			}
			return err
		},
		"ensembleAuthName": func(c *Config, _ int, value string) error {
			c.Server.EnsembleNames = words(value)
			return nil
		},
		"letAnySaslUserDoX": func(*Config, int, string) error {
			return errors.New("no name stands for every SASL user here: name the users in the ACLs, and take the line out")
		},
		"allowSaslFailedClients": only("false", "a client whose SASL fails is cut off here"),
	}
}

// superUser takes superUser, and each superUser.*.
func (c *Config) superUser(_ int, value string) error {
	if value != "" {
		c.Server.SuperUsers = append(c.Server.SuperUsers, value)
	}
	return nil
}

// only takes the one value that holds here.
func only(want, why string) setter {
	return func(_ *Config, _ int, value string) error {
		if !strings.EqualFold(value, want) {
			return fmt.Errorf("%.100q is not possible: %s", value, why)
		}
		return nil
	}
}

func otherKeys() map[string]setter {
	return map[string]setter{
		"4lw.commands.whitelist":                 (*Config).whitelist,
		"extendedTypesEnabled":                   into(boolean, func(c *Config) *bool { return &c.Server.ExtendedTypes }),
		"znode.container.checkIntervalMs":        into(span(1), func(c *Config) *time.Duration { return &c.Server.ContainerCheckInterval }),
		"znode.container.maxNeverUsedIntervalMs": into(span(0), func(c *Config) *time.Duration { return &c.Server.ContainerNeverUsed }),
		"datadir.autocreate":                     only("true", "a missing data directory is created; take the line out"),
		"db.autocreate":                          only("true", "a data directory without data begins empty; take the line out"),
		"emulate353TTLNodes":                     only("false", "nodes with a time to live are those of ZooKeeper 3.5.4 and later"),
		"testingonly.initialZxid":                only("0", "a new data directory begins at transaction 0"),
		"reconfigEnabled":                        into(boolean, func(c *Config) *bool { return &c.Server.ReconfigEnabled }),
		"enforceQuota":                           into(boolean, func(c *Config) *bool { return &c.Server.EnforceQuota }),
		"audit.enable":                           into(boolean, func(c *Config) *bool { return &c.Server.Audit }),
	}
}

// whitelist takes the list of allowed four-letter words. Those that only Java
// has are left out: Java passes over what it does not know.
func (c *Config) whitelist(line int, value string) error {
	known := zkserver.FourLetterWords()
	for _, w := range words(value) {
		if w == "*" || slices.Contains(known, w) {
			c.Server.FourLetterWords = append(c.Server.FourLetterWords, w)
			continue
		}
		c.note(Note{Line: line, Warning: true, Text: "the four-letter word " + shown(w) + " is not known here"})
	}
	return nil
}

// prefixSetter takes keys that begin with a prefix.
type prefixSetter func(c *Config, line int, key, value string) error

func knownPrefixes() map[string]prefixSetter {
	return map[string]prefixSetter{
		"authProvider.":    (*Config).provider,
		"metricsProvider.": (*Config).metricsKey,
		"superUser.":       func(c *Config, line int, _, value string) error { return c.superUser(line, value) },
	}
}

// provider takes an authProvider.*, whose value is a class of Java.
func (c *Config) provider(line int, key, value string) error {
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
		c.note(Note{Line: line, Warning: true, Text: shown(key) + ": the class " + shown(value) + " of Java cannot be loaded here, so nobody can have identities of its scheme"})
	}
	return nil
}

// defaultTick is the tick of a file that does not set one, as
// ZooKeeperServer.DEFAULT_TICK_TIME: longer than that of ZooKeeper's sample.
const defaultTick = 3 * time.Second

// finish settles what several keys say together.
func (c *Config) finish() error {
	if c.enforce {
		if len(c.schemes) == 0 {
			return errors.New("enforce.auth.enabled is true and enforce.auth.schemes names no scheme, such as sasl or x509")
		}
		c.Server.EnforceAuthSchemes = c.schemes
	}
	if c.Server.TickTime == 0 {
		c.Server.TickTime = defaultTick
	}
	if c.ClientAddress != "" && c.ClientPort == 0 && c.SecurePort != 0 {
		c.note(Note{Warning: true, Text: "clientPortAddress has no effect without clientPort"})
	}
	if c.SecureAddress != "" && c.SecurePort == 0 {
		return errors.New("secureClientPortAddress is set and secureClientPort is not")
	}
	if (c.SecurePort != 0 || c.Unify) && !c.TLS.Configured() {
		return errors.New("TLS is asked for, and ssl.keyStore.location does not say where the server's certificate is")
	}
	c.finishMetrics()
	slices.SortStableFunc(c.Notes, func(a, b Note) int { return a.Line - b.Line })
	return nil
}
