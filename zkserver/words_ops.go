package zkserver

import "github.com/zklock/zklock/internal/wire"

// opName is an operation as cons shows it under "lop", in the four letters of
// Java's FinalRequestProcessor; "NA" before the first.
func opName(op wire.OpCode) string {
	names := [...]string{
		wire.OpCreate: "CREA", wire.OpCreate2: "CREA", wire.OpCreateContainer: "CREA", wire.OpCreateTTL: "CREA",
		wire.OpDelete: "DELE", wire.OpDeleteContainer: "DELE",
		wire.OpSetData: "SETD", wire.OpSetACL: "SETA", wire.OpReconfig: "RECO",
		wire.OpMulti: "MULT", wire.OpMultiRead: "MLTR", wire.OpCheck: "CHEC",
		wire.OpExists: "EXIS", wire.OpGetData: "GETD", wire.OpGetACL: "GETA",
		wire.OpGetChildren: "GETC", wire.OpGetChildren2: "GETC",
		wire.OpGetAllChildrenNumber: "GETACN", wire.OpGetEphemerals: "GETE",
		wire.OpSetWatches: "SETW", wire.OpSetWatches2: "STW2", wire.OpAddWatch: "ADDW",
		wire.OpCheckWatches: "CHKW", wire.OpRemoveWatches: "REMW",
		wire.OpSync: "SYNC", wire.OpPing: "PING", wire.OpWhoAmI: "HOMI",
		wire.OpAuth: "AUTH", wire.OpSASL: "SASL",
	}
	switch {
	case op == wire.OpCreateSession:
		return "SESS"
	case op == wire.OpCloseSession:
		return "CLOS"
	case op >= 0 && int(op) < len(names) && names[op] != "":
		return names[op]
	}
	return "NA"
}
