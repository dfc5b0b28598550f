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
// of quotas must contain valid numbers and belong to a path. Java accepts
// anything, and crashes when it counts.
func validQuota(path string, data []byte) bool {
	subtree, _, ok := quotaNode(path)
	if !ok {
		return true
	}
	_, ok = parseQuota(string(data))
	return ok && data != nil && subtree != ""
}

// maySetQuota reports whether the requester may store data in the node at path. If it
// is the node of a quota, that needs ADMIN on the quota's subtree, or on the nearest
// node above it that exists: a quota shows how much a closed node contains, and may
// refuse creates in it. Java needs no permission.
func (p *preparer) maySetQuota(path string) bool {
	subtree, _, ok := quotaNode(path)
	if !ok {
		return true
	}
	for {
		p.t.steps += 1 + len(subtree)/textPerStep
		if v, ok := p.find(subtree); ok {
			return p.may(v, wire.PermAdmin)
		}
		subtree, _ = parentOf(subtree)
	}
}

// mayReadUsage reports whether c may learn the data of the node at path. If it is the usage
// of a quota, that needs READ on the root of the quota's subtree. Its creator may have set the
// quota before the owners of the subtree closed it. Java needs no permission.
func (t *Tree) mayReadUsage(c *conn, path string) bool {
	subtree, name, ok := quotaNode(path)
	if !ok || name != statsName {
		return true
	}
	root := t.nodes.get(subtree)
	return root == nil || t.may(c, t.acls.of(root), wire.PermRead)
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

// quotaChange is how much a transaction changes the usage of a quota.
type quotaChange struct {
	nodes, bytes int64
}

// count changes the usage of the quota that path is under, if there is one
// (DataTree.updateQuotaStat). Clients do not see this as a change of data: version,
// mzxid, and mtime stay, and no watch fires. storeUsage stores the sum of the changes:
// a multi may change one usage ten thousand times.
func (t *Tree) count(path string, nodes, bytes int64) {
	subtree := t.quotaFor(path, nil)
	if subtree == "" {
		return
	}
	if t.uncounted == nil {
		t.uncounted = make(map[string]quotaChange)
	}
	c := t.uncounted[subtree]
	t.uncounted[subtree] = quotaChange{c.nodes + nodes, c.bytes + bytes}
}

// storeUsage stores the changes of usage since its last call: at the end of a
// transaction, and before the transaction changes the node of a quota.
func (t *Tree) storeUsage() {
	for subtree, c := range t.uncounted {
		n := t.nodes.get(quotaPath + subtree + "/" + statsName)
		if n == nil {
			continue
		}
		t.steps += quotaSteps
		// Data that cannot be parsed counts from the beginning. Requests cannot store
		// such data.
		used, _ := parseQuota(n.data())
		used.change(c.nodes, c.bytes)
		t.setQuota(n, used)
	}
	t.uncounted = nil
}

// storeUsageBefore calls storeUsage if the node at path is that of a quota.
func (t *Tree) storeUsageBefore(path string) {
	if len(t.uncounted) == 0 {
		return
	}
	if _, _, ok := quotaNode(path); ok {
		t.storeUsage()
	}
}

// setQuota replaces the data of a usage node.
func (t *Tree) setQuota(n *node, q quota) {
	t.setText(n, q.encode())
}

// quotaRoom is how much of its hard limits a quota leaves; limited is false if it has
// no such limit, or none is enforced.
type quotaRoom struct {
	nodes, bytes               int64
	nodesLimited, bytesLimited bool
}

// checkQuota refuses a change that exceeds a hard limit (ZooKeeperServer.checkQuota):
// nodes and bytes are added to the subtree that contains path. Soft limits refuse
// nothing. As in Java, each operation of a multi is compared with the usage before
// the multi, so that each quota is read once.
func (p *preparer) checkQuota(path string, nodes, bytes int64) wire.ErrCode {
	subtree := p.t.quotaFor(path, p.subtrees)
	if subtree == "" {
		return wire.ErrOK
	}
	room, known := p.quotas[subtree]
	if !known {
		p.t.steps += quotaSteps
		room = p.t.quotaRoom(subtree)
		if p.quotas != nil {
			p.quotas[subtree] = room
		}
	}
	if nodes != 0 && room.nodesLimited && nodes > room.nodes || bytes != 0 && room.bytesLimited && bytes > room.bytes {
		return wire.ErrQuotaExceeded
	}
	return wire.ErrOK
}

// quotaRoom reads a quota.
func (t *Tree) quotaRoom(subtree string) (room quotaRoom) {
	if !t.cfg.EnforceQuota {
		return room
	}
	limits, stats := t.nodes.get(quotaPath+subtree+"/"+limitName), t.nodes.get(quotaPath+subtree+"/"+statsName)
	if limits == nil || stats == nil {
		return room
	}
	limit, _ := parseQuota(limits.data())
	used, _ := parseQuota(stats.data())
	if hard := limit.get("countHardLimit"); hard > -1 {
		room.nodes, room.nodesLimited = hard-used.get("count"), true
	}
	if hard := limit.get("byteHardLimit"); hard > -1 {
		room.bytes, room.bytesLimited = hard-used.get("bytes"), true
	}
	return room
}
