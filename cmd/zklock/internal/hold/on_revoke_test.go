package hold

import (
	"strings"
	"testing"
)

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
