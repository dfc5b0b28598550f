package zkserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/zklock/zklock/internal/servertest"
	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wire"
)

// Options configures a Server. The zero value is a server in memory with the
// defaults of Apache ZooKeeper; each field says what zero means. New copies
// the struct: changing it afterwards has no effect.
type Options struct {
	// DataDir is the directory of the log and the snapshots. It is made if it
	// is missing and locked while the server lives. On Unix no other user but
	// root may own it or write to it, save members of its group. Empty keeps
	// everything in memory: nothing survives the Server. Transaction ids, and with them fencing
	// tokens, begin at 0 in a new directory and at the wall clock in memory.
	DataDir string

	// FS is where DataDir lives, for the tests of this module, which put it in
	// memory and make it fail. Nil, the only value a program outside the
	// module can give, is the file system of the operating system.
	FS wal.FS

	// Controls, if not nil, is filled in by New: it lets package zktest hold the
	// server up. Nil is the only value a program outside the module can give.
	Controls *servertest.Controls

	// TickTime is ZooKeeper's tickTime, from which the limits of the session
	// timeout follow. 0 means 2 seconds, as in ZooKeeper's sample
	// configuration. At least a millisecond.
	TickTime time.Duration

	// MinSessionTimeout and MaxSessionTimeout bound the timeout that a client
	// may negotiate. 0 means 2 and 20 ticks.
	MinSessionTimeout, MaxSessionTimeout time.Duration

	// MaxClientConns bounds the connections from one IP address, as
	// maxClientCnxns does. 0 means 60, a negative value no limit. The loopback
	// counts as one address, and so does an IPv6 network of 64 bits. Unix sockets
	// and connections from inside the process have no address and no limit.
	MaxClientConns int

	// MaxConns bounds all connections, as maxCnxns does. 0 means no limit but the
	// one that holds in any case on Unix: an eighth of the descriptors that the process
	// may have open, 8 at least and 128 at most, is not for connections.
	MaxConns int

	// MaxFrame is the largest request in bytes, as jute.maxbuffer. 0 means
	// 0xfffff, the most is 256 MiB: the log has room for records of twice that,
	// and what begins as TLS or a four-letter word is never the length of a request. A longer one closes
	// its connection.
	MaxFrame int

	// MaxOutstanding bounds the requests of one connection that were read and
	// not yet answered; past it the server stops reading from that connection
	// until it has caught up. 0 means 1000.
	MaxOutstanding int

	// MaxUnread bounds the bytes kept for a client that does not read its
	// replies and events. Past it the connection is cut; the session lives on
	// until its timeout. 0 means 16 MiB.
	MaxUnread int

	// MaxOutstandingTotal and MaxOutstandingBytes bound the requests of all
	// connections together that were read and not yet answered, their number as
	// globalOutstandingLimit and their bytes as largeRequestMaxBytes. Past either
	// the server stops reading from every connection that has a request
	// outstanding until it has caught up; nothing is refused. 0 means 100,000
	// requests and 100 MiB.
	MaxOutstandingTotal int
	MaxOutstandingBytes int64

	// MaxUnreadTotal bounds the bytes kept for all clients that are more than 64
	// KiB behind with reading. Past it those furthest behind are cut, as by
	// MaxUnread. 0 means 1 GiB.
	MaxUnreadTotal int64

	// MaxNodes bounds the nodes. 0 means 10,000,000. A request that would exceed
	// this, MaxData, MaxWatches or MaxWatchesPerConn is refused with the error
	// QuotaExceeded; requests that delete, or make smaller, never are.
	MaxNodes int

	// MaxData bounds the bytes of all nodes' paths, data and lists of permissions
	// and of the watched paths. 0 means 4 GiB. What the process takes is more: some
	// 300 bytes a node, and the collector's share.
	MaxData int64

	// MaxWatches bounds the watches of all connections, and MaxWatchesPerConn the
	// paths that one connection watches. 0 means 2,000,000, and as many as are free
	// for all, so that one connection takes no more than half. The same holds for each
	// address, whatever MaxWatchesPerConn is. The last eighth of all is for connections
	// with few, an eight-thousandth of all at most, whatever others of their address
	// have.
	// A client that comes back and restores more is closed, since it would wait
	// for watches that are not there.
	MaxWatches, MaxWatchesPerConn int

	// MaxSessions bounds the sessions. 0 means 1,000,000. An address may have as many
	// as are free for all, half of them where it is alone; the last eighth is for
	// addresses with few. One more is closed in its handshake.
	MaxSessions int

	// MaxReply bounds the bytes of one reply. 0 means 32 MiB. In a list of children
	// each name counts 96 bytes more than it has. A longer reply, such as the list of a
	// million children, is replaced by the error QuotaExceeded;
	// replies to writes are not. A multi is refused with that error if persistent
	// watches would hear of its changes in more than twice as many bytes or more than
	// 50,000 times, or of paths longer than 1024 bytes in more than 8 MiB. Where nothing
	// can be refused, as when a session with many nodes ends, the clients beyond twice
	// that are cut: they reconnect and read again.
	MaxReply int

	// KeepAlive is after how long a silence TCP asks a client's machine whether it
	// is there, and how often; after three questions without an answer the
	// connection ends. It finds dead links of connections whose handshake is done
	// sooner than a long session timeout. 0 leaves what the listener set, which
	// for those of package net is after 15 seconds; a negative value turns it off.
	KeepAlive time.Duration

	// HandshakeTimeout bounds the time from the accept of a connection to its
	// connect request. 0 means 10 seconds, as
	// zookeeper.nio.sessionlessCnxnTimeout.
	HandshakeTimeout time.Duration

	// SuperDigest is the "super:BASE64" identity that may do everything, as
	// zookeeper.DigestAuthenticationProvider.superDigest. Empty means nobody.
	SuperDigest string

	// SASLUsers are the passwords of the users who may authenticate by SASL
	// with DIGEST-MD5, as the Server section of a JAAS file has them. Nil or
	// empty means that SASL is refused. Names and passwords must not be empty.
	SASLUsers map[string]string

	// SuperUsers are the SASL users who may do everything, as zookeeper.superUser and
	// zookeeper.superUser.*. Nil or empty means nobody.
	SuperUsers []string

	// X509SuperUser is the subject of the client certificates whose owners may
	// do everything, as zookeeper.X509AuthenticationProvider.superUser: in the
	// form of RFC 2253, "CN=root,O=zk". Empty means nobody.
	X509SuperUser string

	// AuthProviders are the schemes that access control lists may name besides
	// world, auth, ip and digest, as the keys authProvider.*: "sasl" and "x509", and
	// "ensemble", which no list may name: see EnsembleNames.
	// Nil means sasl if there are SASLUsers and x509 if there is an
	// X509SuperUser. A client with a certificate may name x509 in any case.
	AuthProviders []string

	// EnsembleNames are the names of the ensemble that this server takes itself for, as
	// zookeeper.ensembleAuthName. With "ensemble" among the AuthProviders, a client that
	// names another one by the scheme ensemble is cut off. Nil or empty accepts all
	// names.
	EnsembleNames []string

	// EnforceAuthSchemes demands of each client an identity of one of these
	// schemes ("sasl", "digest", "x509", "ip") before it does anything else, as
	// enforce.auth.enabled with enforce.auth.schemes. Who has none is told so
	// (error -124) and cut off. Nil or empty demands nothing.
	EnforceAuthSchemes []string

	// RequireSASL is EnforceAuthSchemes with sasl alone, whatever else stands
	// there, as sessionRequireClientSASLAuth. It needs SASLUsers.
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

	// EnforceQuota refuses what the hard limits of a quota forbid, as
	// zookeeper.enforceQuota. False, ZooKeeper's default, only counts.
	EnforceQuota bool

	// Compat38 brings back the few behaviors of ZooKeeper 3.8.0 that later releases
	// changed, for comparing the two, and reports that version; docs/compatibility.md
	// lists them. It also brings back ZooKeeper's recursive watches. False means the
	// behavior and the version of 3.9.4, and recursive watches that tell a client only of
	// znodes that it could list: on the znodes between the watch and a change it needs
	// READ.
	Compat38 bool

	// ContainerCheckInterval is how often empty containers and nodes past
	// their time to live are removed, as znode.container.checkIntervalMs. 0
	// means one minute.
	ContainerCheckInterval time.Duration

	// Audit has a line logged for each operation that changes something, for each that
	// was denied, and for each proof of identity, as audit.enable: at the level of
	// slog.LevelInfo, with the message "audit" and ZooKeeper's fields session, user, ip,
	// operation, znode, znode_type, acl and result. No line has a password, a digest or
	// data. A thousand lines are logged in a second at most; the next line says how many
	// were not. False, ZooKeeper's default, logs none.
	Audit bool

	// ContainerNeverUsed is how long a container that never had a child stays after its
	// last change, as znode.container.maxNeverUsedIntervalMs. 0, ZooKeeper's default,
	// means for ever.
	ContainerNeverUsed time.Duration

	// FourLetterWords are the commands that a connection may ask instead of a
	// handshake, as 4lw.commands.whitelist. Nil means "srvr" alone, as in
	// ZooKeeper; "*" means all; a slice that is empty and not nil means none.
	FourLetterWords []string

	// SnapshotRecords and SnapshotBytes say after how many records or bytes of
	// log a snapshot is taken. 0 means 100,000 records (ZooKeeper's snapCount)
	// and 64 MiB. Only with DataDir. It is made in the background from the
	// files and holds up no request; meanwhile the state takes twice its
	// memory, and for moments that of the snapshot's bytes in addition.
	SnapshotRecords int
	SnapshotBytes   int64

	// SnapshotsKept is how many snapshots stay, as autopurge.snapRetainCount;
	// the log is kept back to the oldest of them, so that each can be fallen
	// back to if those after it are damaged. 0 means 3.
	SnapshotsKept int

	// NoSync acknowledges what was written and not yet synced to disk, as
	// zookeeper.forceSync=no. The end of the process loses nothing, but a loss
	// of power loses acknowledged writes and so locks that are held, and may
	// leave a log that is refused as damaged. False, ZooKeeper's default,
	// syncs. True is warned about in the log.
	NoSync bool

	// EndOnStorageError ends the server when its log cannot be written, for a
	// program that starts it again by itself. False, the default, keeps it
	// read-only: see ErrStorage.
	EndOnStorageError bool

	segmentBytes int64 // of the log; 0 means the log's default. For tests.

	// Accept, if not nil, is asked about every connection that a listener
	// accepted, before a byte is read; an error closes the connection and is
	// logged. It may look at peer credentials of a unix socket. It is called
	// from the goroutine of that connection and within the handshake timeout.
	Accept func(net.Conn) error

	// Logger gets what an operator should know. Nil means slog.Default().
	Logger *slog.Logger
}

// mostFrame is the highest MaxFrame.
const mostFrame = 256 << 20

// ErrOptions is wrapped by the errors of New about a field of Options.
var ErrOptions = errors.New("zkserver: invalid option")

// withDefaults returns o with every zero replaced, or what is wrong with it.
func (o Options) withDefaults() (Options, error) {
	setDuration(&o.TickTime, 2*time.Second)
	setDuration(&o.MinSessionTimeout, 2*o.TickTime)
	setDuration(&o.MaxSessionTimeout, max(20*o.TickTime, o.MinSessionTimeout))
	setDuration(&o.HandshakeTimeout, 10*time.Second)
	setDuration(&o.ContainerCheckInterval, time.Minute)
	setInt(&o.MaxClientConns, 60)
	setInt(&o.MaxFrame, wire.DefaultMaxFrame)
	setInt(&o.MaxOutstanding, 1000)
	setInt(&o.MaxUnread, 16<<20)
	setInt(&o.SnapshotRecords, 100_000)
	setInt(&o.SnapshotsKept, 3)
	o.setDefaultLimits()
	if o.SnapshotBytes == 0 {
		o.SnapshotBytes = 64 << 20
	}
	if o.FourLetterWords == nil {
		o.FourLetterWords = []string{"srvr"}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, o.check()
}

// check names the first field that makes no sense, and what would.
func (o *Options) check() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"TickTime", o.TickTime},
		{"MinSessionTimeout", o.MinSessionTimeout},
		{"MaxSessionTimeout", o.MaxSessionTimeout},
		{"HandshakeTimeout", o.HandshakeTimeout},
		{"ContainerCheckInterval", o.ContainerCheckInterval},
	} {
		// The protocol counts timeouts in an int32 of milliseconds.
		if d.value < time.Millisecond || d.value > (1<<31-1)*time.Millisecond {
			return fmt.Errorf("%w: %s is %v: give at least 1ms and at most 596h, or 0 for the default", ErrOptions, d.name, d.value)
		}
	}
	if o.ContainerNeverUsed < 0 {
		return fmt.Errorf("%w: ContainerNeverUsed is %v: give a time, or 0 for ever", ErrOptions, o.ContainerNeverUsed)
	}
	if o.MinSessionTimeout > o.MaxSessionTimeout {
		return fmt.Errorf("%w: MinSessionTimeout %v is above MaxSessionTimeout %v: swap them or leave one 0",
			ErrOptions, o.MinSessionTimeout, o.MaxSessionTimeout)
	}
	for _, n := range []struct {
		name  string
		value int64
		least int64
	}{
		{"MaxConns", int64(o.MaxConns), 0},
		// A connect request has 44 bytes and must always fit.
		{"MaxFrame", int64(o.MaxFrame), 64},
		{"MaxOutstanding", int64(o.MaxOutstanding), 1},
		{"MaxUnread", int64(o.MaxUnread), 1024},
		{"SnapshotRecords", int64(o.SnapshotRecords), 1},
		{"SnapshotBytes", o.SnapshotBytes, 1},
		{"SnapshotsKept", int64(o.SnapshotsKept), 1},
	} {
		if n.value < n.least {
			return fmt.Errorf("%w: %s is %d: give at least %d, or 0 for the default", ErrOptions, n.name, n.value, n.least)
		}
	}
	if o.MaxFrame > mostFrame {
		return fmt.Errorf("%w: MaxFrame is %d: give at most %d", ErrOptions, o.MaxFrame, mostFrame)
	}
	if err := o.checkAuth(); err != nil {
		return err
	}
	if err := o.checkLimits(); err != nil {
		return err
	}
	return o.checkWords()
}

// checkWords refuses a four-letter word that does not exist: a misspelt one
// would otherwise show only when monitoring stays silent.
func (o *Options) checkWords() error {
	for _, w := range o.FourLetterWords {
		if _, ok := words[w]; !ok && w != "*" {
			return fmt.Errorf("%w: FourLetterWords has %q, which is no command: use names such as srvr, stat, mntr, or *", ErrOptions, w)
		}
	}
	return nil
}

func setDuration(d *time.Duration, zero time.Duration) {
	if *d == 0 {
		*d = zero
	}
}

func setInt(n *int, zero int) {
	if *n == 0 {
		*n = zero
	}
}
