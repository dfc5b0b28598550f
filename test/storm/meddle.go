package storm

import (
	"context"
	"errors"

	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/test/kinds"
	"github.com/zklock/zklock/zk"
)

// misses is how often an operator may come too late: what was just listed is often
// gone, as most holds are short.
const misses = 20

// operatorFaults are what somebody with the right to everything can do.
func operatorFaults() []fault {
	meddling := func(name string, do func(context.Context, *Storm, kinds.Kind, Step) (bool, error)) fault {
		return fault{name: name, inject: func(ctx context.Context, s *Storm, step Step) (happened bool, err error) {
			kind := s.kinds[step.Who%len(s.kinds)]
			ctx, cancel := context.WithTimeout(ctx, operatorWait)
			defer cancel()
			for try := 0; try < misses && !happened && err == nil; try++ {
				happened, err = do(ctx, s, kind, step)
			}
			return happened, err
		}}
	}
	return []fault{
		meddling("operator deletes a node", deleteNode),
		meddling("operator deletes a parent", deleteParent),
		meddling("operator deletes everything", deleteEverything),
		meddling("operator takes rights to a parent", denyParent),
		meddling("operator takes rights to a node", denyNode),
		meddling("operator closes a session", closeSession),
	}
}

// claims are all paths of a kind, for the histories.
func claims(kind kinds.Kind) []history.Claim {
	paths := []string{lockPath(kind.Name)}
	if kind.Several { // at paths that differ in the last letter
		base := paths[0][:len(paths[0])-1]
		paths = []string{base + "w", base + "x", base + "y", base + "z"}
	}
	var all []history.Claim
	for _, p := range paths {
		all = append(all, history.Claim{Path: p, Mode: history.Exclusive})
	}
	return all
}

// meddle writes down that an operator does something to a kind's znodes, and does it.
func (s *Storm) meddle(kind kinds.Kind, do func() error) error {
	done := s.logs[kind.Name].rec.Meddle(claims(kind)...)
	err := do()
	done(err)
	return err
}

// anEntry is one of a kind's znodes that are no parents, if there is any.
func (s *Storm) anEntry(ctx context.Context, kind kinds.Kind, step Step) (found, bool, error) {
	entries, _, err := s.operator.entries(ctx, "/"+kind.Name)
	if err != nil || len(entries) == 0 {
		return found{}, false, err
	}
	return entries[step.What%len(entries)], true, nil
}

// aParent is one of a kind's znodes that have others below them.
func (s *Storm) aParent(ctx context.Context, kind kinds.Kind, step Step) (string, bool, error) {
	_, parents, err := s.operator.entries(ctx, "/"+kind.Name)
	if err != nil || len(parents) == 0 {
		return "", false, err
	}
	return parents[step.What%len(parents)].path, true, nil
}

func deleteNode(ctx context.Context, s *Storm, kind kinds.Kind, step Step) (happened bool, err error) {
	f, there, err := s.anEntry(ctx, kind, step)
	if !there || err != nil {
		return false, err
	}
	err = s.meddle(kind, func() (err error) {
		happened, err = s.operator.remove(ctx, f.path)
		return err
	})
	return happened, err
}

func deleteParent(ctx context.Context, s *Storm, kind kinds.Kind, step Step) (happened bool, err error) {
	path, there, err := s.aParent(ctx, kind, step)
	if !there || err != nil {
		return false, err
	}
	err = s.meddle(kind, func() (err error) {
		happened, err = s.operator.removeAll(ctx, path, true)
		return err
	})
	return happened, err
}

func deleteEverything(ctx context.Context, s *Storm, kind kinds.Kind, _ Step) (happened bool, err error) {
	err = s.meddle(kind, func() (err error) {
		happened, err = s.operator.removeAll(ctx, "/"+kind.Name, false)
		return err
	})
	return happened, err
}

// denyParent lets nobody make or delete entries for a while.
func denyParent(ctx context.Context, s *Storm, kind kinds.Kind, step Step) (bool, error) {
	path, there, err := s.aParent(ctx, kind, step)
	if !there || err != nil {
		return false, err
	}
	happened := true
	err = s.meddle(kind, func() error {
		err := s.operator.deny(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			happened = false
			return nil
		}
		if err != nil {
			return err
		}
		rest(ctx, s.span(step))
		return s.operator.allow(ctx, path)
	})
	return happened, err
}

// denyNode lets nobody read or change an entry any more.
func denyNode(ctx context.Context, s *Storm, kind kinds.Kind, step Step) (bool, error) {
	f, there, err := s.anEntry(ctx, kind, step)
	if !there || err != nil {
		return false, err
	}
	happened := true
	err = s.meddle(kind, func() error {
		err := s.operator.setACL(ctx, f.path, zk.CreatorACL())
		if errors.Is(err, zk.ErrNoNode) {
			happened = false
			return nil
		}
		if err != nil {
			return err
		}
		// What was done lasts for as long as the entry, and its session, are there:
		// the meddling is over when it can hit nobody who comes later.
		rest(ctx, s.span(step))
		return s.operator.allow(ctx, f.path)
	})
	return happened, err
}

// closeSession ends the session of somebody who holds or waits.
func closeSession(ctx context.Context, s *Storm, kind kinds.Kind, step Step) (bool, error) {
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
	// A session that has ended by itself meanwhile can't be ended.
	return err == nil, nil
}
