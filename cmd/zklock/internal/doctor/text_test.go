package doctor

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// TestLikeIgnoresDurations checks that reports differ by their findings, and not by durations in
// the texts.
func TestLikeIgnoresDurations(t *testing.T) {
	base := func() Report {
		return Report{Findings: []Finding{{Level: OK, Check: "servers", What: "1 of 1 answer"}, {Level: Warning, Check: "held", What: "for 3s", Do: "ask", Locks: []string{"/a"}}}}
	}
	later := base()
	later.Findings[1].What, later.Level = "for 9s", Warning
	if !base().Like(later) {
		t.Error("reports that differ only by a duration count as different")
	}
	for what, change := range map[string]func(*Report){
		"a level": func(r *Report) { r.Findings[0].Level = Critical }, "a check": func(r *Report) { r.Findings[1].Check = "clock" },
		"a lock": func(r *Report) { r.Findings[1].Locks = []string{"/b"} }, "one less": func(r *Report) { r.Findings = r.Findings[:1] },
	} {
		other := base()
		if change(&other); base().Like(other) || other.Like(base()) {
			t.Errorf("reports that differ by %s count as the same", what)
		}
	}
	// One server answers again while another fails: the number of failed servers is the same, but
	// not the finding.
	without := func(n int, why string) Report {
		f := ensemble()
		down(&f.Servers[n])
		f.Servers[n].err = errors.New(why)
		f.Servers[1].Synced = 1
		return f.report()
	}
	if without(0, "refused").Like(without(2, "refused")) || !without(0, "refused").Like(without(0, "timeout")) {
		t.Error("the failures of different servers count as the same")
	}
}

func TestWrap(t *testing.T) {
	tests := []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, ""},
		{"one", 10, "one"},
		{"one two three", 7, "one two|three"},
		{"delete 'one  two' and three", 80, "delete 'one  two' and three"},
		{"delete 'one  two' and three", 12, "delete|'one  two'|and three"},
		{"abcdefghij", 4, "abcd|efgh|ij"},
		{"a abcdefghij b", 4, "a|abcd|efgh|ij b"},
		{"世界世界世界", 4, "世界世界|世界"},
	}
	for _, tt := range tests {
		if got := strings.Join(wrap(tt.text, tt.width), "|"); got != tt.want {
			t.Errorf("%q in %d: %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

// TestWrapKeepsText wraps random texts: no line is too long, and no character is lost.
func TestWrapKeepsText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		text, width := clitest.Text(r, "a", "世", "e\u0301", "abcdefghi", " ", "\n", "\u3000"), 1+r.IntN(9)
		lines := wrap(text, width)
		for _, line := range lines {
			if utf8.RuneCountInString(line) > width {
				t.Fatalf("%q is wider than %d", line, width)
			}
		}
		if got, want := strings.Join(strings.Fields(strings.Join(lines, "")), ""), strings.Join(strings.Fields(text), ""); got != want {
			t.Fatalf("%q became %q", text, lines)
		}
	}
}

func TestWrite(t *testing.T) {
	r := Report{Findings: []Finding{
		{Level: OK, Check: "servers", What: "1 of 1 answer: /run/zk.sock standalone"},
		{Level: Critical, Check: "deadlock", What: "a:1 waits for /zklock/one, held by b:2; b:2 waits for /zklock/two, held by a:1", Do: "end one of these clients, or make it release one of its locks"},
		{Level: Note, Check: "access", What: "x"},
	}}
	want := `ok        servers    1 of 1 answer: /run/zk.sock standalone
CRITICAL  deadlock   a:1 waits for /zklock/one, held by b:2;
                     b:2 waits for /zklock/two, held by a:1
                     -> end one of these clients, or make it
                        release one of its locks
note      access     x
1 critical
`
	var out bytes.Buffer
	if err := r.Write(&out, 60, false); err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
	out.Reset()
	if err := r.Write(&out, 60, true); err != nil || !strings.Contains(out.String(), "\x1b[1;31mCRITICAL  \x1b[0mdeadlock") {
		t.Errorf("%v\n%q", err, out.String())
	}
	out.Reset()
	if err := (Report{}).Write(&out, 0, true); err != nil || out.String() != "nothing is wrong\n" {
		t.Errorf("%v\n%q", err, out.String())
	}
}

// TestWriteKeepsCommandsWhole: a user may copy a line into a shell, and another user has chosen
// the name of the lock.
func TestWriteKeepsCommandsWhole(t *testing.T) {
	for _, path := range []string{
		"/tmp/" + strings.Repeat("a", 45), "/zklock/" + strings.Repeat("a", 48) + "/tmp/x", "/zklock/" + strings.Repeat("a", 500),
		"/zklock/a b; touch X; c d e f g h i j k l m n o", "/zklock/it's  $(touch X) " + strings.Repeat("; touch X", 20), "/zklock/ü",
	} {
		f := ensemble()
		f.Held = time.Minute
		e := mutex(1, true, "zklock")
		e.Since = f.Now.Add(-2 * f.Held)
		f.Locks = append(f.Locks, lockOf(path, e))
		f.Parents[path] = Parent{Path: path, Stat: zk.Stat{Ctime: f.Now.UnixMilli(), Cversion: lastSequence - 1, NumChildren: lastSequence - 1}}
		var out bytes.Buffer
		r := Report{Findings: append(f.judgeHeld(), f.judgeSequence()...)}
		if err := r.Write(&out, 80, false); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"zklock show ", "delete "} {
			command += legible.Word(path)
			if !strings.Contains(out.String(), command) {
				t.Errorf("%s is not in one line:\n%s", command, out.String())
			}
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                        "0s",
		123456 * time.Nanosecond: "120µs",
		1234 * time.Microsecond:  "1.2ms",
		40 * time.Millisecond:    "40ms",
		1500 * time.Millisecond:  "1.5s",
		20 * time.Second:         "20s",
		time.Hour:                "1h0m0s",
	} {
		if got := Span(d).String(); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
	b, err := Span(1234567 * time.Nanosecond).MarshalJSON()
	if err != nil || string(b) != "0.001235" {
		t.Errorf("%s, %v", b, err)
	}
}

func TestWorst(t *testing.T) {
	for _, tt := range []struct {
		levels []Level
		want   Level
		exit   int
	}{
		{nil, OK, 0},
		{[]Level{OK, Note}, OK, 0},
		{[]Level{OK, Unknown, Note}, Unknown, 3},
		{[]Level{Warning, Unknown}, Warning, 1},
		{[]Level{Warning, Critical, Unknown}, Critical, 2},
	} {
		var found []Finding
		for _, l := range tt.levels {
			found = append(found, Finding{Level: l})
		}
		if got := Worst(found); got != tt.want || got.Exit() != tt.exit {
			t.Errorf("%v: %s, %d", tt.levels, got, got.Exit())
		}
	}
}
