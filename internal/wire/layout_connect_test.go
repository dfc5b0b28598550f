package wire_test

import "github.com/zklock/zklock/internal/wire"

// headerLayouts returns the headers, and records that many messages share.
func headerLayouts() []layout {
	stat := sampleStat()
	return []layout{
		{"request", &wire.RequestHeader{Xid: 7, Op: wire.OpGetData}, "00000007 00000004"},
		{"close", &wire.RequestHeader{Xid: 8, Op: wire.OpCloseSession}, "00000008 fffffff5"},
		{"ping", &wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing}, "fffffffe 0000000b"},
		{"answer", &wire.ReplyHeader{Xid: 7, Zxid: 0x200000003}, "00000007 0000000200000003 00000000"},
		{"failure", &wire.ReplyHeader{Xid: 7, Zxid: 3, Err: wire.ErrNoNode}, "00000007 0000000000000003 ffffff9b"},
		{"event", &wire.ReplyHeader{Xid: wire.XidEvent, Zxid: -1}, "ffffffff ffffffffffffffff 00000000"},
		{"nothing", &wire.Empty{}, ""},
		{"all fields", &stat, sampleStatHex},
		{"world", &wire.ACL{Perms: wire.PermAll, Scheme: "world", ID: "anyone"},
			"0000001f 00000005 776f726c64 00000006 616e796f6e65"},
	}
}

// connectLayouts returns the messages of the handshake, with and without the read-only byte.
func connectLayouts() []layout {
	password := []byte("0123456789abcdef")
	const passwordHex = "00000010 30313233343536373839616263646566"
	return []layout{
		{"new session", &wire.ConnectRequest{Timeout: 10000, Password: make([]byte, 16), HasReadOnly: true},
			"00000000 0000000000000000 00002710 0000000000000000 00000010 00000000000000000000000000000000 00"},
		{"resume", &wire.ConnectRequest{
			ProtocolVersion: 1, LastZxidSeen: 0x500000001, Timeout: 4000, SessionID: 0x100001,
			Password: password, ReadOnly: true, HasReadOnly: true,
		}, "00000001 0000000500000001 00000fa0 0000000000100001" + passwordHex + "01"},
		{"old client", &wire.ConnectRequest{Timeout: 4000, Password: []byte{}},
			"00000000 0000000000000000 00000fa0 0000000000000000 00000000"},
		{"null password", &wire.ConnectRequest{Timeout: 4000, HasReadOnly: true},
			"00000000 0000000000000000 00000fa0 0000000000000000 ffffffff 00"},
		{"accepted", &wire.ConnectResponse{Timeout: 4000, SessionID: 0x100001, Password: password, HasReadOnly: true},
			"00000000 00000fa0 0000000000100001" + passwordHex + "00"},
		{"read-only server", &wire.ConnectResponse{Timeout: 4000, SessionID: 1, Password: password, ReadOnly: true, HasReadOnly: true},
			"00000000 00000fa0 0000000000000001" + passwordHex + "01"},
		{"to an old client", &wire.ConnectResponse{Timeout: 4000, SessionID: 1, Password: password},
			"00000000 00000fa0 0000000000000001" + passwordHex},
		{"expired", &wire.ConnectResponse{Password: make([]byte, 16), HasReadOnly: true},
			"00000000 00000000 0000000000000000 00000010 00000000000000000000000000000000 00"},
	}
}
