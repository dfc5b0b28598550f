package ownership

import (
	"os"
	"path/filepath"
)

// Absolute makes a path absolute. Unlike [filepath.Abs] it keeps each "..", which leads
// elsewhere after a link, and the paths of Windows that name a drive or begin at its root.
func Absolute(path string) (string, error) {
	if filepath.VolumeName(path) != "" || path != "" && os.IsPathSeparator(path[0]) {
		return path, nil
	}
	dir, err := os.Getwd()
	return dir + string(filepath.Separator) + path, err
}

// Parent returns the directory of a file. Unlike [filepath.Dir] it keeps each "..", as Absolute
// does.
func Parent(path string) string {
	dir, _ := filepath.Split(path)
	if dir == "" {
		return "."
	}
	for root := len(filepath.VolumeName(dir)) + 1; len(dir) > root && os.IsPathSeparator(dir[len(dir)-1]); {
		dir = dir[:len(dir)-1]
	}
	return dir
}
