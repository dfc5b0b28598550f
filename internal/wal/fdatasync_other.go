//go:build !linux

package wal

import "os"

// fdatasync makes a file durable with os.File.Sync: F_FULLFSYNC on Darwin,
// FlushFileBuffers on Windows, fsync elsewhere.
func fdatasync(f *os.File) error { return f.Sync() }

// dropCache does nothing: reads may come from the page cache.
func dropCache(*os.File) error { return nil }

// freeSpace reports that the free space is not known.
func freeSpace(*os.File) (free int64, known bool) { return 0, false }
