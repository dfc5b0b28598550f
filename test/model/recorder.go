package model

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// Recorder records the operations of the clients of one process. Its methods, and those of
// its attempts, may be called from any goroutine.
//
// If package time's clock does not advance, as in a bubble of testing/synctest, each event
// is a nanosecond later than the previous one. So the times show the order of events.
type Recorder struct {
	now func() int64
	out io.Writer // nil if events are kept in memory

	mu      sync.Mutex // guards the fields below, and orders writes to out
	history History
	last    int64
	ids     int
	err     error // of out
}

// NewRecorder begins a history in memory.
func NewRecorder(name string, seed uint64) *Recorder {
	begun := time.Now()
	return &Recorder{now: func() int64 { return int64(time.Since(begun)) }, history: History{Name: name, Seed: seed}}
}

// RecordTo begins the part of one process of a history for [Merge]. It uses the clock
// [Monotonic], numbers attempts from first on, and writes each line to out at once, so that
// the lines survive a SIGKILL.
func RecordTo(out io.Writer, name string, seed uint64, first int) *Recorder {
	r := &Recorder{now: Monotonic, out: out, ids: first - 1}
	r.write(header{Name: name, Seed: seed})
	return r
}

// write appends a line to out.
func (r *Recorder) write(v any) {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = r.out.Write(append(line, '\n'))
	}
	r.err = errors.Join(r.err, err)
}

// Err returns the first error of a write.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// History returns the history so far, if it is in memory.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.Clone()
}

// add writes an event and returns its time.
func (r *Recorder) add(e Event) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last+1, r.now())
	e.At = r.last
	if r.out != nil {
		r.write(e)
		return e.At
	}
	r.history.Events = append(r.history.Events, e)
	return e.At
}

// id returns the ID of the next attempt.
func (r *Recorder) id() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids++
	return r.ids
}

// until returns the deadline of a hold on the recorder's clock. The result is not later
// than the real deadline.
func (r *Recorder) until(remaining func() time.Duration) int64 {
	before := r.now()
	return before + int64(remaining())
}

// Expire records that an operator is about to end a session. The caller passes the result
// to the returned function.
func (r *Recorder) Expire(session int64) func(error) {
	id := r.id()
	r.add(Event{Kind: Invoke, Op: Expire, ID: id, Session: session})
	return func(err error) {
		if err != nil {
			r.add(Event{Kind: Info, Op: Expire, ID: id, Session: session, Err: err.Error()})
			return
		}
		r.add(Event{Kind: OK, Op: Expire, ID: id, Session: session})
	}
}

// Tamper records that an operator is about to change the claims' paths. The caller passes
// the result to the returned function.
func (r *Recorder) Tamper(claims ...Claim) func(error) {
	id := r.id()
	r.add(Event{Kind: Invoke, Op: Tamper, ID: id, Claims: slices.Clone(claims)})
	return func(err error) {
		if err != nil {
			r.add(Event{Kind: Info, Op: Tamper, ID: id, Err: err.Error()})
			return
		}
		r.add(Event{Kind: OK, Op: Tamper, ID: id})
	}
}

// Killing records that the process of a client is about to be killed.
func (r *Recorder) Killing(client string) { r.add(Event{Kind: OK, Op: Kill, Client: client}) }

// Healed records that all faults have ended.
func (r *Recorder) Healed() { r.add(Event{Kind: OK, Op: Heal}) }

// Acquire records that a client is about to acquire.
func (r *Recorder) Acquire(client string, try bool, claims ...Claim) *Attempt {
	return r.acquire(Event{Client: client, Try: try, Claims: slices.Clone(claims)})
}

func (r *Recorder) acquire(e Event) *Attempt {
	e.Kind, e.Op, e.ID = Invoke, Acquire, r.id()
	r.add(e)
	return &Attempt{recorder: r, id: e.ID, client: e.Client}
}

// Attempt records one acquire and its hold.
type Attempt struct {
	recorder *Recorder
	id       int
	client   string
}

// add writes an event of the attempt.
func (a *Attempt) add(e Event) {
	e.ID, e.Client = a.id, a.client
	a.recorder.add(e)
}

// Reenter records that the client is about to acquire the lock again, with the context of
// the hold.
func (a *Attempt) Reenter(try bool, claims ...Claim) *Attempt {
	return a.recorder.acquire(Event{Client: a.client, Try: try, Claims: slices.Clone(claims), Outer: a.id})
}

// Granted records that the acquire has returned a hold.
func (a *Attempt) Granted(token, session int64, remaining func() time.Duration) {
	a.add(Event{Kind: OK, Op: Acquire, Token: token, Session: session, Until: a.recorder.until(remaining)})
}

// Failed records that the acquire has returned an error.
func (a *Attempt) Failed(err error, locked bool) {
	a.add(Event{Kind: Fail, Op: Acquire, Locked: locked, Err: err.Error()})
}

// Held checks the hold and records the result.
func (a *Attempt) Held(err func() error, remaining func() time.Duration) error {
	until := a.recorder.until(remaining)
	e := err()
	if e != nil {
		a.Lost(e)
		return e
	}
	a.add(Event{Kind: OK, Op: Observe, Until: until})
	return nil
}

// Verify asks the servers about the hold. If they confirm it, Verify records that the lock
// was held at the time of the request. It does not record an error.
func (a *Attempt) Verify(verify func() error) error {
	requested := a.recorder.now()
	err := verify()
	if err == nil {
		a.add(Event{Kind: OK, Op: Observe, Until: requested})
	}
	return err
}

// Lost records that the hold is lost.
func (a *Attempt) Lost(err error) { a.add(Event{Kind: Fail, Op: Observe, Err: err.Error()}) }

// Writing records that the client is about to write to the resource with the hold's token.
// The caller passes to the returned function the place of the write in the resource's
// order, 0 if the resource refused the write, or an error.
func (a *Attempt) Writing(token int64) func(place int64, err error) {
	a.add(Event{Kind: Invoke, Op: Write, Token: token})
	return func(place int64, err error) {
		e := Event{Kind: Fail, Op: Write, Token: token}
		if err != nil {
			e.Kind, e.Err = Info, err.Error()
		} else if place > 0 {
			e.Kind, e.Place = OK, place
		}
		a.add(e)
	}
}

// Downgrading records that the client is about to downgrade the hold. The caller passes the
// outcome to the returned function: Info if the downgrade may have been applied.
func (a *Attempt) Downgrading() func(Kind, error) { return a.begin(Downgrade) }

// Releasing records that the client is about to release the hold. The caller passes the
// outcome to the returned function: Fail if the hold was lost before, Info if the release
// is not confirmed.
func (a *Attempt) Releasing() func(Kind, error) { return a.begin(Release) }

func (a *Attempt) begin(op Op) func(Kind, error) {
	a.add(Event{Kind: Invoke, Op: op})
	return func(kind Kind, err error) {
		e := Event{Kind: kind, Op: op}
		if err != nil {
			e.Err = err.Error()
		}
		a.add(e)
	}
}
