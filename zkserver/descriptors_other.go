//go:build !unix

package zkserver

import "net"

// takesReserved and outOfMemory can't be told here.
func takesReserved(net.Conn) bool { return false }

func outOfMemory(error) bool { return false }

// openDescriptors and maxDescriptors are unknown here.
func openDescriptors() int { return -1 }

func maxDescriptors() int64 { return -1 }
