// Package delivery tests what users get: the command as typed, on an ensemble; the
// embedded server under systemd; deb, rpm, and container images, installed on an
// overlay of this machine's file system; the guides, whose commands run in order and
// must print what the guides say; and what the documents say about tests and imports.
//
// Package ui tests the page in a browser.
package delivery

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

func TestMain(m *testing.M) {
	code := harness.Main(m)
	for _, s := range storages {
		if err := s.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// patience limits each wait for something that must come.
const patience = 5 * time.Minute
