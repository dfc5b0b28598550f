package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/ownership"
)

// A drawing is an SVG file that a run will write. newDrawing checks before the run whether
// the file can be created, and the file appears when it is complete. A nil drawing writes
// nothing.
type drawing struct {
	name string
	file *os.File
	// dir is the directory of the new file, and temp the name that it has there until
	// it is complete.
	dir  *os.Root
	temp string
	// direct is true for a device or a pipe, to which write writes directly: a file in its
	// place would replace /dev/null for all processes.
	direct bool
}

// newDrawing opens the file with this name, or returns nil for an empty name.
func newDrawing(name string) (*drawing, error) {
	if name == "" {
		return nil, nil
	}
	// A link is kept, and the file that it points to is replaced.
	real, there, err := ownership.Resolve(name)
	if err != nil {
		return nil, fmt.Errorf("--svg: %w", err)
	}
	d := &drawing{name: real}
	switch {
	case there == nil && isDescriptor(name): // such as a pipe: it has no other path
		d.direct = true
		d.file, err = os.OpenFile(name, os.O_WRONLY, 0)
	case there != nil && !there.Mode().IsRegular():
		d.direct = true
		d.file, err = openSame(real, there)
	default:
		if d.dir, err = ownership.OpenDir(ownership.Parent(real)); err != nil {
			break
		}
		if d.file, d.temp, err = ownership.CreateTemp(d.dir, ".zklock-*.svg"); err != nil {
			d.dir.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--svg: %w", err)
	}
	return d, nil
}

// isDescriptor reports whether a name means an open file of this process.
func isDescriptor(name string) bool {
	dir := filepath.Dir(name)
	return name == "/dev/stdout" || name == "/dev/stderr" || dir == "/dev/fd" || dir == "/proc/self/fd"
}

// openSame opens a device or a pipe for writing. It returns an error for a pipe of another user,
// and if another file is in its place, which another user can have put there.
func openSame(name string, there os.FileInfo) (*os.File, error) {
	if uid, other := ownership.Other(there); other && there.Mode().Type() == os.ModeNamedPipe {
		return nil, fmt.Errorf("%s is a named pipe of user %d, who decides how long a write waits: "+
			"give another file", name, uid)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|ownership.NoFollow, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(opened, there) {
		err = fmt.Errorf("%s was replaced by another file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// write draws the rows and gives the file its name.
func (d *drawing) write(where string, rows []Row) error {
	if d == nil {
		return nil
	}
	caption := fmt.Sprintf("On %s; zklock %s, %s.", where, zklock.Version, time.Now().Format(time.DateOnly))
	err := WriteSVG(d.file, caption, rows)
	if d.direct {
		err = errors.Join(err, d.file.Close())
	} else if err == nil {
		err = d.place()
	}
	if err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	return nil
}

// place renames the complete file.
func (d *drawing) place() error {
	err := d.file.Chmod(0o644) // CreateTemp lets no other user read it
	if err == nil {
		err = d.file.Close()
	}
	if err == nil {
		err = ownership.Rename(d.dir, d.temp, filepath.Base(d.name))
	}
	return err
}

// discard removes an incomplete file.
func (d *drawing) discard() {
	if d == nil {
		return
	}
	_ = d.file.Close()
	if !d.direct {
		_ = d.dir.Remove(d.temp)
		_ = d.dir.Close()
	}
}
