package wire_test

import "github.com/zklock/zklock/internal/wire"

// endHex is the end marker of a multi.
const endHex = "ffffffff 01 ffffffff"

// multiLayouts returns multis and their results.
func multiLayouts() []layout {
	const path = "/a/b"
	stat := sampleStat()
	return []layout{
		{"empty", &wire.MultiRequest{}, endHex},
		{"next lock", &wire.MultiRequest{Ops: []wire.MultiOp{
			{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: path, Version: -1}},
			{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: path, ACL: worldACL(), Flags: wire.ModeEphemeralSequential}},
		}}, "00000002 00 ffffffff" + pathHex + "ffffffff" +
			"00000001 00 ffffffff" + pathHex + "ffffffff" + worldHex + "00000003" + endHex},
		{"every kind", &wire.MultiRequest{Ops: []wire.MultiOp{
			{Op: wire.OpCreate2, Req: &wire.CreateRequest{Path: path}},
			{Op: wire.OpCreateContainer, Req: &wire.CreateRequest{Path: path, Flags: wire.ModeContainer}},
			{Op: wire.OpCreateTTL, Req: &wire.CreateTTLRequest{Path: path, TTL: 1}},
			{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: path, Version: 1}},
			{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: path, Version: 2}},
		}}, "0000000f 00 ffffffff" + pathHex + "ffffffff ffffffff 00000000" +
			"00000013 00 ffffffff" + pathHex + "ffffffff ffffffff 00000004" +
			"00000015 00 ffffffff" + pathHex + "ffffffff ffffffff 00000000 0000000000000001" +
			"00000005 00 ffffffff" + pathHex + "ffffffff 00000001" +
			"0000000d 00 ffffffff" + pathHex + "00000002" + endHex},
		{"empty", &wire.MultiReadRequest{}, endHex},
		{"both kinds", &wire.MultiReadRequest{Ops: []wire.MultiOp{
			{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: path}},
			{Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: path, Watch: true}},
		}}, "00000004 00 ffffffff" + pathHex + "00" + "00000008 00 ffffffff" + pathHex + "01" + endHex},
		{"empty", &wire.MultiResponse{}, endHex},
		{"success", &wire.MultiResponse{Results: []wire.MultiResult{
			{Op: wire.OpDelete},
			{Op: wire.OpCreate, Resp: &wire.CreateResponse{Path: path}},
			{Op: wire.OpCreate2, Resp: &wire.Create2Response{Path: path, Stat: stat}},
			{Op: wire.OpSetData, Resp: &wire.SetDataResponse{Stat: stat}},
			{Op: wire.OpCheck},
		}}, "00000002 00 00000000" + "00000001 00 00000000" + pathHex +
			"0000000f 00 00000000" + pathHex + sampleStatHex +
			"00000005 00 00000000" + sampleStatHex + "0000000d 00 00000000" + endHex},
		// Java writes this if the second of three operations failed: type -1, and the code in
		// the header and in the body.
		{"failure", &wire.MultiResponse{Results: []wire.MultiResult{
			{Op: wire.OpError, Err: wire.ErrOK},
			{Op: wire.OpError, Err: wire.ErrNodeExists},
			{Op: wire.OpError, Err: wire.ErrRuntimeInconsistency},
		}}, "ffffffff 00 00000000 00000000" + "ffffffff 00 ffffff92 ffffff92" +
			"ffffffff 00 fffffffe fffffffe" + endHex},
		{"reads", &wire.MultiResponse{Results: []wire.MultiResult{
			{Op: wire.OpGetData, Resp: &wire.GetDataResponse{Data: []byte("x"), Stat: stat}},
			{Op: wire.OpError, Err: wire.ErrNoNode},
			{Op: wire.OpGetChildren, Resp: &wire.GetChildrenResponse{Children: []string{"c"}}},
		}}, "00000004 00 00000000 00000001 78" + sampleStatHex +
			"ffffffff 00 ffffff9b ffffff9b" + "00000008 00 00000000 00000001 00000001 63" + endHex},
	}
}
