package zklock

import (
	"bytes"
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A Mode is how an entry holds the lock, or waits to hold it.
type Mode string

// The modes of entries.
const (
	Exclusive Mode = "exclusive" // holds alone: a mutex, a writer, a node lock
	Shared    Mode = "shared"    // holds together with others of its mode: a reader
	Permit    Mode = "permit"    // a permit of a semaphore, or a waiter for permits
	Stray     Mode = "stray"     // not a contender: it has no position in the order
)

// An Entry is one znode of a lock: of a holder, of a waiter, or a stray.
type Entry struct {
	Path    string         // the path of the lock, see Lock.Path
	Node    string         // the path of the znode
	Name    string         // the last level of Node
	Mode    Mode           // its role
	Holder  bool           // it holds the lock
	Token   int64          // Czxid, or what it kept from when it was a writer; the fencing token if it holds
	Czxid   int64          // the transaction that created it, which identifies it; 0 if unreadable
	Session int64          // the id of the session that owns it; 0 if it is not ephemeral
	Since   time.Time      // when it was created, by the clock of the servers
	Owner   Owner          // the client that created it, if that was zklock; otherwise zero
	Data    string         // what another library stored in it; unreadable characters are escaped, as \u202e
	Parent  bool           // it has znodes below it, or had: another lock's znode, for example
	Revoked bool           // a client requested its release
	Request ReleaseRequest // if Revoked: which client did, and why, if the request says so
	// Value is what the client of the entry set with Lock.WithValue or Hold.SetValue, byte
	// for byte; empty means none. Every client that can write to the znode can set it, so
	// check it before use, and escape it before it is shown.
	Value string
}

// ownerName returns the best available name of the owner.
func (e Entry) ownerName() string {
	switch {
	case e.Owner.Host != "" || e.Owner.PID != 0:
		return e.Owner.String()
	case e.Data != "":
		return e.Data
	}
	return e.Name
}

// A znodeEntry is an entry with what was read of its znode.
type znodeEntry struct {
	Entry
	data    []byte // or only their beginning, if this package cannot have written them
	version int32
	readErr error // why the znode could not be read
}

// decode adds what was read of the znode of the entry.
func (e Entry) decode(r zk.Result) znodeEntry {
	e.Token, e.Czxid, e.Session = r.Stat.Czxid, r.Stat.Czxid, r.Stat.EphemeralOwner
	e.Since = time.UnixMilli(r.Stat.Ctime)
	e.Parent = r.Stat.Cversion != 0 || r.Stat.NumChildren != 0
	e.Owner, e.Data = parseOwner(r.Data)
	e.Value = parseValue(r.Data)
	if e.Mode == Shared && e.Owner.Token > 0 && e.Owner.Token < e.Czxid { // else it is false
		e.Token = e.Owner.Token
	}
	e.Revoked, e.Request = queue.ReleaseRequested(r.Data), decodeRequest(r.Data)
	if e.Revoked && e.Data != "" { // the request replaced the data of the other library
		e.Data = ""
	}
	f := znodeEntry{Entry: e, data: r.Data, version: r.Stat.Version}
	if len(f.data) > maxDataSize {
		f.data = bytes.Clone(f.data[:maxOwnerSize])
	}
	return f
}

// dropFalseToken drops the token that the data of the entry claim, if they also declare a custom
// layout in which the name does not mean what it means to c: no client downgrades to such an entry.
func (c *Client) dropFalseToken(f *znodeEntry) {
	l := f.Owner.Layout
	if f.Token == f.Czxid || l == (Layout{}) || c.opts.Layout.isCustom() {
		return
	}
	if l.names("").Misnames(f.Name) {
		f.Token = f.Czxid
	}
}

// dropFalseTokens drops the tokens that the data of a lock's entries claim, if another of its
// entries was created with the token: a downgrade deletes that entry.
func dropFalseTokens(found []znodeEntry) {
	claimed := map[int64]bool{} // and whether an entry was created with it
	for _, f := range found {
		if f.Token != f.Czxid {
			claimed[f.Token] = false
		}
	}
	if len(claimed) == 0 {
		return
	}
	for _, f := range found {
		if _, ok := claimed[f.Czxid]; ok {
			claimed[f.Czxid] = true
		}
	}
	for i := range found {
		if f := &found[i]; claimed[f.Token] {
			f.Token = f.Czxid
		}
	}
}

// textBytes returns the size of what was read of the znode.
func (f *znodeEntry) textBytes() int {
	size := len(f.data)
	for _, text := range []string{
		f.Data, f.Value,
		f.Owner.Host, f.Owner.User, f.Owner.Command, f.Owner.Version, f.Owner.ParentSession,
		f.Request.By.Host, f.Request.By.User, f.Request.Reason,
	} {
		size += len(text)
	}
	return size
}

// Version is the version of this library, as it appears in an Owner.
const Version = "0.2.0"

// versionPrefix begins Owner.Version in data that this package wrote.
const versionPrefix = "zklock "

const (
	// maxOwnerSize bounds the size in bytes of an owner's data, and of the data of
	// other libraries that are shown.
	maxOwnerSize = 4 << 10
	// idSize is the size in bytes of an id, as queue.FormatGUID writes it.
	idSize = 36
	// maxDataSize is more than this package writes to a znode: the owner's data with
	// an id, a token, a value, and a release request.
	maxDataSize = 2 * maxOwnerSize
)

// An Owner tells people which program created the znode of a lock. The znode contains it
// as one line of JSON; other clients ignore it.
type Owner struct {
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	User    string    `json:"user,omitempty"`
	Command string    `json:"command,omitempty"`
	Since   time.Time `json:"since,omitzero"` // when the acquire began, by the owner's clock
	// Version is that of zklock, unless Options.Owner has another one. For an anonymous
	// client without a custom layout, it is "zklock".
	Version string `json:"version,omitempty"`
	// Token is the fencing token of a reader that was a writer before: its znode is
	// new, and the hold still has the token of the writer. Otherwise it is 0.
	// Options.Owner cannot set it.
	Token int64 `json:"token,omitempty"`
	// ParentSession is the session of the zklock run in which this process runs, as 0x
	// and hexadecimal digits. That session keeps its holds until this process ends. So
	// while this process waits for a lock, that session waits too, which matters for
	// the search for deadlocks. zklock run sets it. Empty means none.
	ParentSession string `json:"within,omitempty"`
	// Layout is the layout of the client, if it is a custom one. Tools recognize the
	// entry by it; it does not affect which client holds the lock. Otherwise it is zero.
	// Options.Owner cannot set it.
	Layout Layout `json:"layout,omitzero"`
}

// String returns host:pid, or the part of it that is known.
func (o Owner) String() string {
	if o.PID == 0 {
		return o.Host
	}
	return o.Host + ":" + strconv.Itoa(o.PID)
}

// currentProcess describes this process, without its arguments, which can contain
// secrets.
func currentProcess() Owner {
	o := Owner{PID: os.Getpid(), Version: versionPrefix + Version}
	o.Host, _ = os.Hostname() // an unknown name is left out
	if u, err := user.Current(); err == nil {
		o.User = u.Username
	}
	if len(os.Args) > 0 {
		o.Command = filepath.Base(os.Args[0])
	}
	return o
}

// anonymous returns the owner without what identifies the client.
func (o Owner) anonymous() Owner { return Owner{Token: o.Token, Layout: o.Layout} }

// encode encodes the owner for a znode.
func (o Owner) encode() ([]byte, error) {
	b, err := json.Marshal(o)
	if err == nil && len(b) > maxOwnerSize && o.Token == 0 {
		err = ErrTooLarge
	}
	return b, err
}

// An ownerTemplate is the encoded owner without its time, which alone differs between
// acquires. The zero ownerTemplate encodes nothing.
type ownerTemplate struct{ prefix, suffix string }

// newOwnerTemplate splits the encoded owner at its time.
func newOwnerTemplate(o Owner) ownerTemplate {
	o.Since = time.Unix(0, 0).UTC()
	data, err := o.encode()
	// No text in an owner can contain this, because its quotes would be escaped.
	before, behind, ok := strings.Cut(string(data), `"since":"1970-01-01T00:00:00Z"`)
	if err != nil || !ok || len(data) > maxOwnerSize-len(time.RFC3339Nano) {
		return ownerTemplate{}
	}
	return ownerTemplate{prefix: before + `"since":"`, suffix: `"` + behind}
}

// encode returns the data with this time, exactly as encoding/json would encode them, or
// nil if only encoding/json can.
func (f ownerTemplate) encode(since time.Time) []byte {
	_, offset := since.Zone()
	if y := since.Year(); f.prefix == "" || y < 1970 || y > 9999 || offset%60 != 0 || since.IsZero() {
		return nil
	}
	b := make([]byte, 0, len(f.prefix)+len(time.RFC3339Nano)+len(f.suffix))
	b = since.AppendFormat(append(b, f.prefix...), time.RFC3339Nano)
	return append(b, f.suffix...)
}

// parseOwner parses the data of a znode. Data that are not an Owner are text of another
// library, which is cut to a limited length. Unreadable characters are escaped in both.
func parseOwner(data []byte) (Owner, string) {
	if o, ok := decodeOwner(data); ok {
		if o = o.legible(); o == (Owner{}) {
			o.Version = strings.TrimSpace(versionPrefix) // of an anonymous client
		}
		return o, ""
	}
	return Owner{}, legible.Text(string(data[:min(len(data), maxOwnerSize)]))
}

// legible returns the owner with unreadable characters escaped, and without a layout that
// parses no entry. It keeps a layout with names of a known layout, so that tools can warn.
func (o Owner) legible() Owner {
	o.Host, o.User, o.Command, o.Version = legible.Text(o.Host), legible.Text(o.User), legible.Text(o.Command), legible.Text(o.Version)
	o.ParentSession = legible.Text(o.ParentSession)
	if !o.Layout.isCustom() || o.Layout.checkFields() != nil {
		o.Layout = Layout{}
	}
	return o
}

// entryData is the JSON object that this package writes to a znode.
type entryData struct {
	Owner
	ID      string      `json:"id"`     // of the attempt, where the znode's name has no room for it
	Revoke  bool        `json:"revoke"` // a release request
	Request requestData `json:"request"`
	valueData
}

// isAnonymous reports whether the data are what this package writes without an owner and
// without a value.
func (d entryData) isAnonymous() bool {
	return d.Owner == d.anonymous() && d.Text == "" && d.Bytes == nil &&
		(d.ID == "" || len(d.ID) == idSize)
}

// decodeOwner reports whether this package wrote the data of a znode, and returns the
// owner.
func decodeOwner(data []byte) (Owner, bool) {
	d, ok := decodeData(data)
	return d.Owner, ok
}

// decodeData reports whether this package wrote the data of a znode, and decodes them.
// Such data are a JSON object that names a version of this package, or one that has only
// fields of this package, and a time if it has an owner. The JSON of another library can
// have a field with such a name, too.
func decodeData(data []byte) (entryData, bool) {
	if len(data) == 0 || len(data) > maxDataSize || data[0] != '{' || !json.Valid(data) {
		return entryData{}, false
	}
	var own entryData
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if d.Decode(&own) == nil && (own.isAnonymous() || !own.Since.IsZero()) {
		return own, true
	}
	var other struct {
		Owner
		valueData
	}
	err := json.Unmarshal(data, &other)
	return entryData{Owner: other.Owner, valueData: other.valueData}, err == nil && strings.HasPrefix(other.Version, versionPrefix)
}
