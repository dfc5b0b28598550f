package wire

import "github.com/zklock/zklock/internal/jute"

// Record is a message body, or a part of one, in both directions.
type Record interface {
	// Decode reads all fields. What went wrong is kept by the Reader, and the
	// record's content is undefined then.
	Decode(r *jute.Reader)
	// Append appends the encoded record to b and returns the longer slice.
	Append(b []byte) []byte
}

// Empty is the body of requests and answers that have none: ping, closeSession,
// whoAmI's request, delete's answer. The zero value is ready.
type Empty struct{}

// Decode reads nothing.
func (*Empty) Decode(*jute.Reader) {}

// Append appends nothing.
func (*Empty) Append(b []byte) []byte { return b }

// NewRequest returns an empty record for the body of a request of kind op, or
// nil if clients have no such request (unknown codes and those that only
// servers send among themselves).
func NewRequest(op OpCode) Record {
	switch op {
	case OpPing, OpCloseSession, OpWhoAmI:
		return new(Empty)
	case OpCreate, OpCreate2, OpCreateContainer:
		return new(CreateRequest)
	case OpCreateTTL:
		return new(CreateTTLRequest)
	case OpDelete:
		return new(DeleteRequest)
	case OpExists:
		return new(ExistsRequest)
	case OpGetData:
		return new(GetDataRequest)
	case OpSetData:
		return new(SetDataRequest)
	case OpGetACL:
		return new(GetACLRequest)
	case OpSetACL:
		return new(SetACLRequest)
	case OpGetChildren:
		return new(GetChildrenRequest)
	case OpGetChildren2:
		return new(GetChildren2Request)
	case OpSync:
		return new(SyncRequest)
	case OpCheck:
		return new(CheckVersionRequest)
	case OpMulti:
		return new(MultiRequest)
	case OpMultiRead:
		return new(MultiReadRequest)
	}
	return newAdminRequest(op)
}

// newAdminRequest is NewRequest for what does not touch a node's content:
// watches, authentication, inventory and configuration.
func newAdminRequest(op OpCode) Record {
	switch op {
	case OpReconfig:
		return new(ReconfigRequest)
	case OpCheckWatches:
		return new(CheckWatchesRequest)
	case OpRemoveWatches:
		return new(RemoveWatchesRequest)
	case OpAddWatch:
		return new(AddWatchRequest)
	case OpSetWatches:
		return new(SetWatches)
	case OpSetWatches2:
		return new(SetWatches2)
	case OpAuth:
		return new(AuthPacket)
	case OpSASL:
		return new(GetSASLRequest)
	case OpGetEphemerals:
		return new(GetEphemeralsRequest)
	case OpGetAllChildrenNumber:
		return new(GetAllChildrenNumberRequest)
	}
	return nil
}

// NewResponse returns an empty record for the body of a successful answer to a
// request of kind op, or nil where [NewRequest] gives nil. An answer whose
// header has an error carries no body, whatever op is.
func NewResponse(op OpCode) Record {
	switch op {
	case OpPing, OpCloseSession, OpDelete, OpCheck, OpCheckWatches, OpRemoveWatches,
		OpSetWatches, OpSetWatches2, OpAuth:
		return new(Empty)
	case OpCreate:
		return new(CreateResponse)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		return new(Create2Response)
	case OpExists:
		return new(ExistsResponse)
	case OpGetData, OpReconfig:
		// A reconfiguration answers with the new content of /zookeeper/config.
		return new(GetDataResponse)
	case OpSetData:
		return new(SetDataResponse)
	case OpGetACL:
		return new(GetACLResponse)
	case OpSetACL:
		return new(SetACLResponse)
	case OpGetChildren:
		return new(GetChildrenResponse)
	case OpGetChildren2:
		return new(GetChildren2Response)
	case OpSync:
		return new(SyncResponse)
	case OpMulti, OpMultiRead:
		return new(MultiResponse)
	case OpAddWatch:
		return new(ErrorResponse)
	case OpSASL:
		return new(SetSASLResponse)
	case OpGetEphemerals:
		return new(GetEphemeralsResponse)
	case OpGetAllChildrenNumber:
		return new(GetAllChildrenNumberResponse)
	case OpWhoAmI:
		return new(WhoAmIResponse)
	}
	return nil
}
