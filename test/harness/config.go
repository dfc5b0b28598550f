package harness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ServerConfig has the settings of zoo.cfg that tests vary. The zero value gives
// a server with short ticks that is quick to start.
type ServerConfig struct {
	// TickTime is the server's tick; sessions last 2 to 20 of them. Zero means
	// 500 ms. Whole milliseconds.
	TickTime time.Duration
	// InitLimit and SyncLimit bound, in ticks, how long a follower may take to
	// join and to answer. Zero means 20 and 5 ticks.
	InitLimit, SyncLimit int
	// SuperDigest is "super:" and the base64 SHA-1 of "super:password". Empty
	// means that there is no super user.
	SuperDigest string
	// ForceSync makes the server sync its log before it answers, as in
	// production. Off, an acknowledged write survives SIGKILL all the same, for
	// the page cache does.
	ForceSync bool
	// ReconfigEnabled allows the reconfig operation.
	ReconfigEnabled bool
	// Extra holds further zoo.cfg lines by key; they win over all others.
	Extra map[string]string
	// Release is [Release34] or [Release39]; empty means the release that Debian installed.
	Release string
	// JavaFlags are put before the class name on the command line of java.
	JavaFlags []string
}

// Releases of ZooKeeper that tests start besides the one that Debian installed.
const (
	Release34 = "3.4"
	Release39 = "3.9"
)

// member is one server's line in an ensemble's configuration.
type member struct {
	id                    int
	host                  string // the address that the other servers use
	quorumPort, electPort int
	observer              bool
}

// file returns the text of zoo.cfg for a server with its data in dir, which
// listens for clients at host and port, in an ensemble of members (none:
// standalone).
func (c ServerConfig) file(dir, host string, port int, members []member) string {
	onOff := map[bool]string{true: "yes", false: "no"}
	keys := map[string]string{
		"tickTime":                 fmt.Sprint(cmp.Or(c.TickTime, 500*time.Millisecond).Milliseconds()),
		"initLimit":                fmt.Sprint(cmp.Or(c.InitLimit, 20)),
		"syncLimit":                fmt.Sprint(cmp.Or(c.SyncLimit, 5)),
		"dataDir":                  dir,
		"clientPort":               fmt.Sprint(port),
		"clientPortAddress":        host,
		"admin.enableServer":       "false",
		"4lw.commands.whitelist":   "*",
		"extendedTypesEnabled":     "true",
		"maxClientCnxns":           "0",
		"forceSync":                onOff[c.ForceSync],
		"reconfigEnabled":          fmt.Sprint(c.ReconfigEnabled),
		"preAllocSize":             "1024", // KiB, not the 64 MiB of production
		"autopurge.purgeInterval":  "0",
		"fsync.warningthresholdms": "5000",
	}
	if c.SuperDigest != "" {
		keys["DigestAuthenticationProvider.superDigest"] = c.SuperDigest
	}
	for _, m := range members {
		keys[fmt.Sprintf("server.%d", m.id)] = fmt.Sprintf("%s:%d:%d", m.host, m.quorumPort, m.electPort)
		if m.observer {
			keys[fmt.Sprintf("server.%d", m.id)] += ":observer"
		}
	}
	maps.Copy(keys, c.Extra)
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, "%s=%s\n", key, keys[key])
	}
	return b.String()
}
