package serve

import "net"

// systemd*.go implement two protocols of systemd and other service managers: open sockets
// that they pass (sd_listen_fds), and messages such as READY (sd_notify). On other systems
// than Unix they do nothing.

// Socket is a listening socket that a service manager passed.
type Socket struct {
	// Name is its FileDescriptorName, "unknown" if there is none, as systemd sets it.
	Name string
	net.Listener
}

// Messages for Notify.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	Alive    = "WATCHDOG=1"
)
