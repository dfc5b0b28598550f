package zkserver

import "sync/atomic"

// counters are counted by whichever goroutine sees the event, from the start of
// the server on, and never reset. Stats has what each of them means.
type counters struct {
	accepted atomic.Int64

	refusedPerAddress, refusedTotal, refusedByOption atomic.Int64

	cutSlow, cutHandshake, cutFrame, cutBroken atomic.Int64

	throttled, delayedProofs atomic.Int64

	tlsHandshakeFailures, tlsReloads, tlsReloadFailures atomic.Int64

	snapshotsWritten, snapshotsFailed, storageErrors atomic.Int64
}
