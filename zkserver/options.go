package zkserver

import (
	"log/slog"
	"net"
	"time"

	"github.com/zklock/zklock/internal/servertest"
)

// Options configures a Server. The zero value is a server in memory with the defaults of
// Apache ZooKeeper. Each field documents what zero means. New copies the struct, so later
// changes have no effect.
type Options struct {
	// DataDir is the directory of the log and the snapshots. New creates it if it is
	// missing, and locks it while the server runs. A relative path begins at the working
	// directory of the process during New. On Unix the directory must belong to the process's
	// user or to root, and no other user may be able to write to it, except members of its
	// group. Empty keeps everything in memory: nothing survives the Server. Transaction
	// ids, and thus fencing tokens, begin at 0 in a new directory, and at the wall clock in
	// memory.
	DataDir string

	// TickTime is ZooKeeper's tickTime, from which the limits of the session timeout
	// follow. 0 means 2 seconds, as in ZooKeeper's sample configuration. The minimum is 1
	// millisecond.
	TickTime time.Duration

	// MinSessionTimeout and MaxSessionTimeout bound the timeout that a client may
	// negotiate. 0 means 2 and 20 ticks.
	MinSessionTimeout, MaxSessionTimeout time.Duration

	// MaxClientConns limits the connections from one IP address, as maxClientCnxns does. 0
	// means 60; a negative value means no limit. The loopback counts as one address, and so
	// does an IPv6 network of 64 bits. On a unix socket, each user counts as one address, on
	// Linux, macOS, and FreeBSD; there is no limit for root and for the user of the process.
	// Connections from inside the process have no address and no limit.
	MaxClientConns int

	// MaxConns limits all connections, as maxCnxns does. 0 means no limit except the one
	// that always applies on Unix: connections leave an eighth of the process's descriptors
	// free, at least 8 and at most 128.
	MaxConns int

	// MaxFrame is the largest request in bytes, as jute.maxbuffer. A longer one closes its
	// connection. 0 means 0xfffff. The maximum is 256 MiB: the log has room for records of
	// twice that size, and the first bytes of TLS or of a four-letter word are never the
	// length of a permitted request.
	MaxFrame int

	// MaxOutstanding limits the requests of one connection that were read and not yet
	// answered. At the limit the server stops reading from that connection until it has
	// caught up. 0 means 1000.
	MaxOutstanding int

	// MaxUnread limits the bytes kept for a client that does not read its replies and
	// events. Beyond it the server closes the connection; the session lives until its
	// timeout. 0 means 16 MiB.
	MaxUnread int

	// MaxOutstandingTotal and MaxOutstandingBytes limit the requests of all connections
	// together that were read and not yet answered: their number, as
	// globalOutstandingLimit, and their bytes, as largeRequestMaxBytes. At either limit the
	// server stops reading from each connection that has an unanswered request until it has
	// caught up; it refuses nothing. 0 means 100,000 requests and 100 MiB.
	MaxOutstandingTotal int
	MaxOutstandingBytes int64

	// MaxUnreadTotal limits the bytes kept for all clients that have more than 64 KiB to
	// read. Beyond it the server closes the connections with the most kept bytes, as with
	// MaxUnread. A long reply is kept until the client has read almost all of it. 0 means
	// 1 GiB.
	MaxUnreadTotal int64

	// MaxNodes limits the nodes. 0 means 10,000,000. A request that would exceed this,
	// MaxData, MaxWatches, or MaxWatchesPerConn is refused with the error QuotaExceeded.
	// Requests that delete data or make it smaller are never refused.
	MaxNodes int

	// MaxData limits the bytes of all nodes' paths, data, and access control lists. 0 means
	// 4 GiB. Watched paths may have an eighth of it in addition, which connections and
	// addresses share as they share MaxWatches. The process needs more: about 300 bytes a
	// node, and the garbage collector's share.
	MaxData int64

	// MaxWatches limits the watches of all connections, and MaxWatchesPerConn the paths
	// that one connection watches. 0 means 2,000,000 in total, and for a connection as many
	// as are free in total, so that one connection takes at most half. The same applies to
	// each address, whatever MaxWatchesPerConn is. The last eighth of the total is reserved
	// for connections with few watches, at most an eight-thousandth of the total each,
	// however many watches other connections of their address have. If a client reconnects
	// and restores more, the server closes the connection: otherwise the client would wait
	// for watches that do not exist.
	MaxWatches, MaxWatchesPerConn int

	// MaxSessions limits the sessions. 0 means 1,000,000. An address may have as many as
	// are free in total, which is half if it is alone. The last eighth is reserved for
	// addresses with few sessions. Beyond the limit the server closes the connection in its
	// handshake.
	MaxSessions int

	// MaxReply limits the bytes of one reply. 0 means 32 MiB. In a list of children each
	// name counts 96 bytes more than its length. A longer reply, such as the list of a
	// million children, is replaced by the error QuotaExceeded. A reply to a write is never
	// replaced.
	//
	// A multi of several changes is refused with that error if its events would have more than
	// twice as many bytes, or take longer than 50,000 short ones. Each client counts once for each change,
	// and usually as less than half an event if it may not see the change. Each 160 bytes of a
	// path count as one more event. If the events of any other change take too long, because
	// clients have many identities or ACLs are long, or because they have more than 8 MB of
	// paths of 257 bytes to 64 KiB, the server closes connections of the addresses whose
	// watches cost the most. Their clients reconnect and read again.
	MaxReply int

	// KeepAlive is the interval of TCP keep-alive probes. After three unanswered probes the
	// connection ends. So the server finds dead links of established connections before a
	// long session timeout ends. 0 keeps what the listener set, which for those of package
	// net is 15 seconds. A negative value turns probes off.
	KeepAlive time.Duration

	// HandshakeTimeout limits the time from the accept of a connection to its connect
	// request. 0 means 10 seconds, as zookeeper.nio.sessionlessCnxnTimeout.
	HandshakeTimeout time.Duration

	// SuperDigest is the "super:BASE64" identity with all permissions, as
	// zookeeper.DigestAuthenticationProvider.superDigest. Empty means that no client has
	// it.
	SuperDigest string

	// SASLUsers maps the users that may authenticate by SASL with DIGEST-MD5 to their
	// passwords, as the Server section of a JAAS file. Nil or empty means that the server
	// refuses SASL. Names and passwords must not be empty.
	SASLUsers map[string]string

	// SuperUsers are the SASL users with all permissions, as zookeeper.superUser and
	// zookeeper.superUser.*. Nil or empty means none.
	SuperUsers []string

	// X509SuperUser is the subject of client certificates with all permissions, as
	// zookeeper.X509AuthenticationProvider.superUser, in the form of RFC 2253:
	// "CN=root,O=zk". Empty means none.
	X509SuperUser string

	// AuthProviders are the schemes that access control lists may name in addition to
	// world, auth, ip, and digest, as the keys authProvider.*: "sasl" and "x509".
	// "ensemble", which no list may name, is for EnsembleNames. Nil means sasl if there are
	// SASLUsers, and x509 if there is an X509SuperUser. A client with a certificate may
	// always name x509.
	AuthProviders []string

	// EnsembleNames are the names that this server accepts for its ensemble, as
	// zookeeper.ensembleAuthName. If AuthProviders contains "ensemble", the server closes
	// the connection of a client that sends another name by the scheme ensemble. Nil or
	// empty accepts all names.
	EnsembleNames []string

	// EnforceAuthSchemes requires each client to have an identity of one of these schemes
	// ("sasl", "digest", "x509", "ip") before any other request, as enforce.auth.enabled
	// with enforce.auth.schemes. A client without one gets error -124, and the server
	// closes its connection. Nil or empty requires nothing.
	EnforceAuthSchemes []string

	// RequireSASL has the effect of EnforceAuthSchemes with only sasl, whatever that field
	// contains, as sessionRequireClientSASLAuth. It needs SASLUsers.
	RequireSASL bool

	// SkipACL lets every client do everything, as skipACL. False, ZooKeeper's
	// default, keeps access control on.
	SkipACL bool

	// ExtendedTypes allows nodes with a time to live, as
	// zookeeper.extendedTypesEnabled. False, ZooKeeper's default, refuses them.
	ExtendedTypes bool

	// ReconfigEnabled makes reconfig fail as on a standalone server with
	// reconfigEnabled=true rather than as disabled. A server of one node never
	// reconfigures.
	ReconfigEnabled bool

	// EnforceQuota refuses requests beyond the hard limits of a quota, as
	// zookeeper.enforceQuota. False, ZooKeeper's default, only counts.
	EnforceQuota bool

	// ContainerCheckInterval is how often the server removes empty containers and nodes
	// past their time to live, as znode.container.checkIntervalMs. 0 means one minute.
	ContainerCheckInterval time.Duration

	// Audit logs a line for each operation that changes something, for each denied
	// operation, and for each authentication, as audit.enable: at slog.LevelInfo, with the
	// message "audit" and ZooKeeper's fields session, user, ip, operation, znode,
	// znode_type, acl, and result. Unlike ZooKeeper, it logs no line for each znode that the
	// end of a session deletes. No line contains a password, a digest, or data. The
	// server logs at most a thousand lines a second; the next line says how many were
	// omitted. False, ZooKeeper's default, logs none.
	Audit bool

	// ContainerNeverUsed is how long a container that never had a child stays after its
	// last change, as znode.container.maxNeverUsedIntervalMs. 0, ZooKeeper's default, means
	// forever.
	ContainerNeverUsed time.Duration

	// FourLetterWords are the commands that a client may send instead of a handshake, as
	// 4lw.commands.whitelist. Nil means only "srvr", as in ZooKeeper; "*" means all; an
	// empty, non-nil slice means none.
	FourLetterWords []string

	// SnapshotRecords and SnapshotBytes set after how many records or bytes of log the
	// server takes a snapshot. 0 means 100,000 records (ZooKeeper's snapCount) and 64 MiB.
	// They apply only with DataDir. The snapshot is made in the background from the files
	// and requests do not wait for it. Meanwhile the state takes twice its memory. The
	// snapshot shares the processors and the garbage collector with the requests: with a
	// million nodes, a multi of 5,000 creates took up to about 50 ms on two processors.
	SnapshotRecords int
	SnapshotBytes   int64

	// SnapshotsKept is how many snapshots the server keeps, as autopurge.snapRetainCount.
	// It keeps the log back to the oldest of them, so that it can recover from each if
	// later ones are damaged. 0 means 3.
	SnapshotsKept int

	// NoSync acknowledges changes that were written and not yet synced to disk, as
	// zookeeper.forceSync=no. The end of the process loses nothing. A power loss loses
	// acknowledged writes, and thus locks that are held, and may leave a log that the next
	// start refuses as damaged. False, ZooKeeper's default, syncs. If true, the server logs
	// a warning.
	NoSync bool

	// EndOnStorageError ends the server when its log cannot be written, for a program that
	// restarts it. False, the default, keeps the server running read-only: see ErrStorage.
	EndOnStorageError bool

	segmentBytes int64 // of the log; 0 means the log's default. For tests.

	// Accept, if not nil, is called for every connection that a listener accepted, before a
	// byte is read. An error closes the connection and is logged. Accept may read the peer
	// credentials of a unix socket. It runs on the goroutine of the connection, within the
	// handshake timeout.
	Accept func(net.Conn) error

	// Logger receives messages for the operator. Nil means slog.Default(). Its handler must
	// not block: the goroutines that accept connections wait for it.
	Logger *slog.Logger

	setup servertest.Setup // what package zktest adds
}
