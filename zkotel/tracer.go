package zkotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/zklock/zklock"
)

// scope is the name of the instrumentation.
const scope = "github.com/zklock/zklock/zkotel"

// Options configure [Hook]. The zero value works.
type Options struct {
	// Provider creates the tracer. Nil means the global one of OpenTelemetry at the time of
	// the call to Hook.
	Provider trace.TracerProvider
	// Attributes are added to every span, in addition to the documented ones.
	Attributes []attribute.KeyValue
	// OnlyWithin omits spans of acquires whose context has no span.
	OnlyWithin bool
}

// Hook adds hooks that create spans to o, for Dial or New. Hooks that are already in o are
// also called. A nil opts means the zero Options. Call Hook once for each client.
func Hook(o *zklock.Options, opts *Options) {
	t := &tracer{acquires: map[uint64]trace.Span{}, holds: map[uint64]trace.Span{}}
	if opts != nil {
		t.opts = *opts
	}
	if t.opts.Provider == nil {
		t.opts.Provider = otel.GetTracerProvider()
	}
	t.tracer = t.opts.Provider.Tracer(scope, trace.WithInstrumentationVersion(zklock.Version))
	o.OnWait = both(t.waits, o.OnWait)
	o.OnAcquire = both(t.acquired, o.OnAcquire)
	o.OnFail = both(t.failed, o.OnFail)
	o.OnRelease = both(t.ended, o.OnRelease)
	o.OnLost = both(t.ended, o.OnLost)
	o.OnJeopardy = both(t.endangered, o.OnJeopardy)
}

// both returns a hook that calls first and second. second may be nil.
func both(first, second func(zklock.Event)) func(zklock.Event) {
	if second == nil {
		return first
	}
	return func(e zklock.Event) {
		first(e)
		second(e)
	}
}

// tracer creates the spans of one client. The client calls its hooks one at a time, so
// tracer needs no mutex.
type tracer struct {
	opts     Options
	tracer   trace.Tracer
	acquires map[uint64]trace.Span // acquires in progress, by attempt
	holds    map[uint64]trace.Span
}

// start starts a span for an event. It reports false if the options omit the span.
func (t *tracer) start(e zklock.Event, name string, opts ...trace.SpanStartOption) (trace.Span, bool) {
	ctx := e.Context
	if ctx == nil {
		ctx = context.Background()
	}
	if t.opts.OnlyWithin && !trace.SpanContextFromContext(ctx).IsValid() {
		return nil, false
	}
	opts = append(opts, trace.WithAttributes(t.opts.Attributes...), trace.WithAttributes(
		attribute.String("zklock.path", e.Path), attribute.String("zklock.mode", string(e.Mode))))
	_, span := t.tracer.Start(ctx, name, opts...)
	return span, true
}

// acquire returns the span of an event's acquire, and starts it if there is none.
func (t *tracer) acquire(e zklock.Event, ahead int) (trace.Span, bool) {
	if span := t.acquires[e.Attempt]; span != nil {
		return span, true
	}
	span, ok := t.start(e, "zklock acquire", trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(e.Time.Add(-e.Duration)))
	if ok {
		t.acquires[e.Attempt] = span
		span.SetAttributes(attribute.Int("zklock.ahead", ahead))
	}
	return span, ok
}

func (t *tracer) waits(e zklock.Event) {
	span, ok := t.acquire(e, e.Ahead)
	if !ok {
		return
	}
	blocker := e.Blocker.Owner.String()
	if blocker == "" {
		blocker = e.Blocker.Name
	}
	span.AddEvent("waits", trace.WithTimestamp(e.Time), trace.WithAttributes(
		attribute.Int("zklock.ahead", e.Ahead), attribute.String("zklock.blocker", blocker)))
}

func (t *tracer) acquired(e zklock.Event) {
	span, ok := t.acquire(e, 0)
	if !ok {
		return
	}
	delete(t.acquires, e.Attempt)
	span.SetAttributes(attribute.String("zklock.outcome", "acquired"), token(e))
	span.End(trace.WithTimestamp(e.Time))
	if hold, ok := t.start(e, "zklock hold", trace.WithTimestamp(e.Time), trace.WithLinks(trace.Link{SpanContext: span.SpanContext()})); ok {
		hold.SetAttributes(token(e))
		t.holds[e.Attempt] = hold
	}
}

func token(e zklock.Event) attribute.KeyValue { return attribute.Int64("zklock.token", e.Token) }

func (t *tracer) failed(e zklock.Event) {
	span, ok := t.acquire(e, 0)
	if !ok {
		return
	}
	delete(t.acquires, e.Attempt)
	how := outcome(e.Err)
	span.SetAttributes(attribute.String("zklock.outcome", how))
	if how == "error" { // the other outcomes are not errors
		span.RecordError(e.Err, trace.WithTimestamp(e.Time))
		span.SetStatus(codes.Error, e.Err.Error())
	}
	span.End(trace.WithTimestamp(e.Time))
}

// outcome returns how an acquire failed.
func outcome(err error) string {
	switch {
	case errors.Is(err, zklock.ErrLocked):
		return "locked"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "error"
}

// ended ends the span of a hold that was released or lost.
func (t *tracer) ended(e zklock.Event) {
	span := t.holds[e.Attempt]
	if span == nil {
		return
	}
	delete(t.holds, e.Attempt)
	if e.Err != nil {
		span.RecordError(e.Err, trace.WithTimestamp(e.Time))
		span.SetStatus(codes.Error, e.Err.Error())
	}
	span.End(trace.WithTimestamp(e.Time))
}

func (t *tracer) endangered(e zklock.Event) {
	span := t.holds[e.Attempt]
	if span == nil {
		return
	}
	name := "heartbeat answered again"
	if e.Err != nil {
		name = "heartbeat overdue"
	}
	span.AddEvent(name, trace.WithTimestamp(e.Time))
}
