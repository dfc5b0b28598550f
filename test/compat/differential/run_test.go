package differential

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// verdict is the result of a script.
type verdict struct {
	step  int         // the step where the servers differed, or -1
	lines [2][]string // the results of this step
	stuck bool        // a server did not answer in this step
	used  []string    // names of the deliberate differences
	cover coverage
}

// differs reports whether the servers differed.
func (v *verdict) differs() bool { return v.step >= 0 }

// run runs a script on both servers, until they differ, or a deliberate difference ends it. An
// error means that the comparison failed. A server that does not answer is a difference.
func (p *pair) run(script Script) (v verdict, err error) {
	sides, err := p.sides()
	if err != nil {
		return v, err
	}
	v = verdict{step: -1, cover: coverage{}}
	for i, st := range append(slices.Clone(script), Step{Kind: kindFinal}) {
		lines, errs := both(sides, st)
		v.cover.note(st, lines[0])
		for j, e := range errs {
			if e != nil {
				lines[j] = append(lines[j], e.Error())
			}
		}
		if slices.Equal(lines[0], lines[1]) && errs[0] == nil && errs[1] == nil {
			continue
		}
		if errs[0] == nil {
			errs[0] = sides[0].markHidden(lines[0], lines[1])
		}
		if d := excuse(st, lines); d != nil && errs[0] == nil && errs[1] == nil {
			if v.used = append(v.used, d.Name); d.Ends {
				break
			}
			continue
		}
		v.step, v.lines, v.stuck = i, lines, errs[0] != nil || errs[1] != nil
		break
	}
	var wg sync.WaitGroup
	var errs [2]error
	for i, s := range sides {
		wg.Go(func() { errs[i] = s.cleanUp() })
	}
	wg.Wait()
	for _, e := range errs {
		if e != nil && !v.differs() {
			return v, e
		}
	}
	return v, nil
}

// kindFinal compares all nodes that a script left.
const kindFinal Kind = "final"

// both runs a step on both servers at the same time.
func both(sides *[2]*side, st Step) (lines [2][]string, errs [2]error) {
	var wg sync.WaitGroup
	for i, s := range sides {
		wg.Go(func() {
			if st.Kind == kindFinal {
				lines[i], errs[i] = s.dump()
				return
			}
			lines[i], errs[i] = s.run(st)
		})
	}
	wg.Wait()
	return lines, errs
}

// dump describes all nodes of the script and its quotas.
func (s *side) dump() ([]string, error) {
	s.lines = nil
	for _, root := range []string{s.root, "/zookeeper/quota" + s.root} {
		if err := s.dumpNode(root); err != nil {
			return s.lines, err
		}
	}
	return s.lines, nil
}

func (s *side) dumpNode(path string) error {
	f, err := s.admin.ask(wire.OpGetData, &wire.GetDataRequest{Path: path})
	if err != nil || f.header.Err == wire.ErrNoNode {
		return err
	}
	var data wire.GetDataResponse
	data.Decode(jute.NewReader(f.body))
	if f, err = s.admin.ask(wire.OpGetACL, &wire.GetACLRequest{Path: path}); err != nil {
		return err
	}
	var acl wire.GetACLResponse
	acl.Decode(jute.NewReader(f.body))
	s.lines = append(s.lines, strings.ReplaceAll(fmt.Sprintf("%s: %v %s", path, aclOrder(acl.ACL), s.body(&data)), s.root, placeholder))
	names, err := s.children(path)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := s.dumpNode(path + "/" + name); err != nil {
			return err
		}
	}
	return nil
}
