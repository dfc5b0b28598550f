package wire

import "github.com/zklock/zklock/internal/jute"

// ExistsRequest requests the Stat of the znode Path (OpExists). Watch also sets a
// one-time watch, which unlike others is also set on a missing znode.
type ExistsRequest struct {
	Path  string
	Watch bool
}

// Decode reads the request.
func (q *ExistsRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Watch = r.Bool()
}

// Append appends the request.
func (q *ExistsRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendBool(b, q.Watch)
}

// ExistsResponse answers OpExists. For a missing znode, the header of the answer has
// ErrNoNode instead.
type ExistsResponse struct {
	Stat Stat
}

// Decode reads the answer.
func (p *ExistsResponse) Decode(r *jute.Reader) {
	p.Stat.Decode(r)
}

// Append appends the answer.
func (p *ExistsResponse) Append(b []byte) []byte {
	return p.Stat.Append(b)
}

// GetDataRequest requests the data of the znode Path (OpGetData). Watch also sets a
// one-time watch, unless the znode is missing.
type GetDataRequest struct {
	Path  string
	Watch bool
}

// Decode reads the request.
func (q *GetDataRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Watch = r.Bool()
}

// Append appends the request.
func (q *GetDataRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendBool(b, q.Watch)
}

// GetDataResponse answers OpGetData, and OpReconfig with the new configuration. Nil
// Data means null data, which differs from empty data.
type GetDataResponse struct {
	Data []byte
	Stat Stat
}

// Decode reads the answer; Data aliases the frame.
func (p *GetDataResponse) Decode(r *jute.Reader) {
	p.Data = r.Buffer()
	p.Stat.Decode(r)
}

// Append appends the answer.
func (p *GetDataResponse) Append(b []byte) []byte {
	b = jute.AppendBuffer(b, p.Data)
	return p.Stat.Append(b)
}

// GetChildrenRequest requests the names of the children of the znode Path
// (OpGetChildren). Watch also sets a one-time watch on them.
type GetChildrenRequest struct {
	Path  string
	Watch bool
}

// Decode reads the request.
func (q *GetChildrenRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Watch = r.Bool()
}

// Append appends the request.
func (q *GetChildrenRequest) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendBool(b, q.Watch)
}

// GetChildrenResponse answers OpGetChildren with names, not paths, in no particular
// order.
type GetChildrenResponse struct {
	Children []string
}

// Decode reads the answer.
func (p *GetChildrenResponse) Decode(r *jute.Reader) {
	p.Children = r.Strings()
}

// Append appends the answer.
func (p *GetChildrenResponse) Append(b []byte) []byte {
	return jute.AppendStrings(b, p.Children)
}

// GetChildren2Request is [GetChildrenRequest] with an answer that also has the Stat
// (OpGetChildren2).
type GetChildren2Request struct {
	Path  string
	Watch bool
}

// Decode reads the request.
func (q *GetChildren2Request) Decode(r *jute.Reader) {
	q.Path = r.String()
	q.Watch = r.Bool()
}

// Append appends the request.
func (q *GetChildren2Request) Append(b []byte) []byte {
	b = jute.AppendString(b, q.Path)
	return jute.AppendBool(b, q.Watch)
}

// GetChildren2Response answers OpGetChildren2 with the children's names, in no
// particular order, and the Stat of the znode Path.
type GetChildren2Response struct {
	Children []string
	Stat     Stat
}

// Decode reads the answer.
func (p *GetChildren2Response) Decode(r *jute.Reader) {
	p.Children = r.Strings()
	p.Stat.Decode(r)
}

// Append appends the answer.
func (p *GetChildren2Response) Append(b []byte) []byte {
	b = jute.AppendStrings(b, p.Children)
	return p.Stat.Append(b)
}

// GetAllChildrenNumberRequest requests the number of znodes below Path at any depth
// (OpGetAllChildrenNumber).
type GetAllChildrenNumberRequest struct {
	Path string
}

// Decode reads the request.
func (q *GetAllChildrenNumberRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
}

// Append appends the request.
func (q *GetAllChildrenNumberRequest) Append(b []byte) []byte {
	return jute.AppendString(b, q.Path)
}

// GetAllChildrenNumberResponse answers OpGetAllChildrenNumber.
type GetAllChildrenNumberResponse struct {
	TotalNumber int32
}

// Decode reads the answer.
func (p *GetAllChildrenNumberResponse) Decode(r *jute.Reader) {
	p.TotalNumber = r.Int32()
}

// Append appends the answer.
func (p *GetAllChildrenNumberResponse) Append(b []byte) []byte {
	return jute.AppendInt32(b, p.TotalNumber)
}

// GetEphemeralsRequest requests the session's ephemeral znodes whose paths begin with
// PrefixPath (OpGetEphemerals).
type GetEphemeralsRequest struct {
	PrefixPath string
}

// Decode reads the request.
func (q *GetEphemeralsRequest) Decode(r *jute.Reader) {
	q.PrefixPath = r.String()
}

// Append appends the request.
func (q *GetEphemeralsRequest) Append(b []byte) []byte {
	return jute.AppendString(b, q.PrefixPath)
}

// GetEphemeralsResponse answers OpGetEphemerals with paths, in no particular order.
type GetEphemeralsResponse struct {
	Ephemerals []string
}

// Decode reads the answer.
func (p *GetEphemeralsResponse) Decode(r *jute.Reader) {
	p.Ephemerals = r.Strings()
}

// Append appends the answer.
func (p *GetEphemeralsResponse) Append(b []byte) []byte {
	return jute.AppendStrings(b, p.Ephemerals)
}

// SyncRequest waits until the server has applied everything that the leader had
// committed when it received the request (OpSync).
type SyncRequest struct {
	Path string
}

// Decode reads the request.
func (q *SyncRequest) Decode(r *jute.Reader) {
	q.Path = r.String()
}

// Append appends the request.
func (q *SyncRequest) Append(b []byte) []byte {
	return jute.AppendString(b, q.Path)
}

// SyncResponse answers OpSync with the request's path.
type SyncResponse struct {
	Path string
}

// Decode reads the answer.
func (q *SyncResponse) Decode(r *jute.Reader) {
	q.Path = r.String()
}

// Append appends the answer.
func (q *SyncResponse) Append(b []byte) []byte {
	return jute.AppendString(b, q.Path)
}
