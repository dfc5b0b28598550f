package delivery

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

// fence is a reader with the files of the fencing guide.
type fence struct {
	*reader
	t *testing.T
}

// newFence writes the files of the guide and creates the tables.
func newFence(t *testing.T, schema func(string) string) fence {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, "fencing.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := blocks(string(text))
	if err != nil {
		t.Fatal(err)
	}
	f := fence{newReader(t), t}
	for _, b := range all {
		if b.file == "schema.sql" {
			b.text = schema(b.text)
		}
		if b.file != "" {
			f.follow(t, b)
		}
	}
	f.sql("schema.sql")
	return f
}

// sql runs a file of the guide.
func (f fence) sql(file string) {
	f.t.Helper()
	f.python(f.t, "from fence import *\ndb.executescript(open('"+file+"').read())")
}

// token takes the guide's lock on servers, the local one if that is empty.
func (f fence) token(servers string) int64 {
	f.t.Helper()
	r := *f.reader
	if servers != "" {
		r.env = append(slices.Clone(r.env), "ZKLOCK_SERVERS="+servers)
	}
	token, err := strconv.ParseInt(strings.TrimSpace(r.python(f.t, "from fence import *\nprint(token())")), 10, 64)
	if err != nil {
		f.t.Fatal(err)
	}
	return token
}

// write sets the balance by the guide's SQL, and reports whether that did anything.
func (f fence) write(era int, token int64, balance int) bool {
	f.t.Helper()
	out := f.python(f.t, fmt.Sprintf("from fence import *\nset_balance(%d, %d, %d)\nprint(balance())", era, token, balance))
	return strings.TrimSpace(out) == strconv.Itoa(balance)
}

// TestFencingGuideRefusesOldTokens takes the guide's lock on the local server, then on a ZooKeeper
// ensemble, then on a new local server. The first move needs no new era: tokens grow.
// The second does. The guide's fence accepts every current holder and no late one.
func TestFencingGuideRefusesOldTokens(t *testing.T) {
	f := newFence(t, func(s string) string { return s })
	ensemble := harness.StartEnsemble(t, 3, harness.ServerConfig{}).ConnectString()
	local := f.token("")
	if !f.write(1, local, 10) {
		t.Fatalf("token %d of the local server was refused", local)
	}
	moved := f.token(ensemble)
	if moved <= local || local >= 1<<32 || moved < 1<<32 {
		t.Errorf("token %d of the local server, %d of the ensemble; want it to grow past 2^32", local, moved)
	}
	if !f.write(1, moved, 20) || f.write(1, local, 999) {
		t.Error("after the move to the ensemble: its token was refused, or the local server's was not")
	}
	other := newReader(t)
	back := fence{&reader{dir: f.dir, env: other.env}, t}.token("")
	if back >= moved {
		t.Fatalf("token %d of a new local server, %d of the ensemble: the case is not what it should be", back, moved)
	}
	if f.write(1, back, 999) {
		t.Error("a smaller token was accepted in the same era")
	}
	if !f.write(2, back, 30) {
		t.Error("a smaller token was refused in a new era")
	}
	if f.write(1, moved+1000, 999) {
		t.Error("a token of the old era was accepted")
	}
}

// TestFencingGuideAddsEra moves a fence that has no era, and has seen a token of 19 digits.
func TestFencingGuideAddsEra(t *testing.T) {
	f := newFence(t, func(s string) string {
		s = strings.Replace(s, "era INTEGER NOT NULL, ", "", 1)
		return strings.Replace(s, "'accounts', 1, 0", "'accounts', 1875000000000000000", 1)
	})
	f.sql("add-era.sql")
	token := f.token("")
	if f.write(1, token, 999) {
		t.Errorf("token %d was accepted in the old era", token)
	}
	if !f.write(2, token, 10) {
		t.Errorf("token %d was refused in a new era", token)
	}
	if f.write(1, 1875000000000000001, 999) {
		t.Error("a token of the old era was accepted")
	}
}
