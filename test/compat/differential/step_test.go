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

// Kind is what a step does.
type Kind string

// The kinds of steps.
const (
	KindRequest   Kind = "request"   // one request, and its reply
	KindBurst     Kind = "burst"     // several requests at once, and their replies
	KindHandshake Kind = "handshake" // a connection of any sort
	KindCut       Kind = "cut"       // the connection is broken, the session left
	KindExpire    Kind = "expire"    // the session falls silent with its connection open
	KindVanish    Kind = "vanish"    // the session falls silent without a connection
	KindGone      Kind = "gone"      // wait until the server has removed Path
	KindWrong     Kind = "wrong"     // a take-over by a stranger without the password
)

// Step is one action by one of a script's clients. Paths in it are below
// [placeholder], which stands for the script's own part of the tree.
type Step struct {
	Kind  Kind        `json:"kind"`
	Slot  int         `json:"slot"` // which client
	Op    wire.OpCode `json:"op,omitempty"`
	Xid   int32       `json:"xid,omitempty"`
	Body  hexBytes    `json:"body,omitempty"`
	Burst []Step      `json:"burst,omitempty"`
	Hand  *Handshake  `json:"hand,omitempty"`
	Path  string      `json:"path,omitempty"`
	// Back makes the first eight bytes of Body the transaction id that the
	// client's server had so many steps ago, for setWatches. Zero leaves them.
	Back int `json:"back,omitempty"`
}

// Handshake says how a client connects.
type Handshake struct {
	Session  string   `json:"session"`  // "new", "own" or "unknown"
	Password string   `json:"password"` // "right", "zero", "empty" or "absent"
	Timeout  int32    `json:"timeout"`  // ms
	High     bool     `json:"high,omitempty"`
	Byte     bool     `json:"byte,omitempty"` // whether there is a read-only byte
	ReadOnly bool     `json:"readonly,omitempty"`
	Version  int32    `json:"version,omitempty"`
	Raw      hexBytes `json:"raw,omitempty"` // instead of all that
}

// Script is a list of steps.
type Script []Step

// placeholder is where scripts believe to be. It has the length of every place
// where they really are, so that it can be replaced inside encoded records.
const placeholder = "/s_____"

// place is the n-th place in a server's tree.
func place(n int) string { return fmt.Sprintf("/s%05d", n) }

// hexBytes is written as hexadecimal digits in scripts.
type hexBytes []byte

// MarshalText writes the digits.
func (h hexBytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

// UnmarshalText reads them.
func (h *hexBytes) UnmarshalText(b []byte) error {
	v, err := hex.DecodeString(string(b))
	*h = v
	return err
}

// Write writes the script as lines for [ReadScript], each behind a comment that
// people can read.
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

// ReadScript reads what Write wrote. Lines that begin with # and empty ones are
// passed over, and so is the indentation of a test's log.
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

// request describes a request by what its body decodes to.
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

// show prints a record with what its pointers lead to.
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
