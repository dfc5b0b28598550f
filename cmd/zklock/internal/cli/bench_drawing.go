package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/herd"
)

// drawing is a picture to be. It is found out before a long run whether its file
// can be made, and the file appears when it is whole. nil draws nothing.
type drawing struct {
	name string
	temp *os.File
}

// newDrawing begins the file with this name, none for an empty one.
func newDrawing(name string) (*drawing, error) {
	if name == "" {
		return nil, nil
	}
	temp, err := os.CreateTemp(filepath.Dir(name), ".zklock-*.svg")
	if err != nil {
		return nil, fmt.Errorf("--svg: %w", err)
	}
	return &drawing{name: name, temp: temp}, nil
}

// write draws the rows and puts the file in its place.
func (d *drawing) write(where string, rows []herd.Row) error {
	if d == nil {
		return nil
	}
	caption := fmt.Sprintf("On %s; zklock %s, %s.", where, zklock.Version, time.Now().Format(time.DateOnly))
	err := herd.WriteSVG(d.temp, caption, rows)
	if err == nil {
		err = d.temp.Chmod(0o644)
	}
	if err == nil {
		err = d.temp.Close()
	}
	if err == nil {
		err = os.Rename(d.temp.Name(), d.name)
	}
	if err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	return nil
}

// discard removes what was begun and not put in its place.
func (d *drawing) discard() {
	if d != nil {
		_ = d.temp.Close()
		_ = os.Remove(d.temp.Name())
	}
}
