package zklock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestOwnerData checks that written data can be read, with and without data that other clients
// add.
func TestOwnerData(t *testing.T) {
	want := Owner{Host: "web1", PID: 4711, User: "ann", Command: "report", Since: time.Unix(1700000000, 0).UTC(), Version: "zklock " + Version, Token: 1 << 40}
	data, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{string(data), string(addReleaseRequest(data, nil)), `{"id":"x",` + string(data[1:]), `{"news":[1],` + string(data[1:])} {
		if got, text := parseOwner([]byte(data)); got != want || text != "" {
			t.Errorf("%s is read as %+v and %q", data, got, text)
		}
	}
	foreign := []string{
		"10.0.0.1", `{"their":"json"}`, `{"host":"x","port":2181}`, `[1]`, `{"pid":"x"}`, `{`, `{}x`,
		// Another library's JSON can have the field names of zklock's.
		`{"host":"web1","pid":4711}`, `{"user":"ann"}`, `{"id":"worker-3"}`, `{"value":"10.0.0.1:80"}`,
	}
	for _, foreign := range foreign {
		if got, text := parseOwner([]byte(foreign)); got != (Owner{}) || text != foreign {
			t.Errorf("%s is read as %+v and %q", foreign, got, text)
		}
	}
	for data, want := range map[string]Owner{
		"{}":              {Version: "zklock"},
		`{"revoke":true}`: {Version: "zklock"},
		`{"id":"01234567-89ab-cdef-0123-456789abcdef"}`: {Version: "zklock"},
		`{"token":7}`: {Token: 7},
		`{"host":"web1","since":"2023-11-14T22:13:20Z"}`: {Host: "web1", Since: time.Unix(1700000000, 0).UTC()},
	} {
		if got, text := parseOwner([]byte(data)); got != want || text != "" {
			t.Errorf("%s is read as %+v and %q", data, got, text)
		}
	}
	if _, err := (Owner{Command: strings.Repeat("x", maxOwnerSize)}).encode(); err != ErrTooLarge {
		t.Errorf("too large: %v", err)
	}
}

// decodedByEarlierVersion reports whether versions without values recognize data as theirs.
func decodedByEarlierVersion(data []byte) bool {
	var own struct {
		Owner
		ID     string `json:"id"`
		Revoke bool   `json:"revoke"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if len(data) > 2*maxOwnerSize {
		return false
	}
	return d.Decode(&own) == nil || json.Unmarshal(data, &own.Owner) == nil && strings.HasPrefix(own.Version, "zklock ")
}

// TestValueData checks that a value can be read next to any owner, an ID, and a release request,
// and that earlier versions of this package recognize the entry as zklock's. Otherwise, their
// readers would fail next to it.
func TestValueData(t *testing.T) {
	request := ReleaseRequest{By: currentProcess(), Reason: "maintenance"}.encode()
	for _, value := range []string{
		"10.0.0.1:8080", `{"address":"a","zone":"b"}`, "zone \u2028 \u202e \\ é", "\xff\xfe", "a\x00b", "\x1b[2J", `"id":"x"`, `,"revoke":true}`,
		strings.Repeat(`"`, MaxValue), strings.Repeat("<", MaxValue), strings.Repeat("\x01", MaxValue), strings.Repeat("\u2028", MaxValue/3),
	} {
		for _, o := range []Owner{
			currentProcess(), {}, {Version: "other 3"}, {Version: "zklock 0.1.0"}, {Host: "h", Token: 1 << 60},
			{Command: strings.Repeat("x", maxOwnerSize-100)},
		} {
			for _, anonymous := range []bool{false, true} {
				c := &Client{opts: Options{Anonymous: anonymous}}
				data, err := c.encodeData(o, value)
				if err != nil {
					t.Fatal(err)
				}
				for _, data := range [][]byte{[]byte("{}"), data} {
					if asked := addReleaseRequest(data, request); !decodedByEarlierVersion(asked) {
						t.Errorf("earlier versions do not know %s", asked)
					}
				}
				withID := []byte(`{"id":"01234567-89ab-cdef-0123-456789abcdef",` + string(data[1:]))
				for _, data := range [][]byte{data, addReleaseRequest(data, request), addReleaseRequest(withID, request)} {
					if !json.Valid(data) || len(data) > maxDataSize {
						t.Fatalf("invalid: %s", data)
					}
					owner, _ := parseOwner(data)
					if got := parseValue(data); got != value || owner.Token != o.Token || !anonymous && (owner.Host != o.Host || !strings.HasSuffix(owner.Version, o.Version)) {
						t.Errorf("%q next to %+v is read as %q next to %+v", value, o, got, owner)
					}
					if !decodedByEarlierVersion(data) {
						t.Errorf("earlier versions do not know %s", data)
					}
				}
			}
		}
	}
	for _, data := range []string{
		`{"value":7}`, `{"value":["x"]}`, `{"value64":"!"}`, `{"their":1,"value":"x"}`, `{"value":"` + strings.Repeat("x", MaxValue+1) + `"}`,
		`{"value64":"` + strings.Repeat("xxxx", MaxValue) + `"}`, "x",
	} {
		if got := parseValue([]byte(data)); got != "" {
			t.Errorf("%.30s has the value %q", data, got)
		}
	}
}

// FuzzOwnerData checks that no data of a znode are shown unescaped, and that a release request
// adds its mark and keeps the other data.
func FuzzOwnerData(f *testing.F) {
	for _, s := range []string{"", "{}", `{ "host":"a"}`, `{"pid":1}`, "__REVOKE__", `{"revoke":true}`, "\x1b[2J\xff", `{"host":"\u001b"}`, "{} ", "{}}", `{"Version":"zklock 9","x":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > maxOwnerSize { // a release request could make it too long for zklock's data
			return
		}
		o, text := parseOwner(data)
		for _, s := range []string{o.Host, o.User, o.Command, o.Version, text} {
			if strings.ContainsFunc(s, func(r rune) bool { return !legible.Rune(r) }) {
				t.Errorf("%q shows %q", data, s)
			}
		}
		request := ReleaseRequest{By: Owner{Host: "h", PID: 1}, Reason: o.Host + text}
		for _, encoded := range [][]byte{nil, request.encode()} {
			asked := addReleaseRequest(data, encoded)
			_, before := decodeOwner(data)
			_, after := decodeOwner(asked)
			if !queue.ReleaseRequested(asked) || before != after || before && !json.Valid(asked) {
				t.Errorf("%q became %q", data, asked)
			}
		}
		if r := decodeRequest(data); strings.ContainsFunc(r.By.Host+r.By.User+r.Reason, func(r rune) bool { return !legible.Rune(r) }) {
			t.Errorf("%q requests %+v", data, r)
		}
	})
}

func TestOwnerTemplateMatchesEncode(t *testing.T) {
	for _, o := range []Owner{
		currentProcess(),
		{},
		{Host: `a"since":"1970-01-01T00:00:00Z"`, Command: "<&>\u2028", Version: "v"},
		{Version: strings.Repeat("x", maxOwnerSize-100)},
	} {
		template := newOwnerTemplate(o)
		for _, at := range []time.Time{
			time.Now(), time.Now().Round(time.Millisecond), time.Unix(1, 0).UTC(), time.Unix(1e9, 120e6).In(time.FixedZone("", -3600*11-1800)),
			{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(1, 0).In(time.FixedZone("", 77)),
		} {
			o.Since = at
			want, _ := o.encode()
			if got := template.encode(at); got != nil && string(got) != string(want) {
				t.Errorf("%s, want %s", got, want)
			} else if got == nil && at.Year() == time.Now().Year() && len(want) < maxOwnerSize/2 {
				t.Errorf("no template for %s", want)
			}
		}
	}
	if template := newOwnerTemplate(Owner{Command: strings.Repeat("x", maxOwnerSize)}); template.encode(time.Now()) != nil {
		t.Error("too large data have a template")
	}
}

// TestLayoutsDistinguishEntries checks that, in any valid layout with any valid names, the
// entries of each lock are recognized and have names of no known layout, and that two locks in one
// parent never take the entries of each other for theirs.
func TestLayoutsDistinguishEntries(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		text := ""
		for range r.IntN(most + 1) {
			text += []string{"-", "_", "a", "X", "0", "x-1", "lock"}[r.IntN(7)]
		}
		return text
	}
	layouts, pairs := 0, 0
	for range 60_000 {
		l := Layout{Prefix: word(3), Exclusive: word(3), Shared: word(3), InParent: r.IntN(2) == 0}
		if l.Validate() != nil || l.Exclusive == "" {
			continue
		}
		layouts++
		c := &Client{opts: Options{Layout: l}}
		var parts []component
		for range 3 {
			if p, err := c.queueComponent("/dir/"+word(5), queue.Exclusive, false); err == nil {
				parts = append(parts, p)
			}
		}
		for i, p := range parts {
			for kind, marker := range map[queue.Kind]string{queue.Exclusive: l.Exclusive, queue.Shared: l.Shared} {
				if marker == "" {
					continue
				}
				name := p.member.Names.Ask([16]byte{}, 1, kind, false)[0] + "0000000007"
				if e, class := p.member.Names.Parse(name); class != queue.Contender || e.Kind != kind || e.Seq != 7 {
					t.Fatalf("%+v: %s of %s is read as %+v, class %d", l, name, p.path, e, class)
				}
				if e, class := queue.ParseName(name); class != queue.Foreign {
					t.Fatalf("%+v: %s of %s is read without the layout as %+v", l, name, p.path, e)
				}
				for _, other := range parts[:i] {
					if other.path == p.path || !l.InParent {
						continue
					}
					pairs++
					if e, class := other.member.Names.Parse(name); class != queue.Foreign {
						t.Fatalf("%+v: %s of %s is read as %+v, class %d, of %s", l, name, p.path, e, class, other.path)
					}
				}
			}
		}
	}
	if layouts < 1000 || pairs < 1000 {
		t.Errorf("%d layouts, %d pairs: this tests nothing", layouts, pairs)
	}
	t.Logf("%d layouts, %d pairs", layouts, pairs)
}

// readers returns n entries of readers. Every third one is missing in found.
func readers(n int) (entries []queue.Entry, found map[string]Entry) {
	found = make(map[string]Entry, n)
	for i := range n {
		name := "_c_00000000-0000-0000-0000-000000000000-__READ__" + strconv.Itoa(i)
		entries = append(entries, queue.Entry{Name: name, Kind: queue.Shared})
		if i%3 > 0 {
			found[name] = Entry{Name: name}
		}
	}
	return entries, found
}

func TestRemoveGoneEntries(t *testing.T) {
	entries, found := readers(12)
	left, ok := removeGone(entries, 6, found)
	if !ok || len(left) != 10 || left[0].Name != entries[1].Name || left[4].Name != entries[6].Name {
		t.Errorf("left %v, %t", left, ok)
	}
	if len(entries) != 12 || entries[0].Name == left[0].Name {
		t.Error("the argument was changed")
	}
	entries[3] = queue.Entry{Name: "w", Kind: queue.Exclusive, Layout: queue.Custom}
	if left, ok := removeGone(entries, 3, found); !ok || len(left) != 11 {
		t.Errorf("before the writer: left %v, %t", left, ok)
	}
	if _, ok := removeGone(entries, 6, found); ok {
		t.Error("a writer is gone")
	}
}

// TestUnwatchAsksWhetherServersRemoveWatches checks that a client removes watches only after an
// answer that proves that /zookeeper/config exists. An ACL may forbid reading it.
func TestUnwatchAsksWhetherServersRemoveWatches(t *testing.T) {
	for err, proves := range map[error]bool{nil: true, zk.ErrNoAuth: true, zk.ErrNoNode: false, zk.ErrConnectionLost: false} {
		c, r := new(Client), queue.Request{Kind: queue.Unwatch, Path: "/a"}
		if op := c.toRequest(&r).Op; !reflect.DeepEqual(op, zk.GetConfigOp()) {
			t.Errorf("the first request is %v", op)
		}
		f, want := &pendingRequest{client: c, request: r, asksUnwatch: true}, code(err)
		if proves {
			want = queue.NotApplied
		}
		if q := f.reply(&zk.Result{Err: err}); !errors.Is(q.Err, err) || q.Code != want {
			t.Errorf("%v: reply %v, code %d", err, q.Err, q.Code)
		}
		removal := zk.RemoveWatchesOp("/a", zk.WatchKindData)
		if op := c.toRequest(&r).Op; reflect.DeepEqual(op, removal) != proves {
			t.Errorf("after %v, the next request is %v", err, op)
		}
	}
}

// TestPermitBehindUnreadableGateIsHeld: a client holds a permit and waits for another one, behind
// an entry that may not be read. Its permit counts as held, although the size is smaller now.
func TestPermitBehindUnreadableGateIsHeld(t *testing.T) {
	entry := func(node string, session int64, err error) znodeEntry {
		e := Entry{Path: "/s", Node: "/s/" + node, Name: path.Base(node), Mode: Permit, Session: session,
			Token: session}
		return znodeEntry{Entry: e, readErr: err}
	}
	found := markPermitHolders([]znodeEntry{
		entry("leases/x-lease-0000000001", 5, nil), entry("leases/y-lease-0000000002", 6, nil),
		entry("locks/z-lock-0000000003", 0, zk.ErrNoAuth), entry("locks/y-lock-0000000004", 6, nil),
	}, "/s", 1, true)
	if len(found) != 4 || !found[0].Holder || !found[1].Holder {
		t.Errorf("%+v", found)
	}
}

// TestInspectBoundsStrays: every client that may create znodes below a lock can create strays.
func TestInspectBoundsStrays(t *testing.T) {
	names := []string{"_c_0123456789abcdef0123456789abcdef-lock-0000000007"}
	for i := range maxStrays {
		malformed := fmt.Sprintf("_c_0123456789abcdef0123456789abcdef-lock--%09d", i)
		names = append(names, fmt.Sprint("s", i), malformed)
	}
	ctx := limitReading(t.Context())
	found, _, err := queueEntries(ctx, component{path: "/a", member: queue.Member{Path: "/a"}}, names)
	if err != nil || len(found) != 1+maxStrays || !found[0].Holder || found[1].Mode != Stray {
		t.Errorf("%d entries, %v; the first are %+v", len(found), err, found[:2])
	}
	_, strays, err := semaphoreEntries(ctx, "/a", queue.GatePath("/a"), names)
	if err != nil || len(strays) != maxStrays {
		t.Errorf("%d strays of a semaphore, %v", len(strays), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	impossible := []Entry{{Path: "/a", Node: "/a/.", Name: ".", Mode: Stray}}
	if found, err := new(Client).readEntries(ctx, impossible, nil, false); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v, %v", found, err)
	}
}

// TestInspectRefusesTooManyEntries: a hostile server can list any number of entries. Inspect fails
// before it creates an Entry for each, and also if their data take too much memory.
func TestInspectRefusesTooManyEntries(t *testing.T) {
	var names []string
	for i := range maxEntries {
		names = append(names, fmt.Sprintf("x-1-%010d", i))
	}
	of := component{path: "/a", member: queue.Member{Path: "/a"}}
	list := func(names []string) error {
		_, _, err := queueEntries(limitReading(t.Context()), of, names)
		return err
	}
	if err := list(names); err != nil {
		t.Errorf("%d entries: %v", len(names), err)
	}
	names = append(names, "x-1-9999999999")
	if err := list(names); !errors.Is(err, queue.ErrTooManyChildren) {
		t.Errorf("%d entries: %v", len(names), err)
	}
	for _, parent := range []string{queue.GatePath("/a"), queue.LeasesPath("/a")} {
		_, _, err := semaphoreEntries(limitReading(t.Context()), "/a", parent, names)
		if !errors.Is(err, queue.ErrTooManyChildren) {
			t.Errorf("%d entries at %s: %v", len(names), parent, err)
		}
	}
	srv := zktest.Start(t)
	z := srv.Dial(t)
	c := New(z, nil)
	defer c.Close()
	if err := z.EnsurePath(t.Context(), "/zklock/a", nil); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		node, data := fmt.Sprintf("/zklock/a/x-1-%010d", i), make([]byte, 1000)
		if _, _, err := z.Create(t.Context(), node, data, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	for limit, refused := range map[int]bool{10_000: true, 30_000: true, 150_000: false} {
		found, err := c.Inspect(queue.NewReading(100, limit).Context(t.Context()), "a")
		if errors.Is(err, queue.ErrTooManyChildren) != refused || !refused && len(found) != 20 {
			t.Errorf("with %d bytes, %d entries, %v", limit, len(found), err)
		}
	}
}
