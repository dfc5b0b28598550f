//go:build !unix

package systemd

import "time"

// Sockets, Notify and Watchdog have nothing to do here.
func Sockets() ([]Socket, error) { return nil, nil }

// Notify does nothing.
func Notify(string) error { return nil }

// Watchdog is 0.
func Watchdog() time.Duration { return 0 }
