package tree

import (
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// The nodes that hold a quota and what is used of it, below quotaPath and the path
// that the quota is for (org.apache.zookeeper.Quotas).
const (
	limitName = "zookeeper_limits"
	statsName = "zookeeper_stats"
)

// quotaNode takes the path of a quota's node apart: which subtree it is for, and
// whether it is the limits or the statistics. The subtree is "" for a node that
// stands directly below quotaPath and so belongs to no path.
func quotaNode(path string) (subtree, name string, ok bool) {
	rest, ok := strings.CutPrefix(path, quotaPath+"/")
	if !ok {
		return "", "", false
	}
	cut := strings.LastIndexByte(rest, '/')
	if name = rest[cut+1:]; name != limitName && name != statsName {
		return "", "", false
	}
	return path[len(quotaPath) : len(path)-len(name)-1], name, true
}

// validQuota is whether a request may put data into the node at path: those of
// quotas hold what can be counted with, and stand below a path. A 3.8.0 takes
// anything, and dies of it when it counts.
func validQuota(path string, data []byte) bool {
	subtree, _, ok := quotaNode(path)
	if !ok {
		return true
	}
	_, ok = parseQuota(string(data))
	return ok && data != nil && subtree != ""
}

// quotaFor is the innermost subtree with a quota that path is in, "" for none. If the
// nodes above path do not exist, each of their paths is looked up. A multi does that
// once: known has what was found for its other operations, by path. It may be nil.
func (t *Tree) quotaFor(path string, known map[string]string) string {
	// Most servers have no quotas: their writes pay this comparison.
	if len(t.quotas) == 0 {
		return ""
	}
	subtree, at := "", path
	for ; at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		if n := t.nodes.get(at); n != nil {
			subtree = t.quotaAbove(n)
			break
		}
		if _, ok := t.quotas[at]; ok {
			subtree = at
			break
		}
		if found, ok := known[at]; ok {
			subtree = found
			break
		}
	}
	for ; known != nil && len(path) > len(at); path = path[:strings.LastIndexByte(path, '/')] {
		known[path] = subtree
	}
	return subtree
}

// quotaAbove is quotaFor for a node. It asks the nodes rather than the table, since
// to hash every part of a deep path takes long.
func (t *Tree) quotaAbove(n *node) string {
	for ; n != nil; n = n.parent {
		if n.more == nil || !n.more.limited {
			continue
		}
		if _, ok := t.quotas[n.path()]; ok {
			return n.path()
		}
		n.more.limited = false
	}
	return ""
}

// indexQuota notes a quota when its limits come, and forgets it when they go.
func (t *Tree) indexQuota(n *node, there bool) {
	subtree, name, ok := quotaNode(n.path())
	switch {
	case !ok || name != limitName || subtree == "":
	case there:
		if root := t.nodes.get(subtree); root != nil {
			root.own().limited = true
		}
		t.quotas[strings.Clone(subtree)] = struct{}{} // a part of the node's text, with its data
	default:
		delete(t.quotas, subtree)
	}
}

// countCreated counts a node that has come. Statistics that come are made to say
// what is there (DataTree.updateQuotaForPath), whatever they were created with.
func (t *Tree) countCreated(n *node) {
	if subtree, name, ok := quotaNode(n.path()); ok && name == statsName && subtree != "" {
		var used quota
		used.add(0, 0)
		if root := t.nodes.get(subtree); root != nil {
			r := root.rare()
			used.add(1+int64(r.below), int64(len(root.data()))+r.belowBytes)
		}
		t.setQuota(n, used)
	}
	// As in Java, after that: a quota on its own statistics counts them twice.
	t.count(n.path(), 1, int64(len(n.data())))
}

// count changes what is used of the quota that path is under, if there is one
// (DataTree.updateQuotaStat). It is no change of data to anybody else: version,
// mzxid and mtime of the statistics stay, and no watch fires.
func (t *Tree) count(path string, nodes, bytes int64) {
	subtree := t.quotaFor(path, nil)
	if subtree == "" {
		return
	}
	n := t.nodes.get(quotaPath + subtree + "/" + statsName)
	if n == nil {
		return
	}
	// What can't be read counts from the beginning; requests can't write such.
	used, _ := parseQuota(n.data())
	used.change(nodes, bytes)
	t.setQuota(n, used)
}

// setQuota replaces the data of statistics.
func (t *Tree) setQuota(n *node, q quota) {
	t.setText(n, q.encode())
}

// checkQuota refuses what a hard limit forbids (ZooKeeperServer.checkQuota): so
// many nodes and bytes more in the subtree that path is in. Soft limits forbid
// nothing. As in Java each operation of a multi is compared with what was used
// before the multi. known is for quotaFor.
func (t *Tree) checkQuota(path string, nodes, bytes int64, known map[string]string) wire.ErrCode {
	if !t.cfg.EnforceQuota {
		return wire.ErrOK
	}
	subtree := t.quotaFor(path, known)
	if subtree == "" {
		return wire.ErrOK
	}
	limits, stats := t.nodes.get(quotaPath+subtree+"/"+limitName), t.nodes.get(quotaPath+subtree+"/"+statsName)
	if limits == nil || stats == nil {
		return wire.ErrOK
	}
	limit, _ := parseQuota(limits.data())
	used, _ := parseQuota(stats.data())
	if hard := limit.get("countHardLimit"); nodes != 0 && hard > -1 && used.get("count")+nodes > hard {
		return wire.ErrQuotaExceeded
	}
	if hard := limit.get("byteHardLimit"); bytes != 0 && hard > -1 && used.get("bytes")+bytes > hard {
		return wire.ErrQuotaExceeded
	}
	return wire.ErrOK
}
