//go:build !unix

package config

import "io/fs"

// private returns nil, because it cannot tell which users may read a file here.
func private(string, fs.FileInfo) error { return nil }
