package model

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestReadReturnsWhatWriteWrote checks complete and truncated histories.
func TestReadReturnsWhatWriteWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := ideal(t).history
		h.Name, h.Seed = "a name", rapid.Uint64().Draw(t, "seed")
		var b bytes.Buffer
		if err := h.Write(&b); err != nil {
			t.Fatal(err)
		}
		whole := b.String()
		again, err := Read(strings.NewReader(whole))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(again, h) {
			t.Fatalf("%v was read as %v", h, again)
		}
		cut := rapid.IntRange(0, len(whole)).Draw(t, "cut")
		part, err := Read(strings.NewReader(whole[:cut]))
		if torn := cut > 0 && whole[cut-1] != '\n'; torn != errors.Is(err, ErrTorn) || err != nil && !torn {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if n := max(0, strings.Count(whole[:cut], "\n")-1); len(part.Events) != n {
			t.Fatalf("cut at %d: %d events, not %d", cut, len(part.Events), n)
		}
	})
}

func TestReadRefusesOtherLines(t *testing.T) {
	for _, text := range []string{
		"no json\n",
		`{"name":"x","seed":-1}` + "\n",
		`{"name":"x"}` + "\n" + `{"at":"now"}` + "\n",
		`{"name":"x"}` + "\n" + `{"at":1,"unheard":2}` + "\n",
		`{"name":"x"}` + "\n\n",
	} {
		if h, err := Read(strings.NewReader(text)); !errors.Is(err, ErrLine) || len(h.Events) != 0 {
			t.Errorf("%q: %v, %v", text, h.Events, err)
		}
	}
	broken := errors.New("broken")
	if _, err := Read(&failing{err: broken}); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
	if err := (&History{}).Write(&failing{err: broken}); !errors.Is(err, broken) {
		t.Errorf("a writer that fails: %v", err)
	}
}

// failing fails to read and to write.
type failing struct{ err error }

func (f *failing) Read([]byte) (int, error)  { return 0, f.err }
func (f *failing) Write([]byte) (int, error) { return 0, f.err }
