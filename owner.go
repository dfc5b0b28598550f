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
)

// Version is this library's version, as it appears in an Owner.
const Version = "0.1.0"

const (
	// maxOwner is the most that an owner's data may have, in bytes, and the most
	// that is shown of another library's.
	maxOwner = 4 << 10
	// maxData is more than this package writes to a znode: the owner's data with an
	// id, a token, and the wish to have the lock back.
	maxData = 2 * maxOwner
)

// An Owner says who made a lock's znode, for people who look. It is stored in
// the znode as one line of JSON; other clients ignore it.
type Owner struct {
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	User    string    `json:"user,omitempty"`
	Command string    `json:"command,omitempty"`
	Since   time.Time `json:"since,omitzero"` // when the acquire began, by the owner's clock
	Version string    `json:"version,omitempty"`
	// Token is the fencing token of a reader that was a writer before: its znode is
	// a new one, and the hold's token is still the writer's. Else 0, whatever
	// Options.Owner says.
	Token int64 `json:"token,omitempty"`
	// Within is the session, as 0x and hexadecimal digits, that has the locks under
	// which this process was started and that are kept until it ends: what a command
	// inside a command waits for, the outer one waits for as well. zklock run sets
	// it. Empty means none.
	Within string `json:"within,omitempty"`
	// Layout is the client's layout, if it is one of its user's own: by it people's
	// tools know the entry, and nobody decides who holds. Else zero, whatever
	// Options.Owner says.
	Layout Layout `json:"layout,omitzero"`
}

// String returns host:pid, or what there is of it.
func (o Owner) String() string {
	if o.PID == 0 {
		return o.Host
	}
	return o.Host + ":" + strconv.Itoa(o.PID)
}

// thisProcess describes the process, without its arguments, which may hold
// secrets.
func thisProcess() Owner {
	o := Owner{PID: os.Getpid(), Version: "zklock " + Version}
	o.Host, _ = os.Hostname() // an unknown name is left out
	if u, err := user.Current(); err == nil {
		o.User = u.Username
	}
	if len(os.Args) > 0 {
		o.Command = filepath.Base(os.Args[0])
	}
	return o
}

// data encodes the owner for a znode.
func (o Owner) data() ([]byte, error) {
	b, err := json.Marshal(o)
	if err == nil && len(b) > maxOwner && o.Token == 0 {
		err = ErrTooLarge
	}
	return b, err
}

// An ownerForm is an owner's data around the time, which alone differs from one
// acquire to the next. The zero ownerForm writes nothing.
type ownerForm struct{ before, behind string }

// formOf takes an owner's data apart.
func formOf(o Owner) ownerForm {
	o.Since = time.Unix(0, 0).UTC()
	data, err := o.data()
	// No text in an owner can look like this: its quotes would be escaped.
	before, behind, ok := strings.Cut(string(data), `"since":"1970-01-01T00:00:00Z"`)
	if err != nil || !ok || len(data) > maxOwner-len(time.RFC3339Nano) {
		return ownerForm{}
	}
	return ownerForm{before: before + `"since":"`, behind: `"` + behind}
}

// at returns the data with this time in it, as encoding/json would write them, or
// nil if that has to do it.
func (f ownerForm) at(since time.Time) []byte {
	_, offset := since.Zone()
	if y := since.Year(); f.before == "" || y < 1970 || y > 9999 || offset%60 != 0 || since.IsZero() {
		return nil
	}
	b := make([]byte, 0, len(f.before)+len(time.RFC3339Nano)+len(f.behind))
	b = since.AppendFormat(append(b, f.before...), time.RFC3339Nano)
	return append(b, f.behind...)
}

// parseOwner reads a znode's data. What is not an Owner is another library's
// text, cut to a sane length. In both what cannot be read is escaped.
func parseOwner(data []byte) (Owner, string) {
	if o, ok := ours(data); ok {
		o.Host, o.User, o.Command, o.Version = legible.Text(o.Host), legible.Text(o.User), legible.Text(o.Command), legible.Text(o.Version)
		o.Within = legible.Text(o.Within)
		if !o.Layout.custom() || o.Layout.check() != nil {
			o.Layout = Layout{}
		}
		return o, ""
	}
	return Owner{}, legible.Text(string(data[:min(len(data), maxOwner)]))
}

// ours reports whether this package wrote a znode's data, and what they say: a
// JSON object with nothing in it but what it writes, or one that names it as of
// another version.
func ours(data []byte) (Owner, bool) {
	if len(data) == 0 || len(data) > maxData || data[0] != '{' || !json.Valid(data) {
		return Owner{}, false
	}
	var o struct {
		Owner
		ID     string `json:"id"`     // of the attempt, where the znode's name has no room for it
		Revoke bool   `json:"revoke"` // somebody asked for the lock back
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if d.Decode(&o) == nil {
		return o.Owner, true
	}
	var other Owner
	err := json.Unmarshal(data, &other)
	return other, err == nil && strings.HasPrefix(other.Version, "zklock ")
}
