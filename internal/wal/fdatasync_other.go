//go:build !linux

package wal

import "os"

// fdatasync makes a file durable by what os.File has: F_FULLFSYNC on
// Darwin, FlushFileBuffers on Windows, fsync elsewhere.
func fdatasync(f *os.File) error { return f.Sync() }

// dropCache does nothing: a file is read back from wherever the system has it.
func dropCache(*os.File) error { return nil }
