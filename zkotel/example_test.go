package zkotel_test

import (
	"context"
	"fmt"
	"log"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zkotel"
	"github.com/zklock/zklock/zkserver"
)

// The spans of the acquire and the hold are children of the request's span.
func ExampleHook() {
	spans := tracetest.NewInMemoryExporter() // a program sends them to a collector
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))

	released := make(chan struct{})
	opts := &zklock.Options{OnRelease: func(zklock.Event) { close(released) }}
	zkotel.Hook(opts, &zkotel.Options{Provider: provider})
	c := connect(opts)
	defer c.Close()

	ctx, request := provider.Tracer("shop").Start(context.Background(), "book")
	err := zklock.Do(ctx, c.Mutex("stock"), func(context.Context, *zklock.Hold) error { return nil })
	if err != nil {
		log.Fatal(err)
	}
	request.End()
	<-released // hooks run in their own goroutine

	children := map[string]bool{}
	for _, s := range spans.GetSpans() {
		children[s.Name] = s.Parent.SpanID() == request.SpanContext().SpanID()
	}
	fmt.Println("acquire within the request:", children["zklock acquire"])
	fmt.Println("hold within the request:", children["zklock hold"])
	// Output:
	// acquire within the request: true
	// hold within the request: true
}

// connect starts a server, and returns a client of it.
func connect(opts *zklock.Options) *zklock.Client {
	srv, err := zkserver.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	opts.DialContext = srv.DialContext
	c, err := zklock.Dial(context.Background(), "embedded:2181", opts)
	if err != nil {
		log.Fatal(err)
	}
	return c
}
