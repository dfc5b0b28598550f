package zkserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// watching logs a client in that has a data watch on each of n nodes.
func watching(t *testing.T, s *Server, n int) *raw {
	c := login(t, s, time.Hour)
	const chunk = 5000
	for i := 0; i < n; i += chunk {
		req := &wire.SetWatches{RelativeZxid: 1 << 62, DataWatches: []string{}, ChildWatches: []string{}}
		for k := i; k < min(n, i+chunk); k++ {
			req.ExistWatches = append(req.ExistWatches, fmt.Sprintf("/watched/by/%d/number/%07d", c.session.SessionID, k))
		}
		c.do(wire.OpSetWatches, req)
	}
	return c
}

// TestLongListsOfWatches: every watch is there once, in many pieces, and grouped.
func TestLongListsOfWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.FourLetterWords = []string{"*"}
		s := start(t, opts)
		const n = 3*pieceItems + 17
		a, b := watching(t, s, n), watching(t, s, n)
		want := fmt.Sprintf("2 connections watching %d paths\nTotal watches:%d\n", 2*n, 2*n)
		if got := word(t, s, "wchs"); got != want {
			t.Errorf("wchs %q, want %q", got, want)
		}
		byPath := word(t, s, "wchp")
		for _, c := range []*raw{a, b} {
			if got := strings.Count(byPath, "\t"+hex(c.session.SessionID)+"\n"); got != n {
				t.Errorf("wchp has session %s %d times, want %d", hex(c.session.SessionID), got, n)
			}
		}
		bySession := word(t, s, "wchc")
		if got := strings.Count(bySession, "\t/watched/by/"); got != 2*n {
			t.Errorf("wchc has %d paths, want %d", got, 2*n)
		}
		if got := strings.Count(bySession, "\n0x") + 1; got != 2 || !strings.HasPrefix(bySession, hex(a.session.SessionID)+"\n") {
			t.Errorf("wchc has %d sessions, want 2, and begins %.60q", got, bySession)
		}
	})
}

// TestALongAnswerHoldsUpNobody: its reader has stopped reading, and the others
// are answered all the same; then it is cut off.
func TestALongAnswerHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.FourLetterWords = []string{"*"}
		s := start(t, opts)
		c := watching(t, s, 50_000)
		stuck := open(t, s)
		stuck.write([]byte("wchp"))
		synctest.Wait()
		began := time.Now()
		c.create("/still", wire.ModePersistent)
		if took := time.Since(began); took != 0 {
			t.Errorf("a create took %v beside a word that nobody reads", took)
		}
		if n := s.Stats().Connections; n != 2 {
			t.Fatalf("%d connections, want the one that is stuck among 2", n)
		}
		time.Sleep(s.opts.HandshakeTimeout + time.Second)
		if st := s.Stats(); st.Connections != 1 || st.ConnectionsCut.SlowReaders != 1 {
			t.Errorf("%d connections, %+v: want the slow reader cut", st.Connections, st.ConnectionsCut)
		}
		answer, _ := io.ReadAll(stuck.br)
		if len(answer) == 0 || bytes.HasSuffix(answer, []byte("\n\n")) {
			t.Errorf("%d bytes were written before it was cut, want a part", len(answer))
		}
	})
}

// TestWordsOfListsTakeTurns: those that keep a list wait for each other, for a
// time that is bounded.
func TestWordsOfListsTakeTurns(t *testing.T) {
	for _, name := range []string{"wchc", "dump"} {
		synctest.Test(t, func(t *testing.T) {
			opts := quiet(t)
			opts.FourLetterWords = []string{"*"}
			s := start(t, opts)
			watching(t, s, 10)
			s.listing <- struct{}{}
			if got := word(t, s, name); !strings.Contains(got, "try again") {
				t.Errorf("%s beside another: %q", name, got)
			}
			<-s.listing
			if got := word(t, s, name); !strings.Contains(got, "0x") {
				t.Errorf("%s alone: %q", name, got)
			}
		})
	}
}

// TestWordsWhileTheServerEnds: an answer under way is cut, and nothing hangs.
func TestWordsWhileTheServerEnds(t *testing.T) {
	for name := range words {
		synctest.Test(t, func(t *testing.T) {
			opts := quiet(t)
			opts.FourLetterWords = []string{"*"}
			s := start(t, opts)
			watching(t, s, 30_000)
			c := open(t, s)
			c.write([]byte(name))
			s.Close()
			if _, err := io.ReadAll(c.br); err != nil && !closedError(err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestAnswerKeepsItsFailure: nothing is written after one.
func TestAnswerKeepsItsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, quiet(t))
		c := open(t, s)
		c.nc.Close()
		a := &answer{nc: c.nc, timeout: time.Second}
		a.text("x")
		a.flush()
		if a.err == nil {
			t.Fatal("a write to a closed connection succeeded")
		}
		first := a.err
		a.text(strings.Repeat("y", 2*pieceBytes))
		a.flush()
		if !errors.Is(a.err, first) || len(a.buf) != 0 {
			t.Errorf("%v and %d bytes after %v", a.err, len(a.buf), first)
		}
		values := 0
		inPieces(s, a, iter.Seq[int](func(yield func(int) bool) { values++; yield(1) }), func(int) { values++ })
		if values != 0 {
			t.Error("values were produced for an answer that failed")
		}
	})
}

// TestDirSizeOfADirectory looks at a real one.
func TestWordsOfADirectory(t *testing.T) {
	opts := quiet(t)
	opts.FourLetterWords, opts.DataDir = []string{"*"}, t.TempDir()
	s := start(t, opts)
	login(t, s, time.Minute).create("/x", wire.ModePersistent)
	conf := word(t, s, "conf")
	if !strings.Contains(conf, "\ndataDir="+opts.DataDir+"\n") || strings.Contains(conf, "dataDirSize=0\n") {
		t.Errorf("conf\n%s", conf)
	}
	if dirs := word(t, s, "dirs"); strings.Contains(dirs, " 0\n") {
		t.Errorf("dirs %q", dirs)
	}
	if mntr := word(t, s, "mntr"); !strings.Contains(mntr, "zk_cnt_fsynctime\t2\n") {
		t.Errorf("two changes were synced, and mntr says\n%s", mntr)
	}
}

// TestWordsTellNoSecrets: neither configuration nor environment shows one.
func TestWordsTellNoSecrets(t *testing.T) {
	t.Setenv("ZKLOCK_TEST_SECRET", "hunter2")
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.FourLetterWords, opts.SuperDigest = []string{"*"}, "super:hunter2="
		opts.DataDir, opts.FS = "/data", memfs.New(rand.New(rand.NewPCG(1, 1)))
		s := start(t, opts)
		c := login(t, s, time.Minute)
		for name := range words {
			got := word(t, s, name)
			if strings.Contains(got, "hunter2") || strings.Contains(got, string(c.session.Password)) {
				t.Errorf("%s shows a secret:\n%s", name, got)
			}
		}
	})
}

func TestJavaMillis(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0", time.Millisecond: "1.0", 5900 * time.Microsecond: "5.9", 71333333 * time.Nanosecond: "71.333",
		1333 * time.Microsecond: "1.333", 12345 * time.Second: "12345000.0",
	} {
		if got := javaMillis(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// TestOpNames: each has a name that ZooKeeper would show.
func TestOpNames(t *testing.T) {
	seen := map[string]bool{}
	for op := wire.OpCode(-20); op < 200; op++ {
		name := opName(op)
		if name != strings.ToUpper(name) || name == "" {
			t.Errorf("%d is %q", op, name)
		}
		seen[name] = true
	}
	if len(seen) < 25 {
		t.Errorf("%d names", len(seen))
	}
	if opName(0) != "NA" || opName(wire.OpCreateSession) != "SESS" {
		t.Error("names of no operation and of a handshake")
	}
}
