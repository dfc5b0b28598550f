package textfile

import (
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
	// maxFile bounds what is read, and maxLocks how many locks a file may have: it is
	// written anew at each run.
	maxFile  = 1 << 20
	maxLocks = 500
	// patience is how long another run's turn is waited for, each of which takes a
	// moment.
	patience = 2 * time.Second
)

var (
	// ErrName: the collector would not read the file.
	ErrName = errors.New("the node exporter reads files whose names end in .prom, and do not begin with a dot, alone")
	// ErrFull: the file has metrics of too many locks.
	ErrFull = fmt.Errorf("it has metrics of more than %d locks; give several files", maxLocks)
	// ErrBusy: others had the directory all the time.
	ErrBusy = fmt.Errorf("other runs have its directory locked for more than %v", patience)
)

// Check returns why a file of this name is of no use.
func Check(path string) error {
	base := filepath.Base(path)
	if !strings.HasSuffix(base, ".prom") || base[0] == '.' {
		return ErrName
	}
	return nil
}

// Update lets change add to what the file says, which need not be there.
func Update(path string, change func(*Set)) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close() // which gives the turn to the next one
	if err := turn(dir, time.Now().Add(patience)); err != nil {
		return err
	}
	s, err := read(path)
	if err != nil {
		return err
	}
	change(s)
	if s.locks() > maxLocks {
		return ErrFull
	}
	text, err := s.text()
	if err != nil {
		return err
	}
	return replace(path, text)
}

// read returns what the file says.
func read(path string) (*Set, error) {
	// The directory may be open to others: no link of theirs is followed, and no pipe
	// waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|ownership.NoFollow|ownership.NoWait, 0)
	if errors.Is(err, os.ErrNotExist) {
		return &Set{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > maxFile {
		return nil, errors.Join(ErrForeign, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, err
	}
	return parse(string(text))
}

// replace puts a new file in the old one's place. Everybody may read it: the
// exporter has a user of its own. Nothing waits for the disk: after a crash of the
// machine an old file is as good.
func replace(path, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
