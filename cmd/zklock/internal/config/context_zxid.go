package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/zklock/zklock/internal/inputfile"
)

// ZxidFile returns the file in a directory that keeps the highest transaction id of the context
// with an id.
func ZxidFile(dir, id string) string { return filepath.Join(dir, "zxid-"+id) }

// LastZxid returns the transaction id in a file, 0 if there is no valid one.
func LastZxid(path string) int64 {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return 0
	}
	const longest = 32 // bytes; more than a number and a line break need
	text, _, err := inputfile.Read(path, longest)
	if err != nil {
		return 0
	}
	zxid, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return max(zxid, 0)
}

// RaiseZxid writes a transaction id into a file, unless the file has a higher one.
func RaiseZxid(path string, zxid int64) error {
	if zxid <= LastZxid(path) {
		return nil
	}
	if err := replace(path, fmt.Appendln(nil, zxid)); err != nil {
		return fmt.Errorf("keep the transaction id in %s: %w", path, err)
	}
	return nil
}
