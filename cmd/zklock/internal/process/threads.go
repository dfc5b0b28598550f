package process

import (
	"runtime"
	"sync"
)

// Numbers of threads for ReserveThreads: those of the calls that can block at the same time, and
// others.
const (
	// WrapperThreads is for `zklock run` while the command runs: the waits for the command, the
	// watchdog, the hook, signals, the network, the front, and the exec; standard error and the
	// file of --metrics; the orphans; the start of a watchdog; maxReads; and others.
	WrapperThreads = 11 + maxReads + others
	// watchdogThreads is for the watchdog: its own thread, the timers, maxReads, and others.
	watchdogThreads = 2 + maxReads + others
	// frontThreads is for the front: the waits for the keeper, its socket, signals, and the
	// timers, and others.
	frontThreads = 4 + others

	// others is maxRunning, and two for threads that have just returned from a call, or are about
	// to sleep.
	others = maxRunning + 2
	// maxRunning is how many threads run Go code at the same time.
	maxRunning = 2
	// maxReads is how many reads of the memory of other processes can block at the same time.
	maxReads = 4
)

// ReserveThreads makes the Go runtime create n threads, and limits how many of them run Go code
// at the same time. The runtime keeps its threads.
//
// On Linux, a limit on processes (ulimit -u, pids.max) counts threads. If the command uses it up,
// the runtime cannot create a thread, and then it ends this process. So a process that must
// outlive the command reserves its threads before the command starts.
func ReserveThreads(n int) {
	if runtime.GOOS != "linux" {
		return
	}
	runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), maxRunning))
	var locked, ended sync.WaitGroup
	release := make(chan struct{})
	locked.Add(n)
	for range n {
		ended.Go(func() { // ends when all of them have a thread
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked.Done()
			<-release
		})
	}
	locked.Wait()
	close(release)
	ended.Wait()
	// This waits for the threads that are still being created, because it stops all threads.
	runtime.ReadMemStats(&runtime.MemStats{})
}
