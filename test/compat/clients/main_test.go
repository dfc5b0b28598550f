package clients

import (
	"flag"
	"os"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

var suites = flag.Bool("suites", false, "run the whole test suites of kazoo and go-zookeeper: many minutes")

func TestMain(m *testing.M) {
	if code, is := ServerChild(); is {
		os.Exit(code)
	}
	flag.Parse()
	os.Exit(harness.Main(m))
}
