package tree

import (
	"crypto/rand"
	"io"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// ZooKeeper's own defaults.
const (
	defaultTick              = 3000 // ms, ZooKeeperServer.DEFAULT_TICK_TIME
	defaultContainerInterval = time.Minute
	defaultServerID          = 1
)

// Config configures a Tree. The zero value is ZooKeeper's default configuration with
// the fixes of 3.9.
type Config struct {
	// Tick is ZooKeeper's tickTime in milliseconds; below 1 means 3000. It only
	// determines the defaults of the two limits below.
	Tick int32
	// MinTimeout and MaxTimeout limit the negotiated session timeout, in
	// milliseconds; below 1 means 2 and 20 ticks.
	MinTimeout int32
	MaxTimeout int32
	// MaxFrame is the maximum length of a request in bytes; below 1 means
	// wire.DefaultMaxFrame. A longer one closes the connection.
	MaxFrame int
	// ServerID is the top byte of session IDs. Java uses 0x80 and 0xff there for
	// containers and TTL nodes, so any value other than 1 to 127 means 1.
	ServerID int
	// InitialZxid is the last transaction id of a new tree, with the epoch in its
	// upper 32 bits. A server that does not keep its data must start higher than any
	// earlier value. Otherwise its old clients cannot reconnect, and fencing tokens
	// repeat. Zero or a negative value means zero, as in a new ZooKeeper.
	InitialZxid int64
	// SuperDigest is the "super:BASE64" of the identity that bypasses all access
	// control (zookeeper.DigestAuthenticationProvider.superDigest). Empty means none.
	SuperDigest string
	// SASLUsers has the passwords of the users for SASL with DIGEST-MD5, as in the
	// Server section of a JAAS file in Java. Nil refuses SASL. The Tree keeps the
	// map, which must not be changed.
	SASLUsers map[string]string
	// SuperUsers are the SASL users that bypass all access control
	// (zookeeper.superUser and zookeeper.superUser.*). Empty means none.
	SuperUsers []string
	// EnsembleNames are the names that the scheme ensemble accepts
	// (zookeeper.ensembleAuthName), if AuthProviders has it. Empty accepts all.
	EnsembleNames []string
	// X509SuperUser is the subject of client certificates whose owners bypass all
	// access control (zookeeper.X509AuthenticationProvider.superUser), in the form of
	// Peer.X509. Empty means none.
	X509SuperUser string
	// AuthProviders are the schemes other than world, auth, ip, and digest that
	// access control lists may contain: "sasl", "x509" (zookeeper.authProvider.*).
	// Lists with other schemes are refused, because no client could have such an
	// identity. Nil means sasl if there are SASLUsers, and x509 if there is an
	// X509SuperUser. A client with a certificate may always use x509.
	AuthProviders []string
	// EnforceAuthSchemes requires every connection to have an identity of one of
	// these schemes before any request except authentication
	// (zookeeper.enforce.auth.enabled with enforce.auth.schemes). Without one, a
	// request is answered with ErrSessionClosedRequireSASL, and the connection is
	// closed. Empty requires nothing.
	EnforceAuthSchemes []string
	// RequireSASL is equivalent to EnforceAuthSchemes with only sasl, and overrides
	// it (zookeeper.sessionRequireClientSASLAuth).
	RequireSASL bool
	// SkipACL permits everything to everyone (zookeeper.skipACL). Lists are checked
	// and stored nevertheless.
	SkipACL bool
	// ExtendedTypes permits TTL nodes (zookeeper.extendedTypesEnabled). Without it,
	// their creation is answered with ErrUnimplemented.
	ExtendedTypes bool
	// ReconfigEnabled changes only the error that refuses a reconfiguration:
	// ErrUnimplemented, as by a standalone server, instead of ErrReconfigDisabled.
	ReconfigEnabled bool
	// EnforceQuota refuses changes that exceed the hard limits of a quota, with
	// ErrQuotaExceeded (zookeeper.enforceQuota). Without it, usage is only counted.
	EnforceQuota bool
	// ContainerInterval is the interval between searches for empty containers and
	// expired TTL nodes; below 1 means a minute.
	ContainerInterval time.Duration
	// MaxNodes is the maximum number of nodes, including the tree's own four; below 1
	// means 10,000,000. A change that exceeds this or one of the next three limits is
	// refused with ErrQuotaExceeded. Deletions and reductions are never refused, nor
	// are records and snapshots.
	MaxNodes int
	// MaxData is the maximum size in bytes of the paths, data, and access control
	// lists of all nodes; below 1 means 4 GiB. Watched paths may have an eighth of it in
	// addition, which connections and addresses share as they share MaxWatches.
	MaxData int64
	// MaxWatches is the maximum number of watches of all connections, as ZooKeeper
	// counts them; below 1 means 2,000,000. A setWatches that exceeds this or the
	// next limit closes its connection, because watches must not be lost silently.
	MaxWatches int
	// MaxWatchesPerConn is the maximum number of paths that one connection watches;
	// below 1 means as many as are free for all. The latter limits each address in
	// any case. The last eighth is reserved for connections with few watches.
	MaxWatchesPerConn int
	// MaxSessions is the maximum number of sessions; below 1 means 1,000,000. An
	// address may have as many as are free for all, and the last eighth is reserved
	// for addresses with few. A client that would exceed this is closed without an
	// answer.
	MaxSessions int
	// MaxReply is the maximum size in bytes of the answer to a read; below 1 means 32
	// MiB. Each name in a list of children counts 96 bytes more than its length. A
	// longer answer is replaced by ErrQuotaExceeded. A multi of several changes is
	// refused too if persistent watches would get events of more than twice this size
	// for them.
	MaxReply int
	// LongReply is the size in bytes from which the answer to a read needs a buffer of the
	// caller, see Tree.LendBuffer; below 1 means none does.
	LongReply int
	// NeverUsed is how long, in milliseconds, a container that never had a child
	// stays after its last change (znode.container.maxNeverUsedIntervalMs); below 1
	// means forever.
	NeverUsed int64
	// Rand provides session passwords; nil means crypto/rand. If it fails, Connect
	// refuses new sessions.
	Rand io.Reader
}

// withDefaults returns the configuration with defaults for zero values.
func (c Config) withDefaults() Config {
	if c.Tick < 1 {
		c.Tick = defaultTick
	}
	if c.MinTimeout < 1 {
		c.MinTimeout = c.Tick * 2
	}
	if c.MaxTimeout < 1 {
		c.MaxTimeout = c.Tick * 20
	}
	c.MaxTimeout = max(c.MaxTimeout, c.MinTimeout)
	if c.MaxFrame < 1 {
		c.MaxFrame = wire.DefaultMaxFrame
	}
	if c.ServerID < 1 || c.ServerID > 127 {
		c.ServerID = defaultServerID
	}
	c.InitialZxid = max(c.InitialZxid, 0)
	if c.RequireSASL {
		c.EnforceAuthSchemes = []string{schemeSASL}
	}
	if c.ContainerInterval < 1 {
		c.ContainerInterval = defaultContainerInterval
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	c.withDefaultLimits()
	return c
}
