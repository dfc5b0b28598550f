package thirdparty

import "testing"

func TestZkCli(t *testing.T) { Same(t, noSweep, ZkCli) }
