package watchdog

import (
	"time"

	"golang.org/x/sys/unix"
)

// alarm waits on a timer that goes on through a suspend, so that a machine
// that wakes kills first and works afterwards.
type alarm struct{ fd int }

// newAlarm makes the timer; without one it polls every second.
func newAlarm() alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return alarm{-1}
	}
	return alarm{fd}
}

// poll waits for input or until the moment, 0 for none.
func (a alarm) poll(until time.Duration) {
	if a.fd < 0 {
		pollFor(-1, time.Second)
		return
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(until))}
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		pollFor(-1, time.Second)
		return
	}
	pollFor(a.fd, -1)
}
