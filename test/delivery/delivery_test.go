// Package delivery tests what users install and read: the command on an ensemble, the
// embedded server under systemd, the deb, rpm, and container images, the commands and
// output of the guides, and the tests, files, and links that documents name.
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

// patience limits each wait for an expected event.
const patience = 5 * time.Minute
