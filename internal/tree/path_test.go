package tree

import "testing"

func TestValidPath(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/b": true, "/...": true, "/.a": true, "/a.": true, "/a..b": true,
		"/ä": true, "/日本": true, "/ ": true, "/a b": true, "/\u00a0": true, "/\ufdff": true,
		"": false, "a": false, "a/b": false, "/a/": false, "//": false, "//a": false, "/a//b": false,
		"/.": false, "/..": false, "/./a": false, "/a/.": false, "/a/..": false, "/a/../b": false, "/a/./b": false,
		"/a\x00": false, "/\x01": false, "/\x1f": false, "/a\x7f": false, "/\u0080": false, "/\u009f": false,
		"/\ue000": false, "/\uf8ff": false, "/\ufff0": false, "/\uffff": false, "/\U0001f512": false,
		"/\U00010000": false, "/\xff": false, "/a\xc3": false, "/\xed\xa0\x80": false,
	} {
		if got := validPath(path); got != want {
			t.Errorf("validPath(%q) = %v", path, got)
		}
	}
}

func TestParentOf(t *testing.T) {
	for path, want := range map[string]string{
		"/a": "", "/a/b": "/a", "a/b": "a", "/": "", "//": "/", "/a/": "/a", "//a": "/",
	} {
		if got, ok := parentOf(path); !ok || got != want {
			t.Errorf("parentOf(%q) = %q, %v, want %q", path, got, ok, want)
		}
	}
	for _, path := range []string{"", "a", "/a\x00b", "\x00/"} {
		if _, ok := parentOf(path); ok {
			t.Errorf("parentOf(%q) found a parent", path)
		}
	}
}
