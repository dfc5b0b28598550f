package model

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Model is the sequential specification of a lock.
type Model struct {
	Name string
	// start is the state without holders.
	start state
	// split is set if porcupine may check each path separately.
	split bool
	// handedOff is set if one hold may hand its token to the next.
	handedOff bool
}

// state is the state of a lock. It is immutable: a move returns another state.
type state interface {
	// after returns the state after the move, or nil if the move is not permitted.
	after(m move) state
	// key is equal for equal states.
	key() string
}

// porcupine returns the model for the checker.
func (m Model) porcupine() porcupine.Model {
	seed := maphash.MakeSeed()
	p := porcupine.Model{
		Init: func() any { return m.start },
		Step: func(s, input, _ any) (bool, any) {
			mv := input.(move)
			// Its effect is unknown. Without an effect, it restricts no other operation.
			if mv.kind == unknown {
				return true, s
			}
			next := s.(state).after(mv)
			return next != nil, next
		},
		Equal: func(a, b any) bool { return a.(state).key() == b.(state).key() },
		Hash:  func(s any) uint64 { return maphash.String(seed, s.(state).key()) },
		DescribeOperation: func(input, _ any) string {
			return input.(move).String()
		},
		DescribeState: func(s any) string { return s.(state).key() },
	}
	if m.split {
		p.Partition = byPath
	}
	return p
}

// byPath partitions operations by their paths. An operation on several paths belongs to its
// first path, and no model of one path permits it.
func byPath(ops []porcupine.Operation) [][]porcupine.Operation {
	var paths []string
	parts := map[string][]porcupine.Operation{}
	for _, op := range ops {
		path := op.Input.(move).claims[0].Path
		if parts[path] == nil {
			paths = append(paths, path)
		}
		parts[path] = append(parts[path], op)
	}
	var all [][]porcupine.Operation
	for _, path := range paths {
		all = append(all, parts[path])
	}
	return all
}

// String returns the move in words.
func (m move) String() string {
	var claims []string
	for _, c := range m.claims {
		s := fmt.Sprintf("%s %s", c.Mode, c.Path)
		if c.Mode == Permit {
			s += fmt.Sprintf(" %d of %d", c.Permits, c.Of)
		}
		claims = append(claims, s)
	}
	return fmt.Sprintf("%s %s by %s as hold %d, token %#x", m.kind, strings.Join(claims, " and "), m.owner, m.hold, m.token)
}

// only reports whether the move is one of the kinds and has one claim with one of the modes.
func (m move) only(kinds []moveKind, modes ...Mode) bool {
	return len(m.claims) == 1 && slices.Contains(kinds, m.kind) && slices.Contains(modes, m.claims[0].Mode)
}
