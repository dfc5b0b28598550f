package zkserver

import (
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// BenchmarkCreateDelete measures the lower bound of a lock's latency on an idle server: a create
// and a delete, one after the other. With a directory, each needs a sync.
func BenchmarkCreateDelete(b *testing.B) {
	for _, kind := range []string{"memory", "disk"} {
		b.Run(kind, func(b *testing.B) {
			c := benchClient(b, kind == "disk")
			b.ReportAllocs()
			for b.Loop() {
				c.create("/n", wire.ModeEphemeral)
				c.do(wire.OpDelete, &wire.DeleteRequest{Path: "/n", Version: -1})
			}
		})
	}
}

// BenchmarkPipelined measures the time per request with many requests in flight, over loopback
// TCP.
func BenchmarkPipelined(b *testing.B) {
	for _, kind := range []string{"memory", "disk"} {
		b.Run(kind, func(b *testing.B) {
			c := benchClient(b, kind == "disk")
			c.create("/n", wire.ModePersistent)
			b.ReportAllocs()
			b.ResetTimer()
			done := make(chan error, 1)
			go func() {
				for range b.N {
					if _, _, err := c.next(); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
			var buf []byte
			for i := range b.N {
				buf = wire.AppendRequest(buf, int32(i), wire.OpSetData, &wire.SetDataRequest{Path: "/n", Version: -1})
				if len(buf) > 4000 || i == b.N-1 {
					c.write(buf)
					buf = buf[:0]
				}
			}
			must(b, <-done)
		})
	}
}

// benchClient returns a client of a new server, over loopback TCP.
func benchClient(b *testing.B, durable bool) *rawClient {
	opts := testOptions(b)
	opts.Logger = discard()
	if durable {
		opts.DataDir = b.TempDir()
	}
	s := start(b, opts)
	c := dialTCP(b, listenTCP(b, s))
	c.nc.SetDeadline(time.Time{})
	return c
}
