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

// Options change how a [Client] behaves. The zero value, and a nil pointer,
// work; each field says what zero means. Dial and New copy what they need, but
// for what TLS points to.
type Options struct {
	// SessionTimeout is asked for; the servers have the last word, by default
	// between 2 and 20 of their ticks. After a crash the lock is granted to the
	// next one when it has passed. Zero means 20 seconds. Used by Dial only.
	SessionTimeout time.Duration
	// Auth are the credentials for the servers. Nil means none. Used by Dial only.
	Auth []zk.Auth
	// SASL, if not nil, is the user as whom to authenticate. Used by Dial only.
	SASL *zk.SASL
	// TLS, if not nil, makes the connections TLS connections. Used by Dial only.
	TLS *tls.Config
	// DialContext makes connections; network is "tcp" or "unix". Nil means that
	// of a net.Dialer. Used by Dial only.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)

	// ACL is what locks' znodes are made with. It must let the client itself
	// read and delete, and other waiting clients read.
	//
	// Nil means, for a client with credentials, that a znode is as closed as the one
	// that it is made in: it gets that znode's list, and the client's own identities
	// get all rights. Of a znode that does not exist yet, the nearest one above it
	// counts, and whoever may create and read there may delete in it as well. The
	// first acquire below a znode reads its list, once a session, which costs it a
	// round trip; a change of the list shows with the next session. If the client may
	// not read the list, what it makes is its own alone. If it may not change the list,
	// the servers hide digest users in it, and these are left out: identities that share
	// a lock in this way have to set ACL. For a client without credentials nil means
	// zk.OpenACL.
	ACL []zk.ACL
	// Layout is how the znodes of mutexes and read-write locks are named. The zero
	// Layout is Curator's.
	Layout Layout
	// LockDelay is how long an acquire keeps off a lock whose last holder vanished
	// without a release, in a crash say, counted from when this client first saw
	// that, or from when another one marked it, by the servers' clock: time for
	// what the holder had set going, and no fencing token stops, to come to an end.
	// It is for mutexes and read-write locks; everybody on a path
	// should use the same. Other libraries neither cause nor heed it. It costs a
	// persistent record beside each entry, at the lock's path with "-held" behind.
	// Zero means no delay. Not with WriteLockLayout and layouts of one's own.
	LockDelay time.Duration
	// SharedBesideForeign lets readers in beside entries of Curator's mutex and of
	// kazoo's Lock, which do not heed them, instead of failing with
	// ErrForeignMutex. It is for paths on which those can't come while readers
	// hold.
	SharedBesideForeign bool
	// AllTimeout bounds the wait of an All's Acquire whose context has no deadline:
	// it may be in a deadlock with programs that take one lock while they hold
	// another. Zero means one minute, a negative value no bound.
	AllTimeout time.Duration
	// Owner is shown to people who look at the lock. Nil means host, process,
	// user and program name of this process.
	Owner *Owner
	// Anonymous leaves the owner's data out; the znodes then hold "{}", or what the
	// lock itself needs: an id where the name has no room for one, and the token of
	// a hold that was downgraded.
	Anonymous bool
	// PersistentParents makes the locks' parents persistent znodes. False means
	// containers, which the servers remove some time after the last use; kazoo's
	// locks fail when that happens, so set this where kazoo shares the paths. The
	// kazoo and mixed layouts imply it.
	PersistentParents bool
	// ClockDrift is the largest difference between the rates of this machine's
	// clock and the servers', as a fraction. Zero means 0.01, 1 %. Beyond 0.25
	// heartbeats come too late to prolong a hold. A time daemon may slew each of the
	// clocks by half of this at most; chrony slews by up to 0.083 unless its
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
	// ServerTick is the servers' tickTime, for SyncHeartbeat. Zero means that it is
	// not known.
	ServerTick time.Duration
	// Logger is told of sessions and of holds in danger. Nil means silence. Its
	// handler must not block: heartbeats would wait for it.
	Logger *slog.Logger

	// The hooks are told of what becomes of locks, one call at a time, on a
	// goroutine of their own. A nil hook is not called. Re-entering a hold and
	// releasing it while others are left is not told. Where a lock goes from one hold
	// of this client to its next, OnAcquire may come before OnRelease, which waits for
	// the servers.
	OnWait     func(Event) // an acquire has a place in the queue, or in a Local lock's line: Ahead, Blocker
	OnAcquire  func(Event) // a hold began: Token, Duration of the wait
	OnFail     func(Event) // an acquire that had begun failed: Err
	OnRelease  func(Event) // a released hold's znode is gone, or can't be deleted: Err
	OnLost     func(Event) // a hold was lost, or its release found that it was: Err
	OnJeopardy func(Event) // a hold's heartbeat is overdue (Err set), or was answered again (nil)
}

// An Event is what hooks are told.
type Event struct {
	Path     string        // of the lock
	Mode     Mode          // how it is held or wanted; of an All, how the first of its locks is
	Attempt  uint64        // of which acquire: a number that all its events, and its hold's, have in this client
	Token    int64         // of the hold; 0 for OnWait and OnFail, and where there is none in common
	Ahead    int           // OnWait: how many entries are ahead in the queue, with holds and acquires in a Local lock's line
	Blocker  Entry         // OnWait: whom the acquire waits for; without Holder, Token, Session and Since
	Duration time.Duration // since the acquire began
	Held     time.Duration // how long the hold has lasted, until it was released or lost; 0 where there is none yet
	Time     time.Time     // when it happened, by this machine's clock: a hook may hear of it later
	Err      error
	// Context is the one that the acquire was called with. Tracers find the span in
	// it that the acquire belongs to; it may be done by now.
	Context context.Context
}

// hooked reports whether there are hooks.
func (o *Options) hooked() bool {
	return o.OnWait != nil || o.OnAcquire != nil || o.OnFail != nil || o.OnRelease != nil || o.OnLost != nil || o.OnJeopardy != nil
}

func (o *Options) check() error {
	switch {
	case o.SessionTimeout < 0:
		return fmt.Errorf("%w: SessionTimeout %v is negative", ErrInvalidOptions, o.SessionTimeout)
	case !(o.ClockDrift >= 0 && o.ClockDrift < 0.5): // and not a number
		return fmt.Errorf("%w: ClockDrift %v is not between 0 and 0.5", ErrInvalidOptions, o.ClockDrift)
	case o.ServerTick < 0:
		return fmt.Errorf("%w: ServerTick %v is negative", ErrInvalidOptions, o.ServerTick)
	case o.SyncHeartbeat && o.ServerTick == 0:
		return fmt.Errorf("%w: SyncHeartbeat needs ServerTick, the servers' tickTime", ErrInvalidOptions)
	case o.LockDelay < 0:
		return fmt.Errorf("%w: LockDelay %v is negative", ErrInvalidOptions, o.LockDelay)
	case o.LockDelay > 0 && o.Layout.names("").Nameless():
		return fmt.Errorf("%w: LockDelay needs names that say which attempt made them; %s has none", ErrInvalidOptions, o.Layout)
	}
	return o.Layout.check()
}

// checkTimeout refuses what a session of this timeout is too short for.
func (o *Options) checkTimeout(negotiated time.Duration) error {
	if o.SyncHeartbeat && negotiated < 4*o.ServerTick {
		return fmt.Errorf("%w: SyncHeartbeat needs a session of four ticks or more, and the servers, with ticks of %v, gave %v; ask for a longer SessionTimeout",
			ErrInvalidOptions, o.ServerTick, negotiated)
	}
	return nil
}

// client returns the options of the session.
func (o *Options) client() *zk.Options {
	return &zk.Options{
		SessionTimeout: o.SessionTimeout,
		Auth:           o.Auth,
		SASL:           o.SASL,
		TLS:            o.TLS,
		DialContext:    o.DialContext,
		Logger:         o.Logger,
	}
}
