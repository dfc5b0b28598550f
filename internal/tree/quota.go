package tree

import (
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// The names of the nodes that hold a quota and its usage. They are below quotaPath
// and the path of the quota (org.apache.zookeeper.Quotas).
const (
	limitName = "zookeeper_limits"
	statsName = "zookeeper_stats"
)

// quotaNode parses the path of a quota's node: the subtree that the quota is for, and
// the name of the node, which says whether it has the limits or the usage. The
// subtree is "" for a node directly below quotaPath, which belongs to no path.
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

// validQuota reports whether a request may store data in the node at path. The nodes
// of quotas must contain valid numbers and belong to a path. A 3.8.0 server accepts
// anything, and crashes when it counts.
func validQuota(path string, data []byte) bool {
	subtree, _, ok := quotaNode(path)
	if !ok {
		return true
	}
	_, ok = parseQuota(string(data))
	return ok && data != nil && subtree != ""
}

// quotaFor returns the innermost subtree with a quota that contains path, or "". If
// the nodes on the path do not exist, each ancestor path is looked up. For a multi,
// known caches the results for its other operations, by path. known may be nil.
func (t *Tree) quotaFor(path string, known map[string]string) string {
	// Most servers have no quotas; their writes pay for this comparison only.
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

// quotaAbove is quotaFor for a node. It checks the nodes, not the table, because
// hashing every prefix of a deep path takes long.
func (t *Tree) quotaAbove(n *node) string {
	for ; n != nil; n = n.parent {
		if n.extra == nil || !n.extra.hasQuota {
			continue
		}
		if _, ok := t.quotas[n.path()]; ok {
			return n.path()
		}
		n.extra.hasQuota = false
	}
	return ""
}

// indexQuota adds a quota when its limits are created, and removes it when they are
// deleted.
func (t *Tree) indexQuota(n *node, there bool) {
	subtree, name, ok := quotaNode(n.path())
	switch {
	case !ok || name != limitName || subtree == "":
	case there:
		if root := t.nodes.get(subtree); root != nil {
			root.ensureExtra().hasQuota = true
		}
		t.quotas[strings.Clone(subtree)] = struct{}{} // a copy, because subtree shares the memory of the node's data
	default:
		delete(t.quotas, subtree)
	}
}

// countCreated counts a created node. If it holds the usage of a quota, its data is
// replaced by the actual usage (DataTree.updateQuotaForPath).
func (t *Tree) countCreated(n *node) {
	if subtree, name, ok := quotaNode(n.path()); ok && name == statsName && subtree != "" {
		var used quota
		used.add(0, 0)
		if root := t.nodes.get(subtree); root != nil {
			r := root.extraOrNew()
			used.add(1+int64(r.below), int64(len(root.data()))+r.belowBytes)
		}
		t.setQuota(n, used)
	}
	// As in Java, this comes after that: a quota on its own usage node counts it
	// twice.
	t.count(n.path(), 1, int64(len(n.data())))
}

// count changes the usage of the quota that path is under, if there is one
// (DataTree.updateQuotaStat). Clients do not see this as a change of data: version,
// mzxid, and mtime stay, and no watch fires.
func (t *Tree) count(path string, nodes, bytes int64) {
	subtree := t.quotaFor(path, nil)
	if subtree == "" {
		return
	}
	n := t.nodes.get(quotaPath + subtree + "/" + statsName)
	if n == nil {
		return
	}
	// Data that cannot be parsed counts from the beginning. Requests cannot store
	// such data.
	used, _ := parseQuota(n.data())
	used.change(nodes, bytes)
	t.setQuota(n, used)
}

// setQuota replaces the data of a usage node.
func (t *Tree) setQuota(n *node, q quota) {
	t.setText(n, q.encode())
}

// checkQuota refuses a change that exceeds a hard limit (ZooKeeperServer.checkQuota):
// nodes and bytes are added to the subtree that contains path. Soft limits refuse
// nothing. As in Java, each operation of a multi is compared with the usage before
// the multi. known is for quotaFor.
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
