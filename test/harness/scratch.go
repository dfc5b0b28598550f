package harness

import (
	"fmt"
	"os"
	"sync"
)

// scratch is the folder for the shared server and compiled programs. [Main] removes it.
var scratch scratchFolder

type scratchFolder struct {
	mu   sync.Mutex
	root string // empty until the first use
}

// ScratchDir returns a new folder for files that the tests of this binary share. [Main] removes
// it.
func ScratchDir() (string, error) { return scratch.folder() }

// folder creates a folder in the scratch folder.
func (s *scratchFolder) folder() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == "" {
		root, err := os.MkdirTemp("", "zklock-test-")
		if err != nil {
			return "", fmt.Errorf("harness: %w", err)
		}
		s.root = root
	}
	return os.MkdirTemp(s.root, "")
}

// remove deletes the scratch folder, after all tests.
func (s *scratchFolder) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == "" {
		return nil
	}
	err := os.RemoveAll(s.root)
	s.root = ""
	return err
}
