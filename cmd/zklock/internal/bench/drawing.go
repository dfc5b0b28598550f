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
	d := &drawing{name: name}
	err := ownership.CheckLinks(name)
	if err != nil {
		return nil, fmt.Errorf("--svg: %w", err)
	}
	if there, statErr := os.Stat(name); statErr == nil {
		// A link is kept, and the file that it points to is replaced. /dev/stdout and
		// similar files can be opened even if they cannot be resolved.
		d.name, err = filepath.EvalSymlinks(name)
		if d.direct = err != nil || !there.Mode().IsRegular(); d.direct {
			d.name = name
		}
	}
	if d.direct {
		d.file, err = os.OpenFile(name, os.O_WRONLY, 0)
	} else if d.dir, err = ownership.OpenDir(filepath.Dir(d.name)); err == nil {
		if d.file, d.temp, err = ownership.CreateTemp(d.dir, ".zklock-*.svg"); err != nil {
			d.dir.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--svg: %w", err)
	}
	return d, nil
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
		err = d.dir.Rename(d.temp, filepath.Base(d.name))
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
