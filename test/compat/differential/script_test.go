package differential

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

func TestScriptsRoundTrip(t *testing.T) {
	kinds := map[Kind]int{}
	for seed := range uint64(60) {
		script := newWriter(seed, Setup{}).script(60)
		if seed%2 == 0 {
			script = newWriter(seed, Setup{Waiting: true}).waitingScript()
		}
		for _, st := range script {
			kinds[st.Kind]++
		}
		var b bytes.Buffer
		if err := script.Write(&b); err != nil {
			t.Fatal(err)
		}
		// Indented, as in the log of a test.
		text := strings.ReplaceAll(b.String(), "\n", "\n        ")
		got, err := ReadScript(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(script) {
			t.Fatalf("%d steps of %d", len(got), len(script))
		}
		for i := range got {
			if got[i].String() != script[i].String() || !bytes.Equal(got[i].Body, script[i].Body) || !reflect.DeepEqual(got[i].Hand, script[i].Hand) {
				t.Fatalf("step %d: %v, want %v", i, got[i], script[i])
			}
		}
	}
	for _, k := range []Kind{KindRequest, KindBurst, KindHandshake, KindCut, KindExpire, KindVanish, KindGone, KindWrong} {
		if kinds[k] == 0 {
			t.Errorf("no script has %s", k)
		}
	}
	if _, err := ReadScript(strings.NewReader("no script")); err == nil {
		t.Error("ReadScript accepts an invalid script")
	}
}

func TestScriptsDependOnlyOnSeed(t *testing.T) {
	write := func(seed uint64) string {
		var b bytes.Buffer
		if err := newWriter(seed, Setup{}).script(40).Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := write(3)
	if again := write(3); again != first || write(4) == first {
		t.Error("equal seeds give different scripts, or different seeds equal ones")
	}
}

func TestShrinkKeepsFailingSteps(t *testing.T) {
	script := newWriter(9, Setup{}).script(80)
	for i := range script {
		script[i].Xid = int32(i)
	}
	// The script fails with both step 20 and request 777, which is in a burst.
	script[50] = Step{Kind: KindBurst, Burst: []Step{{Xid: 1}, {Xid: 777}, {Xid: 3}}}
	calls := 0
	fails := func(s Script) bool {
		calls++
		early := slices.IndexFunc(s, func(st Step) bool { return st.Xid == 20 && st.Kind != KindBurst })
		late := slices.IndexFunc(s, func(st Step) bool {
			return slices.ContainsFunc(st.Burst, func(b Step) bool { return b.Xid == 777 })
		})
		return early >= 0 && late > early
	}
	got := shrink(script, 1000, fails)
	if len(got) != 2 || len(got[1].Burst) != 1 || !fails(got) {
		t.Errorf("%d steps are left: %v", len(got), got)
	}
	calls = 0
	if shrink(script, 10, fails); calls > 10 {
		t.Errorf("%d calls with a budget of 10", calls)
	}
}

func TestZxidNames(t *testing.T) {
	z := zxids{exact: true, base: 100}
	if got := z.name(105) + z.name(100) + z.name(0); got != "+5+00" {
		t.Error(got)
	}
	z = zxids{own: []int64{10, 20}}
	for id, want := range map[int64]string{5: "after #0", 10: "#1", 15: "after #1", 20: "#2", 99: "after #2"} {
		if got := z.name(id); got != want {
			t.Errorf("%d: %s, want %s", id, got, want)
		}
	}
	if z.reading(19) == "current" || z.reading(20) != "current" || z.reading(500) != "current" {
		t.Error("an old id is current, or a current one is old")
	}
	for range 2 {
		if z.time(10, 7) != "" {
			t.Error("the same time of a transaction is reported")
		}
	}
	if z.time(10, 8) == "" {
		t.Error("two times of a transaction are not reported")
	}
	z.seen = []int64{1, 2, 3}
	if z.back(0) != 3 || z.back(2) != 1 || z.back(3) != z.base {
		t.Error("ids of earlier steps")
	}
}

func TestSortEvents(t *testing.T) {
	got := sortEvents([]string{"0: event b", "0: event a", "0: xid 1", "0: event c", "1: event b", "1: event a"})
	want := []string{"0: event a", "0: event b", "0: xid 1", "0: event c", "1: event a", "1: event b"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestCoverageCountsRepliesAndMinimums(t *testing.T) {
	c := coverage{}
	c.note(Step{Kind: KindRequest, Op: wire.OpMulti}, []string{
		"0: event 1 3 /a", "0: xid 5 zxid +3 OK [error OK; error NoNode; error RuntimeInconsistency]", "1: handshake: closed",
	})
	for what, want := range map[string]int{
		"op multi": 1, "event 1": 1, "error OK": 1, "result OK": 1, "result NoNode": 1, "result RuntimeInconsistency": 1,
		"handshake closed": 1, "step request": 1,
	} {
		if c[what] != want {
			t.Errorf("%s: %d, want %d; all: %v", what, c[what], want, c)
		}
	}
	if len(c.lacking(Setup{}, 1000)) < 30 {
		t.Error("lacking accepts a run without coverage")
	}
	full := coverage{}
	for what := range minimums(Setup{Strict: true}) {
		full[what] = 1 << 20
	}
	if l := full.lacking(Setup{Strict: true}, 10_000); len(l) > 0 {
		t.Errorf("%q", l)
	}
}

func TestOnlyListedDifferencesAreExcused(t *testing.T) {
	refused, again, ping := "0: handshake refused: 00", "0: handshake: version 0", "0: xid -2 zxid +1 OK"
	java := []string{refused, "0: closed", again, ping}
	ours := []string{refused, ping, again, "0: former connection closed", ping}
	wrong := Step{Kind: KindWrong}
	if excuse(wrong, [2][]string{java, ours}) == nil {
		t.Error("a take-over with a wrong password is not excused")
	}
	if excuse(Step{Kind: KindRequest}, [2][]string{java, ours}) != nil || excuse(wrong, [2][]string{java, append(ours, "0: event 1 3 /")}) != nil {
		t.Error("other differences are excused")
	}
	create := Step{Kind: KindRequest, Op: wire.OpCreate}
	quota := create
	quota.Body = hexBytes("/zookeeper/quota/a/zookeeper_limits")
	granted, denied := []string{"0: xid 1 zxid +1 OK"}, []string{"0: xid 1 zxid +1 NoAuth"}
	if excuse(quota, [2][]string{granted, denied}) == nil {
		t.Error("a denied quota is not excused")
	}
	if excuse(quota, [2][]string{denied, granted}) != nil || excuse(create, [2][]string{granted, denied}) != nil {
		t.Error("a granted quota, or another denied create, is excused")
	}
	hidden, seen := "0: event 1 3 /a zxid +1"+hiddenMark, "0: event 1 3 /b zxid +1"
	for _, op := range []wire.OpCode{wire.OpSetWatches, wire.OpCreate} {
		st := Step{Kind: KindRequest, Op: op}
		if excuse(st, [2][]string{{hidden, seen}, {seen}}) == nil {
			t.Errorf("%v: an event of a hidden node is not excused", op)
		}
		if excuse(st, [2][]string{{hidden, seen}, nil}) != nil {
			t.Errorf("%v: the loss of an event is excused", op)
		}
	}
}
