package process

import (
	"fmt"
	"os"
	"testing"
)

// asHelper has the helper processes that the test binary can run instead of tests, each with the
// condition for it. Tests for one system add theirs.
var asHelper = []func() (exit int, is bool){
	func() (int, bool) {
		if os.Getenv("BOOT_PRINT") == "" {
			return 0, false
		}
		fmt.Print(int64(BootTime()))
		return 0, true
	},
}

// TestMain lets the test binary be a helper process: a second reader of the clock, the
// process that becomes the command, the watchdog, or a process that inherits files.
func TestMain(m *testing.M) {
	for _, helper := range asHelper {
		if exit, is := helper(); is {
			os.Exit(exit)
		}
	}
	os.Exit(m.Run())
}
