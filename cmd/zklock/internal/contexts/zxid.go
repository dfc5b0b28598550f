package contexts

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ZxidFile returns the file in a directory that keeps the highest transaction id
// that was seen of a context.
func ZxidFile(dir, context string) string { return filepath.Join(dir, "zxid-"+context) }

// LastZxid returns the transaction id in a file, 0 if there is none that makes sense:
// then nothing was seen.
func LastZxid(path string) int64 {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return 0
	}
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	const longest = 32 // bytes of a number and a line break, and to spare
	text, err := io.ReadAll(io.LimitReader(file, longest))
	if err != nil {
		return 0
	}
	zxid, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return max(zxid, 0)
}

// RaiseZxid writes a transaction id into a file, unless a higher one is there.
func RaiseZxid(path string, zxid int64) error {
	if zxid <= LastZxid(path) {
		return nil
	}
	if err := replace(path, fmt.Appendln(nil, zxid)); err != nil {
		return fmt.Errorf("keep the transaction id of a context: %w", err)
	}
	return nil
}
