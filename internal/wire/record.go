package wire

import "github.com/zklock/zklock/internal/jute"

// Record is a message body, or a part of one, in both directions.
type Record interface {
	// Decode reads all fields. The Reader keeps the error, after which the content of
	// the record is undefined.
	Decode(r *jute.Reader)
	// Append appends the encoded record to b and returns the longer slice.
	Append(b []byte) []byte
}

// Empty is the body of requests and answers without a body: ping, closeSession, the
// request of whoAmI, the answer to delete.
type Empty struct{}

// Decode reads nothing.
func (*Empty) Decode(*jute.Reader) {}

// Append appends nothing.
func (*Empty) Append(b []byte) []byte { return b }

// NewRequest returns an empty record for the body of a request with the code op. It
// returns nil for codes that clients do not send: unknown codes and internal codes of
// servers.
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

// newAdminRequest is NewRequest for operations that do not concern a znode's data:
// watches, authentication, ephemerals, and configuration.
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
// request with the code op. It returns nil if [NewRequest] does. An answer with an
// error in its header has no body.
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
