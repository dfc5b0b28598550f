// Package systemd speaks the two small protocols by which systemd and others
// start services: sockets that are handed over open (sd_listen_fds), and the
// word that the service is ready (sd_notify). Elsewhere than on Unix it does
// nothing.
package systemd

import "net"

// Socket is a listening socket that was handed over.
type Socket struct {
	// Name is its FileDescriptorName, "unknown" where whoever started us gave
	// none, as systemd does.
	Name string
	net.Listener
}

// Words for Notify.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	Alive    = "WATCHDOG=1"
)
