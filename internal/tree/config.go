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

// Config says how a Tree behaves. The zero value is ZooKeeper's default
// configuration, with the mended behaviour of 3.9.
type Config struct {
	// Tick is ZooKeeper's tickTime in milliseconds; below 1 means 3000. It only
	// sets the defaults of the two bounds below.
	Tick int32
	// MinTimeout and MaxTimeout bound the session timeout that a client gets,
	// in milliseconds; below 1 means 2 and 20 ticks.
	MinTimeout int32
	MaxTimeout int32
	// MaxFrame is the longest request in bytes; below 1 means
	// wire.DefaultMaxFrame. A longer one closes the connection.
	MaxFrame int
	// ServerID becomes the top byte of session ids. Java writes 0x80 and 0xff
	// there for containers and TTL nodes, so anything but 1 to 127 means 1.
	ServerID int
	// InitialZxid is the last transaction id of a new tree, the epoch in its
	// upper 32 bits. A server that does not keep its data must start higher
	// than it ever was, or its old clients can't come back and fencing tokens
	// repeat. Zero, and what is negative, means zero, as a new ZooKeeper has.
	InitialZxid int64
	// SuperDigest is the "super:BASE64" of the identity that bypasses all
	// access control (zookeeper.DigestAuthenticationProvider.superDigest).
	// Empty means that nobody does.
	SuperDigest string
	// SASLUsers are the passwords of those who may authenticate by SASL with
	// DIGEST-MD5, by user: what Java reads from the Server section of a JAAS
	// file. Nil refuses SASL. The map is kept and must not be changed.
	SASLUsers map[string]string
	// SuperUsers are the SASL users who bypass all access control
	// (zookeeper.superUser and zookeeper.superUser.*). Empty means that nobody does.
	SuperUsers []string
	// EnsembleNames are the names that the scheme ensemble accepts
	// (zookeeper.ensembleAuthName), if AuthProviders has it. Empty accepts all.
	EnsembleNames []string
	// X509SuperUser is the subject of client certificates whose owners bypass
	// all access control (zookeeper.X509AuthenticationProvider.superUser), in
	// the form of Peer.X509. Empty means nobody.
	X509SuperUser string
	// AuthProviders are the schemes besides world, auth, ip and digest that may
	// stand in access control lists: "sasl", "x509" (zookeeper.authProvider.*).
	// Lists with others are refused, for nobody could ever have such an
	// identity. Nil means sasl if there are SASLUsers, and x509 if there is an
	// X509SuperUser; whoever has a client certificate may name x509 in any case.
	AuthProviders []string
	// EnforceAuthSchemes demands of every connection an identity of one of these
	// schemes before any request but those that authenticate
	// (zookeeper.enforce.auth.enabled with enforce.auth.schemes). Without one the
	// request is answered with ErrSessionClosedRequireSASL, and the connection
	// closed. Empty demands nothing.
	EnforceAuthSchemes []string
	// RequireSASL is EnforceAuthSchemes with sasl alone, and wins over it
	// (zookeeper.sessionRequireClientSASLAuth).
	RequireSASL bool
	// SkipACL lets everybody do everything (zookeeper.skipACL). Lists are
	// checked and stored nevertheless.
	SkipACL bool
	// ExtendedTypes lets clients create TTL nodes
	// (zookeeper.extendedTypesEnabled); without it such a create is answered
	// with ErrUnimplemented.
	ExtendedTypes bool
	// ReconfigEnabled changes only the error by which a reconfiguration is
	// refused: ErrUnimplemented as by a standalone server, instead of
	// ErrReconfigDisabled.
	ReconfigEnabled bool
	// EnforceQuota refuses what the hard limits of a quota forbid, with
	// ErrQuotaExceeded (zookeeper.enforceQuota). Without it quotas are counted
	// and no more.
	EnforceQuota bool
	// ContainerInterval is how often empty containers and TTL nodes that are
	// over are looked for; below 1 means a minute.
	ContainerInterval time.Duration
	// MaxNodes bounds the nodes, the tree's own four included; below 1 means
	// 10,000,000. What would exceed this or one of the next three is refused
	// with ErrQuotaExceeded; what deletes or shrinks never is, nor are records
	// and snapshots.
	MaxNodes int
	// MaxData bounds the bytes of all nodes' paths, data and lists of
	// permissions and of the paths watched; below 1 means 4 GiB.
	MaxData int64
	// MaxWatches bounds the watches of all connections, as ZooKeeper counts
	// them; below 1 means 2,000,000. A setWatches that would exceed this or the
	// next closes its connection: watches must not be lost without a word.
	MaxWatches int
	// MaxWatchesPerConn bounds the paths that one connection watches; below 1
	// means as many as are free for all. That bounds each address in any case. The
	// last eighth is for connections with few.
	MaxWatchesPerConn int
	// MaxSessions bounds the sessions; below 1 means 1,000,000. An address may have
	// as many as are free for all, and the last eighth is for addresses with few. A
	// client that would get one more is closed without an answer.
	MaxSessions int
	// MaxReply bounds the bytes of the answer to a read; below 1 means 32 MiB, and
	// each name in a list of children counts 96 bytes more than it has. A
	// longer one is answered with ErrQuotaExceeded, and so is a multi of whose changes
	// lasting watches would hear in more than twice as many. If something
	// that can't be refused has twice as many, as the end of a session with many
	// nodes, the connections for which there is no room are closed.
	MaxReply int
	// NeverUsed is how long, in milliseconds, a container that never had a child stays
	// after its last change (znode.container.maxNeverUsedIntervalMs); below 1 means
	// for ever.
	NeverUsed int64
	// Rand gives session passwords; nil means crypto/rand. A Rand that fails
	// makes Connect refuse new sessions.
	Rand io.Reader
	// Compat38 brings back what releases after 3.8.0 mended, so that both can
	// be compared answer by answer: exists needs no READ permission,
	// a watch replaces another kind of watch of the same connection
	// on the same path, checkWatches finds the watches of others, and a recursive
	// watch tells of nodes that the client may not list, as in all releases.
	Compat38 bool
}

// withDefaults returns the configuration with every zero replaced.
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
