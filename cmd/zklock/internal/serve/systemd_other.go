//go:build !unix

package serve

import "time"

// Sockets returns nothing here.
func Sockets() ([]Socket, error) { return nil, nil }

// Notify does nothing.
func Notify(string) error { return nil }

// Watchdog returns 0.
func Watchdog() time.Duration { return 0 }
