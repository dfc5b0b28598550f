package harness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ServerConfig has the settings of zoo.cfg that tests vary. A server with the zero value has
// short ticks and starts quickly.
type ServerConfig struct {
	// TickTime is the server's tick in whole milliseconds. Session timeouts are 2 to 20 ticks.
	// Zero means 500 ms.
	TickTime time.Duration
	// InitLimit and SyncLimit are the ticks that a follower may take to connect, and to
	// answer. Zero means 20 and 5 ticks.
	InitLimit, SyncLimit int
	// SuperDigest is "super:" and the base64 SHA-1 of "super:password". Empty
	// means that there is no super user.
	SuperDigest string
	// ForceSync makes the server sync its log before it answers, as in production. Without it,
	// an acknowledged write still survives SIGKILL, because the page cache does.
	ForceSync bool
	// ReconfigEnabled allows the reconfig operation.
	ReconfigEnabled bool
	// Extra has other lines of zoo.cfg by key. They override all other fields.
	Extra map[string]string
	// Release is [Release34] or [Release39]; empty means the release that Debian installed.
	Release string
	// JavaFlags are flags of java.
	JavaFlags []string
}

// Other releases of ZooKeeper that tests start.
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

// file returns the text of zoo.cfg for a server with its data in dir that listens for clients
// on host and port. Without members, the server is standalone.
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
