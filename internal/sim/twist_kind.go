package sim

import (
	"path"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/queue"
)

// What the variants of the several kinds of locks make of requests and answers.

// asked is what a request stands in.
type asked struct {
	probe bool           // the listing of a recovery
	join  *queue.Request // the create right ahead, behind which it looks; nil for none
}

// joins reports whether the request looks behind a create in the same queue.
func (s asked) joins(r queue.Request) bool {
	return s.join != nil && slices.ContainsFunc(s.join.Creates, func(n queue.Creation) bool { return path.Dir(n.Path) == r.Path })
}

// knack is what a client remembers to play a variant.
type knack struct {
	join    *queue.Request
	alias   map[string]string // what a znode is called before the lock core, and what it is
	aliases map[string]string
	handing map[string]bool // the queues of which the next listing hides others
	lost    map[string]bool // the node locks of which a create's or a delete's answer was lost
	late    []queue.Request // deletes that are kept back
	split   *split
}

// loses takes note of an answer about a znode that was lost.
func (k *knack) loses(path string) {
	if k.lost == nil {
		k.lost = map[string]bool{}
	}
	k.lost[path] = true
}

// place says what a request stands in.
func (c *client) place(r queue.Request) (s asked) {
	s.probe = r.Kind == queue.List && c.former.Kind == queue.Check && len(c.former.Paths) == 1 && c.former.Paths[0] == r.Path
	c.former = r
	switch r.Kind {
	case queue.Create, queue.Renew:
		c.knack.join = &r
	case queue.List, queue.Get:
		s.join = c.knack.join
	default:
		c.knack.join = nil
	}
	return s
}

// reroute is what a variant makes of a request; true: it was taken care of.
func (v Variant) reroute(c *client, r *queue.Request, s asked) bool {
	switch v {
	case UnlistedReader:
		if name, ok := c.knack.alias[r.Path]; ok {
			r.Path = name
		}
	case SplitCreate, SplitJoin:
		if r.Kind == queue.Create && len(r.Creates) > 1 {
			c.createOneByOne(*r)
			return true
		}
		if k := c.knack.split; s.join != nil && k != nil && !k.done {
			later := *r
			k.behind = append(k.behind, func() { c.send(later, func(q queue.Reply) { c.replied(later, q) }) })
			return true
		}
	case RenewInTwoSteps:
		if r.Kind == queue.Renew {
			c.deleteThenRenew(*r)
			return true
		}
	case GapDowngrade:
		if r.Kind == queue.Swap && len(r.Paths) > 0 {
			c.deleteThenCreate(*r)
			return true
		}
	case LateRecord:
		if rec := c.world.records[r.Path]; r.Kind == queue.Delete && rec != nil && rec.client == c {
			c.knack.late = append(c.knack.late, *r)
			return true
		}
	}
	return false
}

// createOneByOne asks for each znode when the one before is made, and only then
// for the listings behind them.
func (c *client) createOneByOne(r queue.Request) {
	split := &split{}
	c.knack.split = split
	c.createNext(r, split, queue.Reply{ID: r.ID, Failed: -1})
}

// split is a create in several steps.
type split struct {
	behind []func() // what is asked behind it
	done   bool
}

// createNext makes the next of the znodes.
func (c *client) createNext(r queue.Request, s *split, all queue.Reply) {
	i := len(all.Made)
	c.send(queue.Request{Kind: queue.Create, Creates: r.Creates[i : i+1]}, func(q queue.Reply) {
		made := append(all.Made, q.Made...)
		all = q
		all.ID, all.Made = r.ID, made
		switch {
		case q.Code == queue.OK && len(made) < len(r.Creates):
			c.createNext(r, s, all)
			return
		case q.Code == queue.OK:
		case q.Code != queue.Unknown:
			for _, p := range made {
				c.send(queue.Request{Kind: queue.Delete, Path: p}, func(queue.Reply) {})
			}
			if len(made) > 0 && q.Code == queue.NotApplied {
				all.Code = queue.Unknown
			}
		}
		all.Owner = 0
		c.replied(r, all)
		s.done = true
		for _, ask := range s.behind {
			ask()
		}
	})
}

// deleteThenCreate does a downgrade in two steps.
func (c *client) deleteThenCreate(r queue.Request) {
	c.send(queue.Request{Kind: queue.Swap, Paths: r.Paths}, func(q queue.Reply) {
		if q.Code != queue.OK {
			q.ID = r.ID
			c.replied(r, q)
			return
		}
		c.send(queue.Request{ID: r.ID, Kind: queue.Swap, Creates: r.Creates}, func(q queue.Reply) { c.replied(r, q) })
	})
}

// deleteThenRenew gives a hold back and takes the next place in two steps.
func (c *client) deleteThenRenew(r queue.Request) {
	c.send(queue.Request{Kind: queue.Renew, Paths: r.Paths}, func(q queue.Reply) {
		again := func() {
			if !c.alive {
				return
			}
			c.send(queue.Request{ID: r.ID, Kind: queue.Renew, Creates: r.Creates}, func(q queue.Reply) { c.replied(r, q) })
		}
		if q.Code != queue.OK {
			q.ID = r.ID
			c.replied(r, q)
			return
		}
		c.world.after(c.world.upTo(c.world.cfg.Timeout/4), func() { c.run(writerWork, again) })
	})
}

// twistKind is what a variant makes of an answer about one kind of lock.
func (v Variant) twistKind(c *client, r queue.Request, s asked, q queue.Reply) queue.Reply {
	switch {
	case q.Code != queue.OK:
		q = v.twistFailure(c, r, q)
	case r.Kind == queue.List && !s.probe:
		q.Children = v.twistList(c, r, s, q.Children)
	case v == Quarrel && r.Kind == queue.Get && path.Base(r.Path) == "leases":
		q.Data = nil
	case v == AdoptedNode && r.Kind == queue.Get && s.join != nil && s.join.Creates[0].Path == r.Path && c.knack.lost[r.Path]:
		q.Owner, q.Data = c.session, s.join.Creates[0].Data
	}
	if v == BlindDelete && r.Kind == queue.Get && !r.Watch && c.knack.lost[r.Path] { // the look whose it is by now
		delete(c.knack.lost, r.Path)
		c.send(queue.Request{Kind: queue.Delete, Path: r.Path, Session: r.Session}, func(queue.Reply) {})
	}
	if v == LateRecord && r.Kind == queue.Delete && len(c.knack.late) > 0 {
		late := c.knack.late
		c.knack.late = nil
		for _, l := range late {
			c.send(l, func(q queue.Reply) { c.replied(l, q) })
		}
	}
	return q
}

// twistFailure is what a variant makes of an answer that is no success.
func (v Variant) twistFailure(c *client, r queue.Request, q queue.Reply) queue.Reply {
	switch {
	case q.Code != queue.Unknown:
	case v == AdoptedNode && r.Kind == queue.Create:
		c.knack.loses(r.Creates[0].Path)
	case v == BlindDelete && r.Kind == queue.Delete:
		if l := c.world.lockOf(r.Path); l != nil && l.Family == nodeLocks {
			c.knack.loses(r.Path)
		}
	}
	if v == DelayIgnored && r.Kind == queue.List && strings.HasSuffix(r.Path, "-held") && q.Code == queue.NoNode {
		q.Code = queue.OK
	}
	return q
}

// twistsTokens reports whether a znode's token may not be its czxid.
func (v Variant) twistsTokens() bool {
	return v == SequenceToken || v == Adoption || v == SplitCreate || v == SplitJoin
}

// twistList is what a variant lets the lock core see of a queue.
func (v Variant) twistList(c *client, r queue.Request, s asked, children []string) []string {
	own := func(name string) bool { return slices.Contains(c.made, r.Path+"/"+name) }
	others := func(name string) bool { return !own(name) }
	dir := path.Base(r.Path)
	switch {
	case v == DelayIgnored && strings.HasSuffix(r.Path, "-held"):
		return nil
	case v == UncountedLeases && dir == "leases", v == OpenGate && dir == "locks" && s.joins(r):
		return slices.DeleteFunc(children, others)
	case v == OwnUncounted && dir == "leases" && s.joins(r):
		n := len(s.join.Creates)
		return slices.DeleteFunc(children, func(name string) bool {
			n--
			return n >= 0 && others(name)
		})
	case v == FirstClear && s.joins(r) && r.Path != path.Dir(s.join.Creates[0].Path) && !strings.HasSuffix(r.Path, "-held"):
		return slices.DeleteFunc(children, others)
	case v == BargingReader && s.joins(r):
		return c.onlyFirstWriter(r, s, children)
	case v == UnlistedReader:
		return c.renameWriters(r, children, own)
	}
	return children
}

// onlyFirstWriter leaves out, for a reader, every exclusive entry that does not
// hold the lock.
func (c *client) onlyFirstWriter(r queue.Request, s asked, children []string) []string {
	l := c.world.lockOf(r.Path + "/" + children[0])
	if l == nil {
		return children
	}
	first := ""
	for _, n := range s.join.Creates {
		if _, shared, ok := l.entry(n.Path + "0000000000"); ok && !shared && path.Dir(n.Path) == r.Path {
			return children
		}
	}
	for _, name := range children {
		if seq, _, ok := l.entry(r.Path + "/" + name); ok && (first == "" || seq < first) {
			first = seq
		}
	}
	return slices.DeleteFunc(children, func(name string) bool {
		seq, shared, ok := l.entry(r.Path + "/" + name)
		return ok && !shared && seq != first
	})
}

// renameWriters hides that others' entries are writers', which may leave a
// reader behind.
func (c *client) renameWriters(r queue.Request, children []string, own func(string) bool) []string {
	k := &c.knack
	if k.alias == nil {
		k.alias, k.aliases = map[string]string{}, map[string]string{}
	}
	for i, name := range children {
		if as := strings.Replace(name, "-__WRIT__", "-lock-", 1); as != name && !own(name) {
			children[i] = as
			k.alias[r.Path+"/"+as], k.aliases[r.Path+"/"+name] = r.Path+"/"+name, r.Path+"/"+as
		}
	}
	return children
}
