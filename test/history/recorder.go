package history

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// Recorder writes down what the clients of one process do. Its methods, and
// those of its attempts, may be called from any goroutine.
//
// Its clock never stands still: where package time's does, as in a bubble of
// testing/synctest, each event is a nanosecond after the one before, so that
// the order in which things happened is in their times.
type Recorder struct {
	now func() int64
	out io.Writer // nil where events are kept in memory

	mu      sync.Mutex // guards what follows, and orders writes to out
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

// RecordTo begins one process's part of a history of several, for [Merge]: on the
// clock of [Monotonic], with attempts numbered from first on, and with one write
// to out for each line, so that what was written outlives a SIGKILL.
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

// Err says what kept events from being written, if anything did.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// History returns what was written down until now, of a history in memory.
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

// id gives the next attempt its name.
func (r *Recorder) id() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids++
	return r.ids
}

// until asks a hold how long it holds, and turns that into a time of the clock
// that is not later than the truth.
func (r *Recorder) until(remaining func() time.Duration) int64 {
	before := r.now()
	return before + int64(remaining())
}

// Expire is about to end a session, for an operator. The returned function is
// told how that went.
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

// Meddle is about to take something of these claims' paths away, for an operator.
// The returned function is told how that went.
func (r *Recorder) Meddle(claims ...Claim) func(error) {
	id := r.id()
	r.add(Event{Kind: Invoke, Op: Meddle, ID: id, Claims: slices.Clone(claims)})
	return func(err error) {
		if err != nil {
			r.add(Event{Kind: Info, Op: Meddle, ID: id, Err: err.Error()})
			return
		}
		r.add(Event{Kind: OK, Op: Meddle, ID: id})
	}
}

// Killing is called before the process of a client is killed.
func (r *Recorder) Killing(client string) { r.add(Event{Kind: OK, Op: Kill, Client: client}) }

// Healed is called when no fault is left.
func (r *Recorder) Healed() { r.add(Event{Kind: OK, Op: Heal}) }

// Acquire is about to be called by the client.
func (r *Recorder) Acquire(client string, try bool, claims ...Claim) *Attempt {
	return r.acquire(Event{Client: client, Try: try, Claims: slices.Clone(claims)})
}

func (r *Recorder) acquire(e Event) *Attempt {
	e.Kind, e.Op, e.ID = Invoke, Acquire, r.id()
	r.add(e)
	return &Attempt{recorder: r, id: e.ID, client: e.Client}
}

// Attempt writes down one acquire and what becomes of its hold.
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

// Again is about to enter the hold again by an acquire under its context.
func (a *Attempt) Again(try bool, claims ...Claim) *Attempt {
	return a.recorder.acquire(Event{Client: a.client, Try: try, Claims: slices.Clone(claims), Outer: a.id})
}

// Granted is called as soon as the acquire has returned a hold.
func (a *Attempt) Granted(token, session int64, remaining func() time.Duration) {
	a.add(Event{Kind: OK, Op: Acquire, Token: token, Session: session, Until: a.recorder.until(remaining)})
}

// Failed is called when the acquire has returned an error. Nothing is held then.
func (a *Attempt) Failed(err error, locked bool) {
	a.add(Event{Kind: Fail, Op: Acquire, Locked: locked, Err: err.Error()})
}

// Held asks the hold whether it is held, and notes what it said.
func (a *Attempt) Held(err func() error, remaining func() time.Duration) error {
	until := a.recorder.until(remaining)
	e := err()
	if e != nil {
		a.Lost(e)
		return e
	}
	a.add(Event{Kind: OK, Op: Look, Until: until})
	return nil
}

// Lost is called when the hold has said that it is lost.
func (a *Attempt) Lost(err error) { a.add(Event{Kind: Fail, Op: Look, Err: err.Error()}) }

// Writing is about to ask the resource, with the hold's token. The returned
// function is told at which place in the resource's order it acted, 0 if it
// refused, or why nobody knows.
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

// Downgrading is about to downgrade. The returned function is told the outcome:
// Info where it may have been done nevertheless.
func (a *Attempt) Downgrading() func(Kind, error) { return a.begin(Downgrade) }

// Releasing is about to release. The returned function is told the outcome: Fail
// where the hold was lost before, Info where the release is not confirmed.
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
