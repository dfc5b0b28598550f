package watchdog

import "os"

// program is how the program exe is to be started: by a path whose last part,
// which a process goes by until it says otherwise, is not the program's.
func program(exe string) string {
	const self = "/proc/self/exe"
	a, err := os.Stat(exe)
	if err != nil {
		return exe
	}
	if b, err := os.Stat(self); err != nil || !os.SameFile(a, b) {
		return exe
	}
	return self
}

// rename has the process go by a name of its own: "killall -9 zklock" would else
// end the watchdog together with the wrapper, and of what the command has started
// nobody would be left to end any of it.
func rename() {
	// The file is that of the process's first thread, by whose name it goes.
	_ = os.WriteFile("/proc/self/comm", []byte(Name), 0) // without, it goes by the program's
}
