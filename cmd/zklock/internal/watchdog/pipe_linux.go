package watchdog

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize holds some 150 messages, as come in some 20 session timeouts: one who
// has not read for so long is of no use. The kernel gives at least a page.
const pipeSize = 4096

// shorten has a pipe fill up soon.
func shorten(pipe *os.File) {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) // else it is longer
	})
}
