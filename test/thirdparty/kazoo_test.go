package thirdparty

import "testing"

func TestKazoo(t *testing.T) { Same(t, noSweep, Kazoo) }
