package zkserver

import "github.com/zklock/zklock/internal/wire"

// opName is an operation as cons shows it under "lop", in the four letters of
// Java's FinalRequestProcessor; "NA" before the first.
func opName(op wire.OpCode) string {
	switch op {
	case wire.OpCreateSession:
		return "SESS"
	case wire.OpCloseSession:
		return "CLOS"
	case wire.OpPing:
		return "PING"
	case wire.OpMulti:
		return "MULT"
	case wire.OpMultiRead:
		return "MLTR"
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return "CREA"
	case wire.OpDelete, wire.OpDeleteContainer:
		return "DELE"
	case wire.OpSetData:
		return "SETD"
	case wire.OpReconfig:
		return "RECO"
	case wire.OpSetACL:
		return "SETA"
	case wire.OpSync:
		return "SYNC"
	case wire.OpCheck:
		return "CHEC"
	case wire.OpExists:
		return "EXIS"
	}
	return watchOpName(op)
}

// watchOpName goes on with reads and watches.
func watchOpName(op wire.OpCode) string {
	switch op {
	case wire.OpGetData:
		return "GETD"
	case wire.OpGetACL:
		return "GETA"
	case wire.OpGetChildren, wire.OpGetChildren2:
		return "GETC"
	case wire.OpGetAllChildrenNumber:
		return "GETACN"
	case wire.OpGetEphemerals:
		return "GETE"
	case wire.OpSetWatches:
		return "SETW"
	case wire.OpSetWatches2:
		return "STW2"
	case wire.OpAddWatch:
		return "ADDW"
	case wire.OpCheckWatches:
		return "CHKW"
	case wire.OpRemoveWatches:
		return "REMW"
	case wire.OpWhoAmI:
		return "HOMI"
	case wire.OpAuth:
		return "AUTH"
	case wire.OpSASL:
		return "SASL"
	}
	return "NA"
}
