package zklock

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/zklock/zklock/zk"
)

// Options configure a [Client]. The zero value and a nil pointer are valid; each field
// documents its zero value. Dial and New copy what they need, except what TLS points to.
type Options struct {
	// SessionTimeout is the session timeout that the client requests. The servers
	// decide; by default they grant between 2 and 20 of their ticks. If a holder
	// crashes, the next waiter is granted within the timeout plus two ticks. Zero means
	// 20 seconds. Used by Dial only.
	SessionTimeout time.Duration
	// Auth are the credentials for the servers. Nil means none. Used by Dial only.
	Auth []zk.Auth
	// SASL, if not nil, authenticates each connection, see zk.Options. Used by Dial
	// only.
	SASL zk.SASLMechanism
	// TLS, if not nil, makes the client use TLS. Used by Dial only.
	TLS *tls.Config
	// DialContext opens connections; network is "tcp" or "unix". It must return when ctx
	// ends: Close waits for it. Nil means the DialContext of a net.Dialer. Used by Dial
	// only.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// KeepOrder tries the servers in the given order, for example with the nearest first.
	// False means that each client shuffles them, so that clients are distributed over the
	// servers. Used by Dial only.
	KeepOrder bool
	// MaxRequest is the jute.maxbuffer of the servers: the largest request, in bytes, that
	// they accept. Set it if it is below their default, 1048575, which zero means. The
	// servers close a connection that sends more, and then all holds are in danger. With
	// MaxRequest, the client splits heartbeats, and an acquire that needs a larger request
	// fails with zk.ErrTooLarge. Used by Dial only.
	MaxRequest int

	// ACL is the ACL of the znodes that the client creates. It must let the client
	// itself read and delete, and other waiting clients read. If the client creates
	// /zklock, the parent of all locks with relative names, everyone may also create
	// and read there, unless the client has credentials and /zklock is below a closed
	// chroot.
	//
	// For a client without credentials, nil means zk.OpenACL. For a client with
	// credentials, nil means that a new znode gets the ACL of its parent, and the
	// client's own identities get all permissions:
	//
	//   - If the parent does not exist yet, the ACL of the nearest existing ancestor
	//     counts. An identity that may create and read there may also delete in the new
	//     parent.
	//   - The first acquire of a session below a znode reads the ACL of that znode,
	//     which takes one more round trip. A later change of the ACL has effect in the
	//     next session.
	//   - If the client may not read the ACL, or if it is larger than 16 KiB, only the
	//     client itself may use what it creates.
	//   - If the client may not change the ACL, the servers hide digest users in it, and
	//     the client omits these. Digest users that share a lock need the permission to
	//     change the ACL, or must set this field.
	ACL []zk.ACL
	// Layout determines the names of the znodes of mutexes and read-write locks. The
	// zero Layout is Curator's.
	Layout Layout
	// LockDelay is how long an acquire waits before it takes a lock whose last holder
	// ended without a release, for example in a crash. Zero means no delay. During the
	// delay, work that the holder started and that no fencing token stops can end. The
	// delay counts from when a client first saw that the holder had ended: for this
	// client by its own clock, for others by the clock of the servers.
	//
	// LockDelay applies to mutexes and read-write locks; all clients on a path should
	// use the same delay. Other libraries neither cause nor respect it. It costs a
	// persistent record for each entry, at the path of the lock with the suffix
	// "-held". It cannot be combined with WriteLockLayout or a custom layout.
	LockDelay time.Duration
	// AllowForeignMutex lets readers acquire the lock next to entries of Curator's
	// mutex, kazoo's Lock, and ZooKeeper's WriteLock, which do not wait for readers.
	// False means that such an acquire fails with ErrForeignMutex, except next to kazoo's
	// Lock in [KazooLayout] and [MixedLayout]. Use it only on paths where no such entry can
	// arrive while readers hold the lock.
	AllowForeignMutex bool
	// AllTimeout bounds the wait of an All's Acquire whose context has no deadline,
	// because an All can deadlock with a program that acquires one lock while it holds
	// another. Zero means one minute; a negative value means no bound.
	AllTimeout time.Duration
	// Owner is shown to people who inspect the lock. Nil means the host, process,
	// user, and program name of this process.
	Owner *Owner
	// Anonymous omits the owner. The data of znodes are then "{}", or only what the lock
	// itself needs: an id if the name has no room for one, a custom layout, the token of a
	// hold that was downgraded, and a value with the version of this package. False means
	// that the data contain the owner.
	Anonymous bool
	// PersistentParents makes the parents of locks persistent znodes. False means
	// containers, which the servers remove some time after the last use. kazoo's locks
	// fail when that happens, so set this where kazoo uses the same paths. The kazoo and
	// mixed layouts imply it. Servers before ZooKeeper 3.5.1 have no containers, so the
	// parents are always persistent there.
	PersistentParents bool
	// ClockDrift is the largest difference between the rates of this machine's clock
	// and the servers' clocks, as a fraction. Zero means 0.01, which is 1%. So a time
	// daemon may slew each of the clocks by at most half of this; chrony slews by up to
	// 0.083 unless its maxslewrate is set. The value must be less than 0.5. Beyond 0.4,
	// heartbeats can come too late to prolong a hold, unless the servers' tick is much
	// shorter than the session timeout.
	ClockDrift float64
	// SyncHeartbeat replaces the write of most heartbeats by a sync, which the leader
	// answers by itself without a log record. Use it only for fleets so large that one
	// write of each client in every eighth of the session timeout is too much. False
	// means that heartbeats are writes.
	//
	// It is less safe: if a leader is paused, or cut off in one direction only, it can
	// answer for a session that the next leader ends, for a tick or longer. In that
	// time, two clients may hold one lock. Fencing tokens still order their writes. A
	// leader that is cut off in both directions stops early enough if the session
	// timeout is at least four ticks. So SyncHeartbeat needs ServerTick. If the timeout
	// of the first session is less than four ticks, Dial fails; if that of a later session
	// is less, its heartbeats are writes.
	//
	// The client learns of deleted entries by watches. If the client loses the
	// permission to read an entry before another client deletes the entry, it does not
	// learn of the deletion.
	SyncHeartbeat bool
	// ServerTick is the servers' tickTime. If the client knows it, holds survive longer
	// silences of the servers. Zero means that the client asks each server that it connects
	// to, but first when it has existed for an eighth to a quarter of the session timeout: by
	// the four-letter word conf, or else by a short session, which costs two transactions.
	// Set it if holds must survive long silences from their first seconds on, or if the
	// servers' minSessionTimeout is below two ticks. SyncHeartbeat needs it. Dial refuses a
	// tick that is longer than the session timeout.
	ServerTick time.Duration
	// Logger receives messages about sessions and about holds in danger. Nil means no
	// messages. Its handler must not block, because heartbeats would wait for it.
	Logger *slog.Logger

	// The hooks report events of locks, one call at a time, on a goroutine of their
	// own. A nil hook is not called. The hooks do not report re-entering a hold, nor
	// a release while other holds of the same grant remain. If a lock goes from one
	// hold of this client to the next, OnAcquire can come before OnRelease, which
	// waits for the servers. Later events wait in memory until a hook returns, so a hook
	// must not block for long. A hook may call the client, also Close.
	OnWait     func(Event) // an acquire has a position in the queue, or waits for a local handoff, and again for each other entry that it then waits for: Ahead, Blocker
	OnAcquire  func(Event) // a hold began: Token, Duration of the wait
	OnFail     func(Event) // an acquire that had begun failed: Err
	OnRelease  func(Event) // the znode of a released hold is gone, or cannot be deleted: Err
	OnLost     func(Event) // a hold was lost, or its release detected the loss: Err
	OnJeopardy func(Event) // the heartbeat of a hold is overdue (Err set), or was answered again (Err nil)
}

func (o *Options) check() error {
	switch {
	case o.SessionTimeout < 0:
		return fmt.Errorf("%w: SessionTimeout %v is negative", ErrInvalidOptions, o.SessionTimeout)
	case !(o.ClockDrift >= 0 && o.ClockDrift < 0.5): // also rejects NaN
		return fmt.Errorf("%w: ClockDrift %v is not between 0 and 0.5", ErrInvalidOptions, o.ClockDrift)
	case o.ServerTick < 0:
		return fmt.Errorf("%w: ServerTick %v is negative", ErrInvalidOptions, o.ServerTick)
	case o.SyncHeartbeat && o.ServerTick == 0:
		return fmt.Errorf("%w: SyncHeartbeat needs ServerTick, the servers' tickTime", ErrInvalidOptions)
	case o.LockDelay < 0:
		return fmt.Errorf("%w: LockDelay %v is negative", ErrInvalidOptions, o.LockDelay)
	case o.LockDelay > 0 && o.Layout.names("").HasReusableNames():
		return fmt.Errorf("%w: LockDelay needs znode names with a GUID, which %s does not have", ErrInvalidOptions, o.Layout)
	}
	return o.Layout.Validate()
}

// checkTimeout returns an error if the options need a longer session timeout.
func (o *Options) checkTimeout(negotiated time.Duration) error {
	if o.SyncHeartbeat && negotiated < 4*o.ServerTick {
		return fmt.Errorf("%w: SyncHeartbeat needs a session of four ticks or more, and the servers, with ticks of %v, granted %v; request a longer SessionTimeout",
			ErrInvalidOptions, o.ServerTick, negotiated)
	}
	return o.checkTick(negotiated)
}

// checkTick returns an error if a session is shorter than a tick.
func (o *Options) checkTick(negotiated time.Duration) error {
	if negotiated < o.ServerTick {
		return fmt.Errorf("%w: the servers granted a session of %v, less than ServerTick, %v; request a longer SessionTimeout",
			ErrInvalidOptions, negotiated, o.ServerTick)
	}
	return nil
}

// sessionOptions returns the options of the session.
func (o *Options) sessionOptions() *zk.Options {
	return &zk.Options{
		SessionTimeout: o.SessionTimeout,
		Auth:           o.Auth,
		SASL:           o.SASL,
		TLS:            o.TLS,
		DialContext:    o.DialContext,
		KeepOrder:      o.KeepOrder,
		MaxRequest:     o.MaxRequest,
		Logger:         o.Logger,
	}
}
