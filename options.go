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
	// decide; by default they grant between 2 and 20 of their ticks. After a crash of
	// a holder, the next waiter is granted when the timeout has passed. Zero means 20
	// seconds. Used by Dial only.
	SessionTimeout time.Duration
	// Auth are the credentials for the servers. Nil means none. Used by Dial only.
	Auth []zk.Auth
	// SASL, if not nil, is the user to authenticate as. Used by Dial only.
	SASL *zk.SASL
	// TLS, if not nil, makes the client use TLS. Used by Dial only.
	TLS *tls.Config
	// DialContext opens connections; network is "tcp" or "unix". Nil means the
	// DialContext of a net.Dialer. Used by Dial only.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// KeepOrder tries the servers in the order given, the nearest first for example. False
	// means that each client shuffles them, so that clients are distributed over the
	// servers. Used by Dial only.
	KeepOrder bool

	// ACL is the ACL of the znodes that the client creates. It must let the client
	// itself read and delete, and other waiting clients read. If the client creates
	// /zklock, the parent of all locks with relative names, everyone may also create
	// and read there.
	//
	// For a client with credentials, nil means that a new znode is as closed as its
	// parent: it gets the ACL of the parent, and the client's own identities get all
	// permissions. If the parent does not exist yet, the nearest existing ancestor
	// counts, and whichever identity may create and read there may also delete in the
	// new parent. The first acquire of a session below a znode reads the ACL of that
	// znode, which takes one more round trip; a later change of the ACL has effect in
	// the next session. If the client may not read the ACL, only the client itself
	// may use what it creates. If the client may not change the ACL, the servers hide
	// digest users in it, and the client leaves these out: identities that share a
	// lock in this way must set ACL. For a client without credentials, nil means
	// zk.OpenACL.
	ACL []zk.ACL
	// Layout determines the names of the znodes of mutexes and read-write locks. The
	// zero Layout is Curator's.
	Layout Layout
	// LockDelay is how long an acquire waits before it takes a lock whose last holder
	// vanished without a release, for example in a crash. The time counts from when
	// this client first saw that, or from when another client marked it, by the clock
	// of the servers. It lets work end that the holder started and that no fencing
	// token stops. It applies to mutexes and read-write locks; all clients on a path
	// should use the same delay. Other libraries neither cause nor respect it. It
	// costs a persistent record for each entry, at the path of the lock with the
	// suffix "-held". Zero means no delay. It cannot be combined with WriteLockLayout
	// or a custom layout.
	LockDelay time.Duration
	// AllowForeignMutex grants readers next to entries of Curator's mutex and of
	// kazoo's Lock, which do not wait for readers, instead of failing with
	// ErrForeignMutex. Use it only on paths where no such entry can arrive while
	// readers hold.
	AllowForeignMutex bool
	// AllTimeout bounds the wait of an All's Acquire whose context has no deadline.
	// It can be in a deadlock with programs that acquire one lock while they hold
	// another. Zero means one minute; a negative value means no bound.
	AllTimeout time.Duration
	// Owner is shown to people who inspect the lock. Nil means the host, process,
	// user, and program name of this process.
	Owner *Owner
	// Anonymous leaves out the owner. The data of znodes are then "{}", or only what
	// the lock itself needs: an id if the name has no room for one, and the token of
	// a hold that was downgraded.
	Anonymous bool
	// PersistentParents makes the parents of locks persistent znodes. False means
	// containers, which the servers remove some time after the last use. kazoo's
	// locks fail when that happens, so set this where kazoo uses the same paths. The
	// kazoo and mixed layouts imply it.
	PersistentParents bool
	// ClockDrift is the largest difference between the rates of this machine's clock
	// and the servers' clocks, as a fraction. Zero means 0.01, which is 1%. Beyond
	// 0.25, heartbeats come too late to prolong a hold. A time daemon may slew each
	// of the clocks by at most half of this; chrony slews by up to 0.083 unless its
	// maxslewrate is set.
	ClockDrift float64
	// SyncHeartbeat makes most heartbeats sync requests, for fleets so large that a
	// quorum write from each client every eighth of its session's timeout is too
	// much: the leader answers a sync by itself, with nothing written to any log.
	// An entry that somebody deletes is told of by a watch, as soon as by the writes.
	//
	// It gives up safety where a leader is paused or cut off in one direction only:
	// for a tick and more such a leader answers on for a session that its successor
	// ends, and two clients may hold one lock until then. Fencing tokens are as good
	// as ever. A leader that is cut off both ways with its clients stops early enough,
	// if the session lasts four ticks or more, so ServerTick is needed: a session
	// that got less from the servers keeps the writes, and Dial refuses it. A right to
	// read that is taken from an entry before it is deleted hides the deletion.
	SyncHeartbeat bool
	// ServerTick is the servers' tickTime. A client that knows it proves later
	// deadlines, so that holds survive longer silences. Zero means that the client asks
	// each server when it has been connected for a session timeout: by the four-letter
	// word conf, or else by a short session, which costs two transactions. Set it if the
	// servers' minSessionTimeout is below two ticks. SyncHeartbeat needs it. Dial
	// refuses a tick that is longer than the session timeout.
	ServerTick time.Duration
	// Logger receives messages about sessions and about holds in danger. Nil means no
	// messages. Its handler must not block, because heartbeats would wait for it.
	Logger *slog.Logger

	// The hooks report events of locks, one call at a time, on a goroutine of their
	// own. A nil hook is not called. The hooks do not report re-entering a hold, nor
	// a release while other holds of the same grant remain. If a lock goes from one
	// hold of this client to the next, OnAcquire can come before OnRelease, which
	// waits for the servers.
	OnWait     func(Event) // an acquire has a position in the queue, or waits for a local handoff: Ahead, Blocker
	OnAcquire  func(Event) // a hold began: Token, Duration of the wait
	OnFail     func(Event) // an acquire that had begun failed: Err
	OnRelease  func(Event) // the znode of a released hold is gone, or cannot be deleted: Err
	OnLost     func(Event) // a hold was lost, or its release detected the loss: Err
	OnJeopardy func(Event) // the heartbeat of a hold is overdue (Err set), or was answered again (nil)
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
		return fmt.Errorf("%w: LockDelay needs names that say which attempt made them; %s has none", ErrInvalidOptions, o.Layout)
	}
	return o.Layout.check()
}

// checkTimeout returns an error if the options need a longer session timeout.
func (o *Options) checkTimeout(negotiated time.Duration) error {
	if o.SyncHeartbeat && negotiated < 4*o.ServerTick {
		return fmt.Errorf("%w: SyncHeartbeat needs a session of four ticks or more, and the servers, with ticks of %v, gave %v; ask for a longer SessionTimeout",
			ErrInvalidOptions, o.ServerTick, negotiated)
	}
	if negotiated < o.ServerTick {
		return fmt.Errorf("%w: the servers gave a session of %v, less than ServerTick, %v; ask for a longer SessionTimeout",
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
		Logger:         o.Logger,
	}
}
