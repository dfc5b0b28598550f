package hold

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/ownership"
)

const (
	maxTextfileSize  = 4 << 20 // bytes
	maxTextfileLocks = 500     // each run rewrites the metrics of all locks
	// textfileWait limits how long a run waits for other runs that update the file. Each
	// update takes a moment.
	textfileWait = 2 * time.Second
)

var (
	// ErrTextfileName means that the collector would not read the file.
	ErrTextfileName = errors.New("the node exporter reads only files whose names end in .prom and do not begin with a dot")
	// ErrTextfileFull means that the file would have metrics of too many locks, or be too large.
	ErrTextfileFull = fmt.Errorf("the file would have metrics of more than %d locks, or more than %d bytes; use several files", maxTextfileLocks, maxTextfileSize)
	// ErrTextfileBusy means that the file was changed without the lock of its directory.
	ErrTextfileBusy = fmt.Errorf("another process has locked its directory for more than %v; the file was changed all the same, which can undo a change of another run", textfileWait)
)

// CheckTextfile returns an error if the collector would not read a file of this name.
func CheckTextfile(path string) error {
	base := filepath.Base(path)
	if !strings.HasSuffix(base, ".prom") || base[0] == '.' {
		return ErrTextfileName
	}
	return nil
}

// UpdateTextfile lets change modify the metrics in the file. The file need not exist. If the
// directory is locked for too long, it returns ErrTextfileBusy after the change: every user who
// may read the directory can lock it.
func UpdateTextfile(path string, change func(Textfile)) error {
	dir, err := ownership.OpenDir(ownership.Parent(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	lock, err := ownership.Lock(dir, textfileWait)
	switch {
	case errors.Is(err, ownership.ErrLocked):
		return cmp.Or(changeTextfile(dir, filepath.Base(path), change), ErrTextfileBusy)
	case err != nil:
		return err
	}
	defer lock.Close() // unlocks the directory
	return changeTextfile(dir, filepath.Base(path), change)
}

// changeTextfile replaces the file.
func changeTextfile(dir *os.Root, name string, change func(Textfile)) error {
	s, err := readTextfile(dir, name)
	if err != nil {
		return err
	}
	change(s)
	if s.countLocks() > maxTextfileLocks {
		return ErrTextfileFull
	}
	text, err := s.text()
	if err != nil {
		return err
	}
	if len(text) > maxTextfileSize {
		return ErrTextfileFull // readTextfile would refuse it
	}
	// Every user may read the file, because the exporter runs as its own user. The file is
	// not synced: after a crash of the machine, the old file will do.
	return ownership.Replace(dir, name, 0o644, func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	})
}

// readTextfile returns the metrics in the file. Other users may be able to create files in
// the directory, so it does not follow a link and does not wait for a pipe.
func readTextfile(dir *os.Root, name string) (Textfile, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return Textfile{}, nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w (a symbolic link, or another file that is not regular)", ErrTextfileForeign)
	case info.Size() > maxTextfileSize:
		return nil, fmt.Errorf("%w (%d bytes)", ErrTextfileForeign, info.Size())
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|ownership.NoWait, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(ErrTextfileForeign, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTextfileSize))
	if err != nil {
		return nil, err
	}
	return parseTextfile(string(text))
}
