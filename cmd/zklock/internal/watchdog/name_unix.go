//go:build unix && !linux

package watchdog

// program is the program itself.
func program(exe string) string { return exe }

// rename does nothing here: a process goes by its program's name.
func rename() {}
