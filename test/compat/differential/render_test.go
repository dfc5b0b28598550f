package differential

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// takesZxid reports whether a request causes a transaction.
func takesZxid(op wire.OpCode) bool {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete,
		wire.OpSetData, wire.OpSetACL, wire.OpMulti, wire.OpReconfig, wire.OpCloseSession:
		return true
	}
	return false
}

// reply describes a reply for the comparison.
func (s *side) reply(op wire.OpCode, f frame) string {
	if f.closed {
		return "closed"
	}
	id := s.zxids.reading(f.header.Zxid)
	// A malformed request may cause no transaction.
	if takesZxid(op) && (s.zxids.exact || f.header.Err != wire.ErrMarshalling) {
		s.zxids.wrote(f.header.Zxid)
		id = s.zxids.name(f.header.Zxid)
	}
	head := fmt.Sprintf("xid %d zxid %s %s", f.header.Xid, id, f.header.Err.Name())
	resp := wire.NewResponse(op)
	if f.header.Err != wire.ErrOK || resp == nil {
		if len(f.body) > 0 {
			head += fmt.Sprintf(", body %x", f.body)
		}
		return head
	}
	body := bytes.ReplaceAll(f.body, []byte(s.root), []byte(placeholder))
	r := jute.NewReader(body)
	resp.Decode(r)
	// If decoding and encoding give the same bytes, the fields show everything.
	if err := r.Finish(); err != nil || !bytes.Equal(resp.Append(nil), body) {
		return fmt.Sprintf("%s, undecodable (%v): %x", head, err, body)
	}
	return head + " " + s.body(resp)
}

// body describes a reply, with values that differ between servers mapped.
func (s *side) body(resp wire.Record) string {
	switch m := resp.(type) {
	case *wire.Create2Response:
		return m.Path + " " + s.stat(m.Stat)
	case *wire.ExistsResponse:
		return s.stat(m.Stat)
	case *wire.GetDataResponse:
		return fmt.Sprintf("%q nil=%v %s", m.Data, m.Data == nil, s.stat(m.Stat))
	case *wire.SetDataResponse:
		return s.stat(m.Stat)
	case *wire.SetACLResponse:
		return s.stat(m.Stat)
	case *wire.GetACLResponse:
		return fmt.Sprintf("%v %s", aclOrder(m.ACL), s.stat(m.Stat))
	case *wire.GetChildrenResponse:
		return sorted(m.Children)
	case *wire.GetChildren2Response:
		return sorted(m.Children) + " " + s.stat(m.Stat)
	case *wire.GetEphemeralsResponse:
		return sorted(m.Ephemerals)
	case *wire.WhoAmIResponse:
		// Java has another order of identities.
		slices.SortFunc(m.ClientInfo, func(a, b wire.ClientInfo) int {
			return strings.Compare(a.AuthScheme+":"+a.User, b.AuthScheme+":"+b.User)
		})
	case *wire.MultiResponse:
		var parts []string
		for _, r := range m.Results {
			part := fmt.Sprintf("%v %s", r.Op, r.Err.Name())
			if r.Resp != nil {
				part += " " + s.body(r.Resp)
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, "; ") + "]"
	}
	return show(resp)
}

// aclOrder sorts adjacent entries with the same permissions, because for "auth", Java lists the
// requester's identities in the order of a hash table.
func aclOrder(list []wire.ACL) []wire.ACL {
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j].Perms == list[i].Perms {
			j++
		}
		slices.SortFunc(list[i:j], func(a, b wire.ACL) int {
			return strings.Compare(a.Scheme+":"+a.ID, b.Scheme+":"+b.ID)
		})
		i = j
	}
	return list
}

// sorted describes names, which in Java have the order of a hash table.
func sorted(names []string) string {
	if names == nil {
		return "null"
	}
	list := slices.Clone(names)
	slices.Sort(list)
	return fmt.Sprintf("%q", list)
}

// stat describes a Stat: zxids and sessions by name, and times by zxid.
func (s *side) stat(st wire.Stat) string {
	z := &s.zxids
	return fmt.Sprintf("{czxid %s%s mzxid %s%s pzxid %s version %d cversion %d aversion %d owner %s length %d children %d}",
		z.name(st.Czxid), z.time(st.Czxid, st.Ctime), z.name(st.Mzxid), z.time(st.Mzxid, st.Mtime), z.name(st.Pzxid),
		st.Version, st.Cversion, st.Aversion, s.sessionName(st.EphemeralOwner), st.DataLength, st.NumChildren)
}

// sessionName numbers the script's sessions in order of creation.
func (s *side) sessionName(id int64) string {
	if id == 0 {
		return "none"
	}
	if i := slices.Index(s.sessions, id); i >= 0 {
		return fmt.Sprintf("session %d", i)
	}
	return "foreign"
}

// eventLine describes an event.
func (s *side) eventLine(f frame) string {
	e := f.event
	return fmt.Sprintf("event %v %v %s zxid %s", e.Type, e.State, strings.ReplaceAll(e.Path, s.root, placeholder), s.zxids.name(f.header.Zxid))
}
