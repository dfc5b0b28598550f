package config

import (
	"slices"
	"strings"
	"testing"
)

// TestProperties checks the rules of java.util.Properties.load by examples.
func TestProperties(t *testing.T) {
	tests := []struct {
		name, in string
		want     []property
	}{
		{"empty", "", nil},
		{"blanks and comments", " \t\f\n# a\n  ! b\\\n\r\n\r#c", nil},
		{"separators", "a=1\nb:2\nc 3\nd\t=\t4\ne  :  5\nf==6\ng = : 7\nh", []property{
			{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}, {"d", "4", 4}, {"e", "5", 5}, {"f", "=6", 6}, {"g", ": 7", 7}, {"h", "", 8}}},
		{"ends of lines", "a=1\rb=2\r\nc=3\n\nd=4", []property{{"a", "1", 1}, {"b", "2", 2}, {"c", "3", 3}, {"d", "4", 5}}},
		{"a line that goes on", "a=1,\\\n   2,\\\r\n\t3\nb=4", []property{{"a", "1,2,3", 1}, {"b", "4", 4}}},
		{"a comment is no comment inside", "a=1\\\n#2\n", []property{{"a", "1#2", 1}}},
		{"an even number of backslashes ends the line", "a=1\\\\\nb=2", []property{{"a", "1\\", 1}, {"b", "2", 2}}},
		{"a backslash at the end of the file", "a=1\\", []property{{"a", "1", 1}}},
		{"escapes in keys", "a\\=b\\:c\\ d=1", []property{{"a=b:c d", "1", 1}}},
		{"escapes", `a=\t\n\r\f\z\"\\`, []property{{"a", "\t\n\r\fz\"\\", 1}}},
		{"unicode", `\u0061=\u00e4\u4e2d\uD83D\uDE00`, []property{{"a", "ä中😀", 1}}},
		{"bytes stay", "a=\xff\xc3\xa4", []property{{"a", "\xffä", 1}}},
		{"blanks at the end stay", "a=1  ", []property{{"a", "1  ", 1}}},
		{"a key that begins with a continuation", "\\\na=1", []property{{"a", "1", 1}}},
		{"no key", "=1", []property{{"", "1", 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := properties(tt.in)
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

func TestPropertiesErrors(t *testing.T) {
	for _, in := range []string{`a=\u12`, `a=\uxyzw`, `a=\u+123`, `\u=1`, "b=1\na=\\u"} {
		if got, err := properties(in); err == nil || !strings.Contains(err.Error(), "four hexadecimal digits") {
			t.Errorf("%q gave %+v, %v", in, got, err)
		}
	}
}
