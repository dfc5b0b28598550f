//go:build !unix

package process

// CloseInherited does nothing: only named handles are inherited.
func CloseInherited(...int) {}

// Inherited is always true, because it cannot be known.
func Inherited(int) bool { return true }

// InheritedFiles returns nothing: no name of a file means a handle.
func InheritedFiles([]string) []int { return nil }

// CloseOnExec does nothing.
func CloseOnExec(int) {}
