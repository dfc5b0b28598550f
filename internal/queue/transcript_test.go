package queue

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata, for review")

// TestTranscripts runs the scenarios in testdata. Each line that begins with a time is an input.
// The indented lines below it are the outputs of the core. GUIDs are shortened to a number:
// _c_1-lock-0000000000.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 15 {
		t.Fatalf("found %d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runTranscript(t, string(b))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(b) {
				t.Errorf("the core did otherwise; run with -update and review the difference:\n%s", got)
			}
		})
	}
}

// transcript drives a core.
type transcript struct {
	t    *testing.T
	core *Core
	now  time.Duration
	conn uint64
	// proofs shows and numbers the syncs and pings of heartbeats too.
	proofs bool
	ids    []uint64 // of the shown requests
}

func runTranscript(t *testing.T, script string) string {
	var guids byte
	p := &transcript{t: t, core: New(Config{
		OwnSession: true,
		Ours:       func(data []byte) bool { return len(data) > 0 && data[0] == '{' },
		GUID:       func() (g [16]byte) { guids++; g[15] = guids; return g },
		Jitter:     func() float64 { return 0.5 },
	})}
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line + "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		for _, o := range p.input(strings.Fields(line)) {
			out.WriteString("  " + shorten(o) + "\n")
		}
	}
	return out.String()
}

var guid = regexp.MustCompile(`_c_00000000-0000-0000-0000-0000000000([0-9a-f]{2})`)
var mark = regexp.MustCompile(markPrefix + `000000000000000000000000000000([0-9a-f]{2})-`)

func shorten(s string) string {
	s = mark.ReplaceAllStringFunc(s, func(g string) string {
		n, _ := strconv.ParseInt(g[len(g)-3:len(g)-1], 16, 64)
		return fmt.Sprintf("mark-%d-", n)
	})
	return guid.ReplaceAllStringFunc(s, func(g string) string {
		n, _ := strconv.ParseInt(g[len(g)-2:], 16, 64)
		return fmt.Sprintf("_c_%d", n)
	})
}

var shortGUID = regexp.MustCompile(`_c_([0-9]+)-`)

var shortMark = regexp.MustCompile(`mark-([0-9]+)-`)

func expand(s string) string {
	s = shortMark.ReplaceAllStringFunc(s, func(g string) string {
		n, _ := strconv.Atoi(strings.Trim(g, "mark-"))
		return fmt.Sprintf(markPrefix+"%032x-", n)
	})
	return shortGUID.ReplaceAllStringFunc(s, func(g string) string {
		n, _ := strconv.Atoi(strings.Trim(g, "_c-"))
		return fmt.Sprintf("_c_00000000-0000-0000-0000-0000000000%02x-", n)
	})
}

func (p *transcript) input(words []string) []string {
	at, err := time.ParseDuration(words[0])
	if err != nil {
		p.t.Fatal(err)
	}
	p.now = at
	verb, args := words[1], words[2:]
	values := map[string]string{}
	for _, a := range args {
		if k, v, ok := strings.Cut(a, "="); ok {
			values[k] = expand(v)
		}
	}
	var extra []string
	switch verb {
	case "connected", "disconnected", "expired", "closed":
		p.session(verb, values)
	case "acquire", "try":
		p.core.Acquire(p.now, spec(p.t, verb == "try", args))
	case "cancel":
		p.core.Cancel(p.now, p.id(args[0]))
	case "release":
		p.core.Release(p.now, p.id(args[0]))
	case "release-later":
		p.core.ReleaseLater(p.now, p.id(args[0]))
	case "flush":
		p.core.Flush(p.now)
	case "verify":
		p.core.Guard(p.now, p.id(args[0]), 7)
	case "downgrade":
		p.core.Downgrade(p.now, p.id(args[0]), []byte(`{"reader":1}`), 8)
	case "set-data":
		p.core.SetData(p.now, p.id(args[0]), []byte(args[1]), 9)
	case "watch":
		p.core.Watch(p.now, p.id(args[0]))
	case "syncs":
		p.core.cfg.Sync = true
		p.core.cfg.Tick, err = time.ParseDuration(values["tick"])
		if err != nil {
			p.t.Fatal(err)
		}
	case "proofs":
		p.proofs = true
	case "half-tick":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			p.t.Fatal(err)
		}
		p.core.HalfTick(p.now, p.conn, d)
	case "inherits":
		p.core.cfg.Inherit = func() bool { return true }
	case "children":
		p.core.Event(p.now, Children, args[0], 0)
	case "shut":
		p.core.Shut(p.now)
	case "reply":
		p.reply(args, values)
	case "deleted":
		p.core.Event(p.now, Deleted, expand(args[0]), p.number(values["zxid"]))
	case "created":
		p.core.Event(p.now, Created, expand(args[0]), p.number(values["zxid"]))
	case "changed":
		p.core.Event(p.now, Changed, expand(args[0]), p.number(values["zxid"]))
	case "drained":
		p.core.Drained(p.now)
	case "tick":
		p.core.Tick(p.now)
	case "state":
		extra = p.state()
	case "passable":
		extra = []string{fmt.Sprint("passable ", p.core.Passable(p.now, p.id(args[0])))}
	default:
		p.t.Fatalf("unknown input %q", verb)
	}
	requests, signals := p.core.Take(nil, nil)
	for _, r := range requests {
		if !p.proofs && (r.Kind == Ping || r.Kind == Sync && !p.core.cfg.Sync) {
			continue
		}
		p.ids = append(p.ids, r.ID)
		extra = append(extra, strings.TrimRight(fmt.Sprintf("request %d %s", len(p.ids), show(r)), " "))
	}
	for _, s := range signals {
		extra = append(extra, strings.TrimRight("signal "+s.show(), " "))
	}
	return extra
}

// spec parses the arguments of an acquire. A path adds a mutex, and a word changes the next path.
func spec(t *testing.T, try bool, args []string) Spec {
	s := Spec{Try: try, Data: []byte(`{"me":1}`), TellAfter: 100 * time.Millisecond}
	m := Member{}
	var err error
	for i := 0; i < len(args); i++ {
		switch word, value, _ := strings.Cut(args[i], "="); word {
		case "reader":
			m.Kind = Shared
		case "writer":
			m.Writer = true
		case "tell":
			s.TellAfter = 0
		case "beside":
			m.AllowForeign = true
		case "mixed":
			m.Names = Names{Layout: Mixed}
		case "latch":
			m.Names = Names{Layout: Latch}
		case "curators":
			m.Names = Names{Layout: Custom, Prefix: "host", Exclusive: markLock, Shared: markRead}
		case "custom":
			m.Names = Names{Layout: Custom, Prefix: "host", Exclusive: "-W-", Shared: "-R-"}
		case "in-order":
			s.InOrder = true
		case "delay":
			s.Delay, err = time.ParseDuration(value)
		case "node":
			i++
			s.Node = args[i]
		case "permits":
			sem := Semaphore{}
			_, err = fmt.Sscanf(value, "%d/%d", &sem.Permits, &sem.Of)
			i++
			sem.Path = args[i]
			s.Semaphores = append(s.Semaphores, sem)
		default:
			m.Path = word
			s.Members = append(s.Members, m)
			m = Member{}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (p *transcript) session(verb string, values map[string]string) {
	s := SessionChange{State: map[string]SessionState{
		"connected": Connected, "disconnected": Disconnected, "expired": Expired, "closed": Closed}[verb]}
	if s.State == Connected {
		p.conn++
		s.Conn, s.Sent = p.conn, p.now
		s.Session = p.number(values["id"])
		s.Timeout = 8 * time.Second
		if v := values["timeout"]; v != "" {
			s.Timeout, _ = time.ParseDuration(v)
		}
		if v := values["sent"]; v != "" {
			s.Sent, _ = time.ParseDuration(v)
		}
		if v := values["given-up"]; v != "" {
			s.GivenUp, _ = time.ParseDuration(v)
		}
	}
	if v := values["left"]; v != "" {
		s.Left = errors.New(v)
	}
	p.core.Session(p.now, s)
}

func (p *transcript) reply(args []string, values map[string]string) {
	codes := map[string]Code{"ok": OK, "nonode": NoNode, "exists": NodeExists, "version": BadVersion, "unimplemented": Unimplemented,
		"notapplied": NotApplied, "undone": Undone, "unknown": Unknown, "over": SessionOver, "refused": Refused}
	code, ok := codes[args[1]]
	if !ok {
		p.t.Fatalf("unknown code %q", args[1])
	}
	r := Reply{ID: p.requested(p.number(args[0])), Code: code, Conn: p.conn, Sent: p.now, Received: p.now,
		Data: []byte(values["data"])}
	if v, ok := strings.CutPrefix(values["data"], "size:"); ok {
		r.Data = AppendSize(nil, int(p.number(v)))
	}
	if v := values["path"]; v != "" {
		r.Made = strings.Split(v, ",")
	}
	r.Version, r.Ctime, r.Mtime = int32(p.number(values["version"])), p.number(values["ctime"]), p.number(values["mtime"])
	r.Mzxid, r.Zxid = p.number(values["mzxid"]), p.number(values["zxid"])
	r.Czxid, r.Owner, r.Failed = p.number(values["czxid"]), p.number(values["owner"]), int(p.number(values["failed"]))
	if v := values["sent"]; v != "" {
		r.Sent, _ = time.ParseDuration(v)
	}
	if v := values["children"]; v != "" {
		r.Children = strings.Split(v, ",")
	}
	if v := values["access"]; v != "" {
		r.Access = v
	}
	if code == Refused || code == NoNode || code == BadVersion {
		r.Err = fmt.Errorf("the server said %s", args[1])
	}
	p.core.Reply(p.now, r)
}

func (p *transcript) state() []string {
	out := []string{fmt.Sprintf("idle %v", p.core.Idle())}
	if at, ok := p.core.Deadline(); ok {
		out = append(out, fmt.Sprintf("deadline %v", at))
	}
	if at, ok := p.core.Next(); ok {
		out = append(out, fmt.Sprintf("next %v", at))
	}
	return out
}

func (p *transcript) id(s string) ID { return ID(p.number(s)) }

// requested returns the ID of the request that was shown with this number.
func (p *transcript) requested(n int64) uint64 {
	if n < 1 || n > int64(len(p.ids)) {
		return 1 << 62 // an unknown request
	}
	return p.ids[n-1]
}

func (p *transcript) number(s string) int64 {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func show(r Request) string {
	kind := [...]string{"create", "list", "get", "set", "delete", "check", "make", "swap", "guard", "sync", "renew", "access", "ping", "watch", "unwatch", "marked", "set"}[r.Kind]
	switch {
	case r.Kind == Make && r.Container:
		kind += " container"
	case r.Kind == Get && !r.Watch:
		kind += " once"
	case r.Kind == List && r.Watch:
		kind += " watch"
	case r.Kind == SetAll:
		kind += fmt.Sprintf(" %s versions=%v", r.Data, r.Versions)
	case r.Kind == Set:
		kind += fmt.Sprintf(" %s version=%d", r.Data, r.Version)
	}
	changed := r.Kind == Swap && slices.ContainsFunc(r.Versions, func(v int32) bool { return v > 0 })
	out := kind
	for _, made := range r.Creates {
		out += " " + made.Path
		if changed {
			out += fmt.Sprintf(" %s versions=%v", made.Data, r.Versions)
		}
		if !made.Sequential {
			out += " (as is)"
		}
		if made.Persistent {
			out += " (persistent)"
		}
		if made.Access != nil {
			out += fmt.Sprintf(" (%s)", made.Access)
		}
	}
	switch {
	case r.Kind == Swap || r.Kind == Renew || r.Kind == MarkedDelete:
		out += " for"
	case r.Kind == SetWatches && r.Path != "":
		out += fmt.Sprintf(" since=%d mark=%s", r.Zxid, baseOf(r.Path))
		r.Path = ""
	case r.Kind == SetWatches:
		out += fmt.Sprintf(" since=%d", r.Zxid)
	}
	out = strings.TrimRight(out+" "+r.Path+strings.Join(r.Paths, " "), " ")
	if r.Access != nil {
		out += fmt.Sprintf(" (%s)", r.Access)
	}
	return out
}

func (s Signal) show() string {
	kind := [...]string{"granted", "failed", "lost", "released", "waiting", "jeopardy", "recovered", "verified", "near-limit",
		"downgraded", "revoked", "data-set"}[s.Kind]
	out := fmt.Sprintf("%d %s", s.ID, kind)
	if s.Token != 0 {
		out += fmt.Sprintf(" token=%d", s.Token)
	}
	if len(s.Nodes) > 1 || s.Kind == Downgraded && s.Err == nil {
		out += " " + strings.Join(append(s.Nodes, s.Node), " ")
	}
	if s.Kind == Waiting {
		out += fmt.Sprintf(" ahead=%d blocker=%s data=%s", s.Ahead, s.Blocker, s.Data)
	}
	if s.Err != nil {
		out += " err=" + strings.ReplaceAll(s.Err.Error(), " ", "_")
	}
	return out
}
