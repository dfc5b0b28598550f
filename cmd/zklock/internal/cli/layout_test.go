package cli

import (
	"strings"
	"testing"

	"github.com/zklock/zklock"
)

func TestLayoutSet(t *testing.T) {
	tests := []struct {
		text    string
		want    zklock.Layout
		readers bool
	}{
		{"curator", zklock.Layout{}, true},
		{"kazoo", zklock.KazooLayout(), true},
		{"mixed", zklock.MixedLayout(), true},
		{"latch", zklock.LatchLayout(), false},
		{"writelock", zklock.WriteLockLayout(), false},
		{"custom:exclusive=-W-", zklock.Layout{Exclusive: "-W-"}, false},
		{"custom:prefix=host,exclusive=-W-,shared=-R-", zklock.Layout{Prefix: "host", Exclusive: "-W-", Shared: "-R-"}, true},
		{"custom:in-parent,exclusive=_lock_", zklock.Layout{Exclusive: "_lock_", InParent: true}, false},
		{"custom:exclusive=a=b", zklock.Layout{Exclusive: "a=b"}, false},
	}
	for _, tt := range tests {
		var v LayoutValue
		if err := v.Set(tt.text); err != nil || v.Layout != tt.want || v.Readers() != tt.readers || v.String() != tt.text {
			t.Errorf("%s: %+v, readers %v, %v", tt.text, v, v.Readers(), err)
		}
		if want := strings.HasPrefix(tt.text, "custom"); v.Custom() != want {
			t.Errorf("%s: custom is %v", tt.text, v.Custom())
		}
	}
}

func TestLayoutRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "unknown layout",
		"zoo":                            "unknown layout",
		"kazoo:prefix=x":                 "unknown layout",
		"custom":                         "unknown layout",
		"custom:":                        "unknown field",
		"custom:prefix=x":                "no marker for exclusive entries",
		"custom:exclusive=":              "no marker for exclusive entries",
		"custom:exclusive":               "unknown field",
		"custom:exclusive=a,in-parent=x": "unknown field",
		"custom:exclusive=a,colour=b":    `unknown field "colour=b"`,
		"custom:exclusive=a,exclusive=b": "given twice",
		"custom:exclusive=1":             `marker "1" is a number`,
		"custom:exclusive=-lock-":        `would have names of Curator's layout; use that layout`,
	} {
		v := LayoutValue{text: "before"}
		if err := v.Set(text); err == nil || !strings.Contains(err.Error(), want) || v.text != "before" {
			t.Errorf("%q: %v, want %q, and the value as it was: %q", text, err, want, v.text)
		}
	}
}
