//go:build !unix

package zkserver

import "net"

// takesReserved and outOfMemory always report false: this system has no way to know.
func takesReserved(net.Conn) bool { return false }

func outOfMemory(error) bool { return false }

// openDescriptors and maxDescriptors return -1 for unknown.
func openDescriptors() int { return -1 }

func maxDescriptors() int64 { return -1 }
