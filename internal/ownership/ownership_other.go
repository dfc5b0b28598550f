//go:build !unix

package ownership

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// NoFollow is nothing: links are followed here.
const NoFollow = 0

// NoWait is nothing: there are no pipes with names in directories here.
const NoWait = 0

// onlyDir is nothing: a dot is a name in the paths that Windows does not normalize.
const onlyDir = ""

// CheckLinks refuses nothing here.
func CheckLinks(string) error { return nil }

// Resolve follows the links of any user here.
func Resolve(path string) (real string, file fs.FileInfo, err error) {
	if real, err = filepath.EvalSymlinks(path); err == nil {
		file, err = os.Stat(real)
	}
	if err != nil {
		return path, nil, nil
	}
	return real, file, nil
}

// CheckParents refuses nothing here.
func CheckParents(string) error { return nil }

// checkOpened refuses nothing here.
func checkOpened(string, fs.FileInfo) error { return nil }

// CheckDir refuses nothing here.
func CheckDir(string) error { return nil }

// GroupWritable is unknown on this system.
func GroupWritable(string) bool { return false }

// ReadableByAll is unknown on this system.
func ReadableByAll(string) bool { return false }

// Other is unknown on this system.
func Other(fs.FileInfo) (uid int, other bool) { return -1, false }

// Exposed returns "", because the mode does not show which users may read a file here.
func Exposed(fs.FileInfo) string { return "" }

// flock does nothing, because directories cannot be locked here.
func flock(*os.File, time.Time) error { return nil }
