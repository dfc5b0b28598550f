package process

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// alarm waits on a timer that also runs while the machine is suspended, so that a machine
// that resumes kills an overdue command first.
type alarm struct{ fd int }

// newAlarm makes the timer. If that fails, as before Linux 3.15, the alarm waits in steps.
func newAlarm() alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return alarm{-1}
	}
	return alarm{fd}
}

// poll waits for input or until a time, 0 for none.
func (a alarm) poll(until time.Duration) {
	if a.fd < 0 {
		pollUntil(until)
		return
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(until))}
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		pollUntil(until)
		return
	}
	pollFor(a.fd, -1)
}

// RunningProgram returns a path of the program that runs, whose file at exe an update can
// remove or replace: the processes that this one starts must be of the same version. The
// last element of the path becomes the name of such a process. It returns exe without /proc,
// and under an emulator, such as qemu-user, which /proc shows as the program that runs.
func RunningProgram(exe string) string {
	a, err := os.Stat(exe)
	b, failed := os.Stat(selfExe)
	if failed != nil || err == nil && !os.SameFile(a, b) {
		return exe
	}
	return selfExe
}

// selfExe is a path of the program that runs.
const selfExe = "/proc/self/exe"

// renameProcess gives the process the name WatchdogName. Otherwise "killall -9 zklock"
// would end the watchdog together with the wrapper, and the command would continue.
func renameProcess() {
	// The name of the process is the name of its first thread, which this file sets.
	_ = os.WriteFile("/proc/self/comm", []byte(WatchdogName), 0) // on failure it keeps its name
}

// pipeSize is enough for about 150 messages, which take about 20 session timeouts. A
// watchdog that has not read for so long is useless. The kernel uses at least a page.
const pipeSize = 4096

// shrinkPipe sets the size of a pipe to pipeSize.
func shrinkPipe(pipe *os.File) {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) // on failure it is larger
	})
}

// raisePriority gives this goroutine the highest priority, if that is permitted, as for
// root. The watchdog sleeps most of the time, but must not be late.
func raisePriority() {
	runtime.LockOSThread() // a priority belongs to a thread
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
}
