package wire_test

import "github.com/zklock/zklock/internal/wire"

// pathHex is the path /a/b as a string.
const pathHex = "00000004 2f612f62 "

// worldACL returns a list that permits everything to everyone. worldHex is its encoding.
func worldACL() []wire.ACL {
	return []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
}

const worldHex = "00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 "

// nodeRequestLayouts returns the requests about one node.
func nodeRequestLayouts() []layout {
	const path = "/a/b"
	return []layout{
		{"lock node", &wire.CreateRequest{Path: path, Data: []byte("me"), ACL: worldACL(), Flags: wire.ModeEphemeralSequential},
			pathHex + "00000002 6d65" + worldHex + "00000003"},
		{"nulls", &wire.CreateRequest{Path: path}, pathHex + "ffffffff ffffffff 00000000"},
		{"empties", &wire.CreateRequest{Path: "", Data: []byte{}, ACL: []wire.ACL{}, Flags: wire.ModeContainer},
			"00000000 00000000 00000000 00000004"},
		{"two entries", &wire.CreateRequest{Path: path, ACL: []wire.ACL{
			{Perms: wire.PermRead, Scheme: "ip", ID: "::1"}, {Perms: wire.PermAdmin | wire.PermDelete, Scheme: "auth"},
		}}, pathHex + "ffffffff 00000002 00000001 00000002 6970 00000003 3a3a31 00000018 00000004 61757468 00000000 00000000"},
		{"a minute", &wire.CreateTTLRequest{Path: path, Data: []byte{1}, ACL: worldACL(), Flags: wire.ModePersistentTTL, TTL: 60000},
			pathHex + "00000001 01" + worldHex + "00000005 000000000000ea60"},
		{"nulls", &wire.CreateTTLRequest{Path: path, TTL: -1}, pathHex + "ffffffff ffffffff 00000000 ffffffffffffffff"},
		{"version", &wire.DeleteRequest{Path: path, Version: 3}, pathHex + "00000003"},
		{"any version", &wire.DeleteRequest{Path: path, Version: -1}, pathHex + "ffffffff"},
		{"watch", &wire.ExistsRequest{Path: path, Watch: true}, pathHex + "01"},
		{"no watch", &wire.ExistsRequest{Path: path}, pathHex + "00"},
		{"watch", &wire.GetDataRequest{Path: path, Watch: true}, pathHex + "01"},
		{"no watch", &wire.GetDataRequest{Path: "/"}, "00000001 2f 00"},
		{"data", &wire.SetDataRequest{Path: path, Data: []byte("x"), Version: 2}, pathHex + "00000001 78 00000002"},
		{"no data", &wire.SetDataRequest{Path: path, Version: -1}, pathHex + "ffffffff ffffffff"},
		{"path", &wire.GetACLRequest{Path: path}, pathHex},
		{"world", &wire.SetACLRequest{Path: path, ACL: worldACL(), Version: 4}, pathHex + worldHex + "00000004"},
		{"null", &wire.SetACLRequest{Path: path}, pathHex + "ffffffff 00000000"},
		{"watch", &wire.GetChildrenRequest{Path: path, Watch: true}, pathHex + "01"},
		{"watch", &wire.GetChildren2Request{Path: path, Watch: true}, pathHex + "01"},
		{"path", &wire.SyncRequest{Path: path}, pathHex},
		{"version", &wire.CheckVersionRequest{Path: path, Version: 9}, pathHex + "00000009"},
	}
}

// nodeResponseLayouts returns the answers about one node.
func nodeResponseLayouts() []layout {
	const path = "/a/b"
	stat := sampleStat()
	children := []string{"c", "lock-0000000001"}
	const childrenHex = "00000002 00000001 63 0000000f 6c6f636b2d30303030303030303031 "
	return []layout{
		{"path", &wire.CreateResponse{Path: path}, pathHex},
		{"path and stat", &wire.Create2Response{Path: path, Stat: stat}, pathHex + sampleStatHex},
		{"stat", &wire.ExistsResponse{Stat: stat}, sampleStatHex},
		{"data", &wire.GetDataResponse{Data: []byte("x"), Stat: stat}, "00000001 78" + sampleStatHex},
		{"null data", &wire.GetDataResponse{Stat: stat}, "ffffffff" + sampleStatHex},
		{"empty data", &wire.GetDataResponse{Data: []byte{}, Stat: stat}, "00000000" + sampleStatHex},
		{"stat", &wire.SetDataResponse{Stat: stat}, sampleStatHex},
		{"world", &wire.GetACLResponse{ACL: worldACL(), Stat: stat}, worldHex + sampleStatHex},
		{"null", &wire.GetACLResponse{Stat: stat}, "ffffffff" + sampleStatHex},
		{"stat", &wire.SetACLResponse{Stat: stat}, sampleStatHex},
		{"two", &wire.GetChildrenResponse{Children: children}, childrenHex},
		{"none", &wire.GetChildrenResponse{Children: []string{}}, "00000000"},
		{"null", &wire.GetChildrenResponse{}, "ffffffff"},
		{"two", &wire.GetChildren2Response{Children: children, Stat: stat}, childrenHex + sampleStatHex},
		{"none", &wire.GetChildren2Response{Children: []string{}, Stat: stat}, "00000000" + sampleStatHex},
		{"path", &wire.SyncResponse{Path: path}, pathHex},
	}
}
