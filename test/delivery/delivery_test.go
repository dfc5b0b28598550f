// Package delivery tests what users get: the command as typed, on an ensemble; the
// embedded server under systemd; deb, rpm, and container images, installed on an
// overlay of this machine's file system; the guides, whose commands run in order and
// must print what the guides say; and what the documents say about tests and imports.
//
// Package ui tests the page in a browser.
package delivery

import (
	"os"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// patience limits each wait for something that must come.
const patience = time.Minute
