package wire_test

import "github.com/zklock/zklock/internal/wire"

// watchLayouts returns the messages about watches.
func watchLayouts() []layout {
	const path = "/a/b"
	paths := []string{path}
	const one = "00000001 " + pathHex
	return []layout{
		{"deleted", &wire.WatcherEvent{Type: wire.EventNodeDeleted, State: wire.StateSyncConnected, Path: path},
			"00000002 00000003" + pathHex},
		{"session", &wire.WatcherEvent{Type: wire.EventNone, State: wire.StateExpired}, "ffffffff ffffff90 00000000"},
		{"data", &wire.CheckWatchesRequest{Path: path, Type: wire.WatcherData}, pathHex + "00000002"},
		{"any", &wire.RemoveWatchesRequest{Path: path, Type: wire.WatcherAny}, pathHex + "00000003"},
		{"recursive", &wire.AddWatchRequest{Path: path, Mode: wire.AddWatchPersistentRecursive}, pathHex + "00000001"},
		{"ok", &wire.ErrorResponse{}, "00000000"},
		{"error", &wire.ErrorResponse{Err: wire.ErrBadVersion}, "ffffff99"},
		{"one each", &wire.SetWatches{RelativeZxid: 5, DataWatches: paths, ExistWatches: []string{}, ChildWatches: paths},
			"0000000000000005" + one + "00000000" + one},
		{"nulls", &wire.SetWatches{}, "0000000000000000 ffffffff ffffffff ffffffff"},
		{"all", &wire.SetWatches2{
			RelativeZxid: -1, DataWatches: paths, ExistWatches: []string{}, ChildWatches: nil,
			PersistentWatches: paths, PersistentRecursiveWatches: []string{"/", ""},
		}, "ffffffffffffffff" + one + "00000000 ffffffff" + one + "00000002 00000001 2f 00000000"},
		{"nulls", &wire.SetWatches2{}, "0000000000000000 ffffffff ffffffff ffffffff ffffffff ffffffff"},
	}
}

// adminLayouts returns the messages about identities, listings, and the configuration.
func adminLayouts() []layout {
	return []layout{
		{"digest", &wire.AuthPacket{Scheme: "digest", Auth: []byte("u:p")},
			"00000000 00000006 646967657374 00000003 753a70"},
		{"null", &wire.AuthPacket{Type: 1, Scheme: ""}, "00000001 00000000 ffffffff"},
		{"token", &wire.GetSASLRequest{Token: []byte{1, 2}}, "00000002 0102"},
		{"token", &wire.SetSASLResponse{Token: []byte{}}, "00000000"},
		{"null", &wire.SetSASLResponse{}, "ffffffff"},
		{"prefix", &wire.GetEphemeralsRequest{PrefixPath: "/"}, "00000001 2f"},
		{"paths", &wire.GetEphemeralsResponse{Ephemerals: []string{"/a/b"}}, "00000001" + pathHex},
		{"path", &wire.GetAllChildrenNumberRequest{Path: "/a/b"}, pathHex},
		{"number", &wire.GetAllChildrenNumberResponse{TotalNumber: 258}, "00000102"},
		{"two", &wire.WhoAmIResponse{ClientInfo: []wire.ClientInfo{{AuthScheme: "ip", User: "::1"}, {}}},
			"00000002 00000002 6970 00000003 3a3a31 00000000 00000000"},
		{"none", &wire.WhoAmIResponse{ClientInfo: []wire.ClientInfo{}}, "00000000"},
		{"null", &wire.WhoAmIResponse{}, "ffffffff"},
		{"one", &wire.ClientInfo{AuthScheme: "ip", User: "u"}, "00000002 6970 00000001 75"},
		{"new members", &wire.ReconfigRequest{NewMembers: []byte("s"), CurConfigID: -1},
			"ffffffff ffffffff 00000001 73 ffffffffffffffff"},
		{"join and leave", &wire.ReconfigRequest{JoiningServers: []byte("j"), LeavingServers: []byte{}, CurConfigID: 0x100000000},
			"00000001 6a 00000000 ffffffff 0000000100000000"},
	}
}
