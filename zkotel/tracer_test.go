package zkotel

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// traced connects a client with spans.
func traced(t *testing.T, srv *zktest.Server, opts Options, o zklock.Options) (*zklock.Client, *tracetest.SpanRecorder, *sdk.TracerProvider) {
	t.Helper()
	rec := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(rec))
	opts.Provider = provider
	o.SessionTimeout, o.DialContext = 8*time.Second, srv.DialContext
	Hook(&o, &opts)
	c, err := zklock.Dial(t.Context(), srv.Servers(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, rec, provider
}

// attr returns a span's attribute.
func attr(s sdk.ReadOnlySpan, key string) attribute.Value {
	i := slices.IndexFunc(s.Attributes(), func(kv attribute.KeyValue) bool { return string(kv.Key) == key })
	if i < 0 {
		return attribute.Value{}
	}
	return s.Attributes()[i].Value
}

// took returns the duration of a span.
func took(s sdk.ReadOnlySpan) time.Duration { return s.EndTime().Sub(s.StartTime()) }

// holdAndWait holds l for ten seconds while a Do with ctx waits for it. Do then holds it for three.
// It returns the first hold.
func holdAndWait(ctx context.Context, t *testing.T, l *zklock.Lock) *zklock.Hold {
	t.Helper()
	first, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { // ends with the lock
		done <- zklock.Do(ctx, l, func(context.Context, *zklock.Hold) error { time.Sleep(3 * time.Second); return nil })
	}()
	synctest.Wait()
	time.Sleep(10 * time.Second)
	if err := errors.Join(first.Release(t.Context()), <-done); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return first
}

// TestSpans checks the spans of a hold of ten seconds, and of one that waited for it, in virtual
// time.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		called := 0
		c, rec, provider := traced(t, srv, Options{Attributes: []attribute.KeyValue{attribute.String("team", "ops")}}, zklock.Options{OnWait: func(zklock.Event) { called++ }})
		ctx, request := provider.Tracer("test").Start(t.Context(), "request")
		first := holdAndWait(ctx, t, c.Mutex("a"))
		request.End()
		spans := rec.Ended()
		if len(spans) != 5 {
			t.Fatalf("%d spans: %v", len(spans), spans)
		}
		free, held, waited, hold := spans[0], spans[1], spans[2], spans[3]
		if held.Name() != "zklock hold" { // the release and the next grant happen at the same time
			held, waited = waited, held
		}
		for _, s := range spans[:4] {
			if attr(s, "zklock.path").AsString() != "/zklock/a" || attr(s, "zklock.mode").AsString() != "exclusive" || attr(s, "team").AsString() != "ops" {
				t.Errorf("%s: attributes %v", s.Name(), s.Attributes())
			}
			if s.Status().Code == codes.Error {
				t.Errorf("%s: %v", s.Name(), s.Status())
			}
		}
		if free.Name() != "zklock acquire" || took(free) != 0 || attr(free, "zklock.ahead").AsInt64() != 0 || attr(free, "zklock.outcome").AsString() != "acquired" || free.Parent().IsValid() {
			t.Errorf("the first acquire: %v %v %v", free.Name(), took(free), free.Attributes())
		}
		if held.Name() != "zklock hold" || took(held) != 10*time.Second || attr(held, "zklock.token").AsInt64() != first.Token() {
			t.Errorf("the first hold: %v %v %v", held.Name(), took(held), held.Attributes())
		}
		if waited.Name() != "zklock acquire" || took(waited) != 10*time.Second || attr(waited, "zklock.ahead").AsInt64() != 1 || len(waited.Events()) != 1 {
			t.Errorf("the second acquire: %v %v %v %v", waited.Name(), took(waited), waited.Attributes(), waited.Events())
		}
		if hold.Name() != "zklock hold" || took(hold) != 3*time.Second || len(hold.Links()) != 1 || hold.Links()[0].SpanContext.SpanID() != waited.SpanContext().SpanID() {
			t.Errorf("the second hold: %v %v %v", hold.Name(), took(hold), hold.Links())
		}
		for _, s := range []sdk.ReadOnlySpan{waited, hold} {
			if s.Parent().SpanID() != request.SpanContext().SpanID() || s.SpanContext().TraceID() != request.SpanContext().TraceID() {
				t.Errorf("%s is no child of the caller's span", s.Name())
			}
		}
		if called != 1 {
			t.Errorf("the program's own hook was called %d times", called)
		}
	})
}

// TestLocalHandoffHasSpanForEachHold checks the spans of holds that share a znode, and of acquires
// that wait in the client's own queue.
func TestLocalHandoffHasSpanForEachHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c, rec, _ := traced(t, srv, Options{}, zklock.Options{Owner: &zklock.Owner{Host: "mine", PID: 7}})
		h := holdAndWait(t.Context(), t, c.Mutex("a").LocalHandoff(2))
		spans := rec.Ended()
		if len(spans) != 4 {
			t.Fatalf("%d spans: %v", len(spans), spans)
		}
		for i, want := range []struct {
			name string
			took time.Duration
		}{{"zklock acquire", 0}, {"zklock hold", 10 * time.Second}, {"zklock acquire", 10 * time.Second}, {"zklock hold", 3 * time.Second}} {
			if s := spans[i]; s.Name() != want.name || took(s) != want.took || attr(s, "zklock.token").AsInt64() != h.Token() {
				t.Errorf("%s of %v with %v, want %s of %v", s.Name(), took(s), s.Attributes(), want.name, want.took)
			}
		}
		waited, hold := spans[2], spans[3]
		if e := waited.Events(); len(e) != 1 || !slices.Contains(e[0].Attributes, attribute.String("zklock.blocker", "mine:7")) || attr(waited, "zklock.ahead").AsInt64() != 1 {
			t.Errorf("the acquire that waited: %v %v", waited.Attributes(), e)
		}
		if hold.Links()[0].SpanContext.SpanID() != waited.SpanContext().SpanID() {
			t.Error("the hold that was handed off has no link to its acquire")
		}
	})
}

// TestOnlyFailuresAreErrors checks that a timeout or a cancellation is no error of a span, and a
// loss is.
func TestOnlyFailuresAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c, rec, _ := traced(t, srv, Options{}, zklock.Options{})
		h, err := c.Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mutex("a").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
			t.Error(err)
		}
		for _, bounded := range []func() (context.Context, context.CancelFunc){
			func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) },
			func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			},
		} {
			ctx, cancel := bounded()
			if _, err := c.Mutex("a").Acquire(ctx); err == nil {
				t.Error("a held lock was acquired")
			}
			cancel()
		}
		srv.Pause()
		<-h.Done()
		synctest.Wait()
		spans := rec.Ended()[1:] // without the acquire
		if len(spans) != 4 {
			t.Fatalf("%d spans: %v", len(spans), spans)
		}
		for i, want := range []string{"locked", "timeout", "cancelled"} {
			if s := spans[i]; s.Name() != "zklock acquire" || attr(s, "zklock.outcome").AsString() != want || s.Status().Code == codes.Error {
				t.Errorf("%s with outcome %v and status %v, want %s", s.Name(), attr(s, "zklock.outcome"), s.Status(), want)
			}
		}
		hold := spans[3]
		if hold.Name() != "zklock hold" || hold.Status().Code != codes.Error || len(hold.Events()) != 2 || hold.Events()[0].Name != "heartbeat overdue" {
			t.Errorf("%s with status %v and events %v", hold.Name(), hold.Status(), hold.Events())
		}
		srv.Resume()
		c.Close()
		if _, err := c.Mutex("a").Acquire(t.Context()); !errors.Is(err, zklock.ErrClosed) {
			t.Error(err)
		}
		synctest.Wait()
		last := rec.Ended()[len(rec.Ended())-1]
		if attr(last, "zklock.outcome").AsString() != "error" || last.Status().Code != codes.Error {
			t.Errorf("an acquire of a client that is closed: %v %v", last.Attributes(), last.Status())
		}
	})
}

// TestLateHeartbeatIsEventOfHold checks that the span of a hold shows a late heartbeat.
func TestLateHeartbeatIsEventOfHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c, rec, _ := traced(t, srv, Options{}, zklock.Options{})
		h, err := c.Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		srv.Pause()
		for c.Health().Heartbeat < c.Health().Timeout*3/8 { // later than a third of the timeout, and before the loss
			time.Sleep(100 * time.Millisecond)
		}
		srv.Resume()
		time.Sleep(5 * time.Second)
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var names []string
		for _, e := range rec.Ended()[1].Events() {
			names = append(names, e.Name)
		}
		if !slices.Equal(names, []string{"heartbeat overdue", "heartbeat answered again"}) {
			t.Errorf("the hold's events are %q", names)
		}
	})
}

// TestOnlyWithin checks that acquires without a trace have no span.
func TestOnlyWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c, rec, provider := traced(t, srv, Options{OnlyWithin: true}, zklock.Options{})
		nothing := func(context.Context, *zklock.Hold) error { return nil }
		ctx, span := provider.Tracer("test").Start(t.Context(), "request")
		for _, ctx := range []context.Context{t.Context(), ctx} {
			if err := zklock.Do(ctx, c.Mutex("a"), nothing); err != nil {
				t.Fatal(err)
			}
		}
		span.End()
		synctest.Wait()
		if n := len(rec.Ended()); n != 3 {
			t.Errorf("%d spans, want the caller's, its acquire's and its hold's", n)
		}
	})
}

// TestDefaults checks that the hooks accept events without a context, and without options.
func TestDefaults(t *testing.T) {
	var o zklock.Options
	Hook(&o, nil)
	e := zklock.Event{Path: "/a", Attempt: 1, Time: time.Now()}
	o.OnWait(e)
	o.OnAcquire(e)
	o.OnJeopardy(e)
	o.OnRelease(e)
	e.Err = zklock.ErrLost
	o.OnLost(e) // of an unknown hold
	o.OnJeopardy(e)
}
