package process

import "testing"

func TestMessagesSurviveEncoding(t *testing.T) {
	for _, m := range []message{{group: 2}, {group: 1 << 22}, {stopped: 20}} {
		got, ok := decode(m.encode())
		if !ok || got != m {
			t.Errorf("%+v came through as %+v, %v", m, got, ok)
		}
	}
	for _, line := range []string{"", "\n", "child", "child 1", "child 0", "child -7", "child x", "stopped", "stopped 0", "other 5"} {
		if m, ok := decode(line); ok {
			t.Errorf("%q means %+v, want nothing", line, m)
		}
	}
}
