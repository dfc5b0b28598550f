//go:build !unix

package zkserver

// openDescriptors and maxDescriptors are unknown here.
func openDescriptors() int { return -1 }

func maxDescriptors() int64 { return -1 }
