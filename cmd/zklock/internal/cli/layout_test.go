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
		var v layoutValue
		if err := v.Set(tt.text); err != nil || v.Layout != tt.want || v.readers() != tt.readers || v.String() != tt.text {
			t.Errorf("%s: %+v, readers %v, %v", tt.text, v, v.readers(), err)
		}
		if want := strings.HasPrefix(tt.text, "custom"); v.custom() != want {
			t.Errorf("%s: custom is %v", tt.text, v.custom())
		}
	}
}

func TestLayoutRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "is no layout",
		"zoo":                            "is no layout",
		"kazoo:prefix=x":                 "is no layout",
		"custom":                         "is no layout",
		"custom:":                        "is no part of a custom layout",
		"custom:prefix=x":                "needs the marker",
		"custom:exclusive=":              "needs the marker",
		"custom:exclusive":               "is no part",
		"custom:exclusive=a,in-parent=x": "is no part",
		"custom:exclusive=a,colour=b":    `"colour=b" is no part`,
		"custom:exclusive=a,exclusive=b": "given twice",
	} {
		v := layoutValue{text: "before"}
		if err := v.Set(text); err == nil || !strings.Contains(err.Error(), want) || v.text != "before" {
			t.Errorf("%q: %v, want %q, and the value as it was: %q", text, err, want, v.text)
		}
	}
}

func TestOnRevoke(t *testing.T) {
	for text, term := range map[string]bool{"notice": false, "term": true} {
		v := onRevoke{term: !term}
		if err := v.Set(text); err != nil || v.term != term {
			t.Errorf("%s: %v, %v", text, v.term, err)
		}
	}
	v := onRevoke{}
	if err := v.Set("kill"); err == nil || !strings.Contains(err.Error(), "neither notice nor term") || v.String() != "" {
		t.Errorf("kill: %v", err)
	}
}
