//go:build unix && !linux

package ownership

import (
	"io/fs"
	"os"
	"path/filepath"
)

// An entry is a file, a directory, or a link that resolve has reached. The owner of a directory on
// the path can exchange it for another one at any time.
type entry struct {
	path string // without links
	info fs.FileInfo
}

// rootDir returns the root directory.
func rootDir() (*entry, error) { return (&entry{path: "/"}).find(".") }

// find returns an entry of a directory. It does not follow a link.
func (e *entry) find(name string) (*entry, error) {
	path := filepath.Join(e.path, name)
	info, err := os.Lstat(path)
	return &entry{path, info}, err
}

// target returns what a link leads to. It refuses a link that another user has put in its place.
func (e *entry) target() (string, error) {
	to, err := os.Readlink(e.path)
	if err != nil {
		return "", err
	}
	info, err := os.Lstat(e.path)
	if err != nil {
		return "", err
	}
	if uid, _ := Other(info); !os.SameFile(info, e.info) {
		return "", &linkError{e.path, uid}
	}
	return to, nil
}

// close does nothing.
func (*entry) close() {}
