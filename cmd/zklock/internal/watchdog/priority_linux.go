package watchdog

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// hurry has this goroutine run ahead of others on a busy machine, where that is
// permitted, as it is to root. The watchdog sleeps nearly always, and when it has
// something to do there is a moment that it must not miss.
func hurry() {
	runtime.LockOSThread() // a priority is a thread's
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
}
