package mutants

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Mutant is an edit of product code that breaks one rule.
type Mutant struct {
	Name   string
	Reason string // the rule, and how the mutant breaks it
	Edits  []Edit
	Suite  Suite
	Test   string   // the test that must fail
	Args   []string // of the test binary, in addition to those of the suite
	Says   string   // a regular expression that a line of the failure matches
	Full   bool     // only for a full run, because another mutant of the rule always runs
}

// An Edit replaces a text that occurs exactly once in a file.
type Edit struct {
	File          string // from the root of the repository
	Before, After string
}

// A Suite is one package of tests.
type Suite struct {
	Module, Package string   // the folder of the module, and the package in it
	Args            []string // of the test binary
}

// The suites that detect mutants.
var (
	session     = Suite{Module: ".", Package: "./internal/session"}
	tree        = Suite{Module: ".", Package: "./internal/tree"}
	client      = Suite{Module: ".", Package: "./zk"}
	conformance = Suite{Module: "test", Package: "./locktest"}
	property    = Suite{Module: ".", Package: "./internal/queue", Args: []string{"-histories=240"}}
	simulation  = Suite{Module: "test", Package: "./sim", Args: []string{"-histories=40"}}
	bubble      = Suite{Module: ".", Package: "."}
	kerberos    = Suite{Module: "zkkerberos", Package: "."}
	herd        = Suite{Module: "cmd/zklock", Package: "./internal/bench"}
	durability  = Suite{Module: ".", Package: "./zkserver", Args: []string{"-crash.cycles=2000"}}
	wrapper     = Suite{Module: "cmd/zklock", Package: "./internal/hold"}
	inspection  = Suite{Module: ".", Package: "./inspect"}
	security    = Suite{Module: "test", Package: "./security"}
	ensemble    = Suite{Module: "test", Package: "./locktest"}
)

// Regular expressions of failures in several suites.
const (
	notServed    = `is not served .* after all faults ended`
	notSettled   = `is not settled`
	heldWithout  = `holds, but .* are not all there`
	goneEarly    = `is gone while the hold is safe for`
	aheadStill   = `granted while .* is ahead on the server`
	passedBy     = `granted .*while .* (is ahead on the server|holds .*, safe for)`
	afterTimeout = `which is .* after the timeout of its session|two hold: granted .* after the fault`
	lateDeadline = `a deadline was .* after the leader's expiry`
)

// All returns all mutants.
func All() []Mutant {
	var all []Mutant
	for _, part := range [][]Mutant{deadlineMutants(), grantMutants(), unknownMutants(), severalMutants(), sessionMutants(), serverMutants(), commandMutants(), valueMutants(), kerberosMutants()} {
		all = append(all, part...)
	}
	return all
}

// ErrStale reports that the text of an edit does not occur exactly once.
var ErrStale = errors.New("mutants: an edit no longer applies")

// Overlay writes the edited files of the repository at root and an overlay file
// for the go command into dir, and returns the path of that file.
func (m *Mutant) Overlay(root, dir string) (string, error) {
	edited := map[string]string{}
	for _, e := range m.Edits {
		text, ok := edited[e.File]
		if !ok {
			source, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return "", fmt.Errorf("%w: %s: %w", ErrStale, m.Name, err)
			}
			text = string(source)
		}
		if n := strings.Count(text, e.Before); n != 1 || e.Before == e.After {
			return "", fmt.Errorf("%w: %s: %s has %d times:\n%s", ErrStale, m.Name, e.File, n, e.Before)
		}
		edited[e.File] = strings.Replace(text, e.Before, e.After, 1)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range edited {
		copied := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(root, file)] = copied
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
