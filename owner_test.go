package zklock

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
)

// TestOwnerData: what is written is read again, with and without what others add.
func TestOwnerData(t *testing.T) {
	want := Owner{Host: "web1", PID: 4711, User: "ann", Command: "report", Since: time.Unix(1700000000, 0).UTC(), Version: "zklock " + Version, Token: 1 << 40}
	data, err := want.data()
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{string(data), string(withRevocation(data)), `{"id":"x",` + string(data[1:]), `{"news":[1],` + string(data[1:])} {
		if got, text := parseOwner([]byte(data)); got != want || text != "" {
			t.Errorf("%s is read as %+v and %q", data, got, text)
		}
	}
	for _, foreign := range []string{"10.0.0.1", `{"their":"json"}`, `{"host":"x","port":2181}`, `[1]`, `{"pid":"x"}`, `{`, `{}x`} {
		if got, text := parseOwner([]byte(foreign)); got != (Owner{}) || text != foreign {
			t.Errorf("%s is read as %+v and %q", foreign, got, text)
		}
	}
	if _, err := (Owner{Command: strings.Repeat("x", maxOwner)}).data(); err != ErrTooLarge {
		t.Errorf("too large: %v", err)
	}
}

// FuzzOwnerData: whatever is in a znode, nothing unprintable is shown, and asking
// for the lock back gives data that say so and stay what they were: ours or not.
func FuzzOwnerData(f *testing.F) {
	for _, s := range []string{"", "{}", `{ "host":"a"}`, `{"pid":1}`, "__REVOKE__", `{"revoke":true}`, "\x1b[2J\xff", `{"host":"\u001b"}`, "{} ", "{}}", `{"Version":"zklock 9","x":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > maxOwner { // with the wish it could become too long to be ours
			return
		}
		o, text := parseOwner(data)
		for _, s := range []string{o.Host, o.User, o.Command, o.Version, text} {
			if strings.ContainsFunc(s, func(r rune) bool { return !legible.Rune(r) }) {
				t.Errorf("%q shows %q", data, s)
			}
		}
		asked := withRevocation(data)
		_, before := ours(data)
		_, after := ours(asked)
		if !queue.Asked(asked) || before != after || before && !json.Valid(asked) {
			t.Errorf("%q became %q", data, asked)
		}
	})
}

func TestOwnerForm(t *testing.T) {
	for _, o := range []Owner{
		thisProcess(),
		{},
		{Host: `a"since":"1970-01-01T00:00:00Z"`, Command: "<&>\u2028", Version: "v"},
		{Version: strings.Repeat("x", maxOwner-100)},
	} {
		form := formOf(o)
		for _, at := range []time.Time{
			time.Now(), time.Now().Round(time.Millisecond), time.Unix(1, 0).UTC(), time.Unix(1e9, 120e6).In(time.FixedZone("", -3600*11-1800)),
			{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(1, 0).In(time.FixedZone("", 77)),
		} {
			o.Since = at
			want, _ := o.data()
			if got := form.at(at); got != nil && string(got) != string(want) {
				t.Errorf("%s, want %s", got, want)
			} else if got == nil && at.Year() == time.Now().Year() && len(want) < maxOwner/2 {
				t.Errorf("no form for %s", want)
			}
		}
	}
	if form := formOf(Owner{Command: strings.Repeat("x", maxOwner)}); form.at(time.Now()) != nil {
		t.Error("what is too large has a form")
	}
}
