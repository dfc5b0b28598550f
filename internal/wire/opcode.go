package wire

import "strconv"

// OpCode is the operation of a request (org.apache.zookeeper.ZooDefs.OpCode). Zero is
// ZooKeeper's notification code, which clients never send.
type OpCode int32

// The operations of a client, and internal codes of servers that a client may see or
// send: OpDeleteContainer, OpCreateSession, OpError.
const (
	OpCreate               OpCode = 1
	OpDelete               OpCode = 2
	OpExists               OpCode = 3
	OpGetData              OpCode = 4
	OpSetData              OpCode = 5
	OpGetACL               OpCode = 6
	OpSetACL               OpCode = 7
	OpGetChildren          OpCode = 8
	OpSync                 OpCode = 9
	OpPing                 OpCode = 11
	OpGetChildren2         OpCode = 12
	OpCheck                OpCode = 13 // only inside a multi; alone it harms a 3.8.0 server
	OpMulti                OpCode = 14
	OpCreate2              OpCode = 15
	OpReconfig             OpCode = 16
	OpCheckWatches         OpCode = 17
	OpRemoveWatches        OpCode = 18
	OpCreateContainer      OpCode = 19
	OpDeleteContainer      OpCode = 20
	OpCreateTTL            OpCode = 21
	OpMultiRead            OpCode = 22
	OpAuth                 OpCode = 100
	OpSetWatches           OpCode = 101
	OpSASL                 OpCode = 102
	OpGetEphemerals        OpCode = 103
	OpGetAllChildrenNumber OpCode = 104
	OpSetWatches2          OpCode = 105
	OpAddWatch             OpCode = 106
	OpWhoAmI               OpCode = 107
	OpCreateSession        OpCode = -10
	OpCloseSession         OpCode = -11
	OpError                OpCode = -1
)

// String returns the name of the operation as in the Java class, or "op" and the
// number for an unknown code.
func (op OpCode) String() string {
	names := [...]string{
		OpCreate: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "getData",
		OpSetData: "setData", OpGetACL: "getACL", OpSetACL: "setACL",
		OpGetChildren: "getChildren", OpSync: "sync", OpPing: "ping",
		OpGetChildren2: "getChildren2", OpCheck: "check", OpMulti: "multi",
		OpCreate2: "create2", OpReconfig: "reconfig", OpCheckWatches: "checkWatches",
		OpRemoveWatches: "removeWatches", OpCreateContainer: "createContainer",
		OpDeleteContainer: "deleteContainer", OpCreateTTL: "createTTL",
		OpMultiRead: "multiRead", OpAuth: "auth", OpSetWatches: "setWatches",
		OpSASL: "sasl", OpGetEphemerals: "getEphemerals",
		OpGetAllChildrenNumber: "getAllChildrenNumber", OpSetWatches2: "setWatches2",
		OpAddWatch: "addWatch", OpWhoAmI: "whoAmI",
	}
	switch {
	case op == OpCreateSession:
		return "createSession"
	case op == OpCloseSession:
		return "closeSession"
	case op == OpError:
		return "error"
	case op >= 0 && int(op) < len(names) && names[op] != "":
		return names[op]
	}
	return "op" + strconv.Itoa(int(op))
}
