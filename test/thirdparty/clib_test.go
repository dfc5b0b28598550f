package thirdparty

import "testing"

func TestCLibrary(t *testing.T) {
	program := compileC(t)
	Same(t, noSweep, func(t *testing.T, addr string) []string { return CLibrary(t, program, addr) })
}

func TestCliMt(t *testing.T) { Same(t, noSweep, CliMt) }
