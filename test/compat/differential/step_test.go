package differential

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// Kind is the kind of a step.
type Kind string

// The kinds of steps.
const (
	KindRequest   Kind = "request"   // one request, and its reply
	KindBurst     Kind = "burst"     // several requests at once, and their replies
	KindHandshake Kind = "handshake" // a new connection
	KindCut       Kind = "cut"       // close the connection and keep the session
	KindExpire    Kind = "expire"    // let the session expire with an open connection
	KindVanish    Kind = "vanish"    // let the session expire without a connection
	KindGone      Kind = "gone"      // wait until the server has deleted Path
	KindWrong     Kind = "wrong"     // connect to the session with a wrong password
)

// Step is one action of one of a script's clients. Its paths are below [placeholder], which stands
// for the script's root.
type Step struct {
	Kind  Kind        `json:"kind"`
	Slot  int         `json:"slot"` // the client
	Op    wire.OpCode `json:"op,omitempty"`
	Xid   int32       `json:"xid,omitempty"`
	Body  hexBytes    `json:"body,omitempty"`
	Burst []Step      `json:"burst,omitempty"`
	Hand  *Handshake  `json:"hand,omitempty"`
	Path  string      `json:"path,omitempty"`
	// Back replaces the first eight bytes of Body by the server's transaction id after an
	// earlier step, for setWatches. 1 is the last step, and 0 replaces nothing.
	Back int `json:"back,omitempty"`
}

// Handshake describes a connect request.
type Handshake struct {
	Session  string   `json:"session"`  // "new", "own" or "unknown"
	Password string   `json:"password"` // "right", "zero", "empty" or "absent"
	Timeout  int32    `json:"timeout"`  // ms
	High     bool     `json:"high,omitempty"`
	Byte     bool     `json:"byte,omitempty"` // whether there is a read-only byte
	ReadOnly bool     `json:"readonly,omitempty"`
	Version  int32    `json:"version,omitempty"`
	Raw      hexBytes `json:"raw,omitempty"` // replaces the other fields
}

// Script is a list of steps.
type Script []Step

// placeholder is the root in scripts. It has the length of every real root, which can therefore
// replace it in encoded records.
const placeholder = "/s_____"

// rootOf returns the root of the n-th script.
func rootOf(n int) string { return fmt.Sprintf("/s%05d", n) }

// hexBytes are hexadecimal digits in scripts.
type hexBytes []byte

// MarshalText returns the digits.
func (h hexBytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

// UnmarshalText parses the digits.
func (h *hexBytes) UnmarshalText(b []byte) error {
	v, err := hex.DecodeString(string(b))
	*h = v
	return err
}

// Write writes the script as lines for [ReadScript], each after a comment that describes it.
func (s Script) Write(w io.Writer) error {
	for _, st := range s {
		line, err := json.Marshal(st)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "# %v\n%s\n", st, line); err != nil {
			return err
		}
	}
	return nil
}

// ReadScript reads a script in the format of Write. It ignores comments, empty lines, and
// indentation.
func ReadScript(r io.Reader) (Script, error) {
	var s Script
	in := bufio.NewScanner(r)
	in.Buffer(nil, 8<<20)
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		var st Step
		if err := json.Unmarshal([]byte(line), &st); err != nil {
			return nil, fmt.Errorf("differential: script line %q: %w", line, err)
		}
		s = append(s, st)
	}
	return s, in.Err()
}

// String describes the step.
func (st Step) String() string {
	who := fmt.Sprintf("client %d: ", st.Slot)
	switch st.Kind {
	case KindRequest:
		return who + st.request()
	case KindBurst:
		parts := make([]string, len(st.Burst))
		for i, b := range st.Burst {
			parts[i] = b.request()
		}
		return who + "at once: " + strings.Join(parts, " | ")
	case KindHandshake:
		return who + fmt.Sprintf("handshake %+v", *st.Hand)
	case KindGone:
		return fmt.Sprintf("wait until %s is gone", st.Path)
	}
	return who + string(st.Kind)
}

// request describes a request by its decoded body.
func (st Step) request() string {
	text := st.Op.String()
	if st.Back > 0 {
		text += fmt.Sprintf(" (zxid of %d steps ago)", st.Back-1)
	}
	rec := wire.NewRequest(st.Op)
	if rec == nil {
		return fmt.Sprintf("%s %x", text, []byte(st.Body))
	}
	r := jute.NewReader(st.Body)
	rec.Decode(r)
	if r.Finish() != nil {
		return fmt.Sprintf("%s malformed %x", text, []byte(st.Body))
	}
	return text + " " + show(rec)
}

// show describes a record, including the operations of a multi.
func show(rec wire.Record) string {
	switch m := rec.(type) {
	case nil:
		return ""
	case *wire.MultiRequest:
		return showOps(m.Ops)
	case *wire.MultiReadRequest:
		return showOps(m.Ops)
	}
	text := strings.TrimPrefix(fmt.Sprintf("%+v", rec), "&")
	if len(text) > 400 {
		text = text[:400] + "…"
	}
	return text
}

func showOps(ops []wire.MultiOp) string {
	var parts []string
	for _, op := range ops {
		parts = append(parts, fmt.Sprintf("%v %s", op.Op, show(op.Req)))
	}
	return "[" + strings.Join(parts, "; ") + "]"
}
