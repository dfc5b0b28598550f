package thirdparty

import (
	"testing"
	"time"
)

func TestCurator(t *testing.T) {
	path := compileCurator(t)
	Same(t, noSweep, func(t *testing.T, addr string) []string { return Curator(t, path, addr) })
}

// TestCuratorCollection: both servers collect containers and nodes past their time
// to live, and what must stay stays.
func TestCuratorCollection(t *testing.T) {
	path := compileCurator(t)
	Same(t, time.Second, func(t *testing.T, addr string) []string { return Curator(t, path, addr, "collection") })
}
