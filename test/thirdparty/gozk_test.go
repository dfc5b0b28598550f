package thirdparty

import "testing"

func TestGoZookeeper(t *testing.T) { Same(t, noSweep, GoZookeeper) }
