package watchdog

import "os"

// procName is what the watchdog is called, 15 bytes at most.
const procName = "zkl-watchdog"

// rename has the process go by a name of its own: "killall -9 zklock" would else
// end the watchdog together with the wrapper, and of what the command has started
// nobody would be left to end any of it.
func rename() {
	// The file is that of the process's first thread, by whose name it goes.
	_ = os.WriteFile("/proc/self/comm", []byte(procName), 0) // without, it goes by the program's
}
