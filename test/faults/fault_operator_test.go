package faults

import (
	"context"
	"errors"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/test/model"
	"github.com/zklock/zklock/zk"
)

// maxTries is how often the operator tries. Most holds are short, so that a client often
// deletes a listed entry before the operator changes it.
const maxTries = 20

// operatorFaults are changes by an operator with all permissions.
func operatorFaults() []fault {
	tampering := func(name string, do func(context.Context, *round, Kind, Step) (bool, error)) fault {
		return fault{name: name, inject: func(ctx context.Context, s *round, step Step) (happened bool, err error) {
			kind := s.kinds[step.Target%len(s.kinds)]
			ctx, cancel := context.WithTimeout(ctx, operatorWait)
			defer cancel()
			for try := 0; try < maxTries && !happened && err == nil; try++ {
				happened, err = do(ctx, s, kind, step)
			}
			return happened, err
		}}
	}
	return []fault{
		tampering("operator deletes a node", deleteNode),
		tampering("operator deletes a parent", deleteParent),
		tampering("operator deletes everything", deleteEverything),
		tampering("operator denies access to a parent", denyParent),
		tampering("operator denies access to a node", denyNode),
		tampering("operator closes a session", closeSession),
	}
}

// claims returns claims on all paths of a kind, for the histories.
func claims(kind Kind) []model.Claim {
	paths := []string{lockPath(kind.Name)}
	if kind.Several { // paths that differ in the last letter
		base := paths[0][:len(paths[0])-1]
		paths = []string{base + "w", base + "x", base + "y", base + "z"}
	}
	var all []model.Claim
	for _, p := range paths {
		all = append(all, model.Claim{Path: p, Mode: model.Exclusive})
	}
	return all
}

// tamper records that the operator changes a kind's znodes, and changes them.
func (s *round) tamper(kind Kind, do func() error) error {
	done := s.logs[kind.Name].rec.Tamper(claims(kind)...)
	err := do()
	done(err)
	return err
}

// anEntry returns one of a kind's entries, if any.
func (s *round) anEntry(ctx context.Context, kind Kind, step Step) (found, bool, error) {
	entries, _, err := s.operator.entries(ctx, "/"+kind.Name)
	if err != nil || len(entries) == 0 {
		return found{}, false, err
	}
	return entries[step.Detail%len(entries)], true, nil
}

// aParent returns one of the parents of a kind's entries, if any.
func (s *round) aParent(ctx context.Context, kind Kind, step Step) (string, bool, error) {
	_, parents, err := s.operator.entries(ctx, "/"+kind.Name)
	if err != nil || len(parents) == 0 {
		return "", false, err
	}
	return parents[step.Detail%len(parents)].path, true, nil
}

func deleteNode(ctx context.Context, s *round, kind Kind, step Step) (happened bool, err error) {
	f, there, err := s.anEntry(ctx, kind, step)
	if !there || err != nil {
		return false, err
	}
	err = s.tamper(kind, func() (err error) {
		happened, err = s.operator.remove(ctx, f.path)
		return err
	})
	return happened, err
}

func deleteParent(ctx context.Context, s *round, kind Kind, step Step) (happened bool, err error) {
	path, there, err := s.aParent(ctx, kind, step)
	if !there || err != nil {
		return false, err
	}
	err = s.tamper(kind, func() (err error) {
		happened, err = s.operator.removeParent(ctx, path)
		return err
	})
	return happened, err
}

func deleteEverything(ctx context.Context, s *round, kind Kind, _ Step) (happened bool, err error) {
	err = s.tamper(kind, func() (err error) {
		happened, err = s.operator.removeAll(ctx, "/"+kind.Name)
		return err
	})
	return happened, err
}

// denyParent denies the creation and deletion of entries for a time.
func denyParent(ctx context.Context, s *round, kind Kind, step Step) (bool, error) {
	path, there, err := s.aParent(ctx, kind, step)
	if !there || err != nil {
		return false, err
	}
	return s.denyFor(ctx, kind, step, path, readOnly())
}

// denyNode denies all access to an entry for a time.
func denyNode(ctx context.Context, s *round, kind Kind, step Step) (bool, error) {
	f, there, err := s.anEntry(ctx, kind, step)
	if !there || err != nil {
		return false, err
	}
	// denyFor restores access, so that the change affects no later client.
	return s.denyFor(ctx, kind, step, f.path, zk.CreatorACL())
}

// denyFor sets an ACL for a time. It reports whether the znode existed.
func (s *round) denyFor(ctx context.Context, kind Kind, step Step, path string, acl []zk.ACL) (happened bool, err error) {
	err = s.tamper(kind, func() error {
		err := s.operator.setACL(ctx, path, acl)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		happened = true
		harness.Sleep(ctx, s.span(step))
		return s.operator.allow(ctx, path)
	})
	return happened, err
}

// closeSession ends the session of a holder or a waiter.
func closeSession(ctx context.Context, s *round, kind Kind, step Step) (bool, error) {
	f, there, err := s.anEntry(ctx, kind, step)
	if !there || err != nil || f.stat.EphemeralOwner == 0 {
		return false, err
	}
	done := s.logs[kind.Name].rec.Expire(f.stat.EphemeralOwner)
	for _, p := range s.relays {
		if err = p.ExpireSession(f.stat.EphemeralOwner); err == nil {
			break
		}
	}
	done(err)
	// The session may have ended before.
	return err == nil, nil
}
