// Package clitest has what tests of several packages of the command need.
package clitest

import (
	"io"
	"os"
	"testing"
	"time"
)

// Stderr returns what f writes to standard error, which must be less than a pipe holds.
func Stderr(tb testing.TB, f func()) string {
	tb.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	old := os.Stderr
	os.Stderr = w
	f()
	os.Stderr = old
	_ = w.Close() // the test reads what was written
	text, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// BlockStderr replaces standard error with a full pipe, so that writes to it block until the
// test reads from the pipe's other end, which it returns. restore closes both ends.
func BlockStderr(tb testing.TB) (text *os.File, restore func()) {
	tb.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := w.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		tb.Skipf("no deadlines for pipes there: %v", err)
	}
	for err == nil {
		_, err = w.Write(make([]byte, 1<<10))
	}
	_ = w.SetWriteDeadline(time.Time{}) // the first one was accepted
	old := os.Stderr
	os.Stderr = w
	return r, func() {
		os.Stderr = old
		_, _ = w.Close(), r.Close() // only the test used them
	}
}
