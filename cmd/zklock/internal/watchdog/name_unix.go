//go:build unix && !linux

package watchdog

// rename does nothing here: a process goes by its program's name.
func rename() {}
