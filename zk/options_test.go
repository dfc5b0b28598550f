package zk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestCredentialsAreNotPrinted checks that printed options and credentials contain the user, but
// the password in no form.
func TestCredentialsAreNotPrinted(t *testing.T) {
	const secret = "SeCrEt"
	o := Options{SASL: &SASL{User: "ann", Password: secret},
		Auth: []Auth{{"digest", []byte("bob:" + secret)}, {"other", []byte(secret + ":x")}}}
	var all bytes.Buffer
	for _, v := range []any{o, &o, *o.SASL.(*SASL), o.SASL, o.Auth, o.Auth[0]} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			fmt.Fprintf(&all, verb+"\n", v)
		}
	}
	fmt.Fprintln(&all, o)
	for _, h := range []slog.Handler{slog.NewTextHandler(&all, nil), slog.NewJSONHandler(&all, nil)} {
		slog.New(h).Info("x", "sasl", o.SASL, "auth", o.Auth, "options", o)
	}
	text, err := json.Marshal(map[string]any{"sasl": o.SASL, "auth": o.Auth})
	if err != nil {
		t.Fatal(err)
	}
	all.Write(text)
	got := all.String()
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), strings.Trim(fmt.Sprint([]byte(secret)), "[]"), "U2VDckV0"} {
		if at := strings.Index(got, form); at >= 0 {
			t.Errorf("shown: %.80q", got[max(at-60, 0):])
		}
	}
	for _, user := range []string{"ann", "bob", "other"} {
		if !strings.Contains(got, user) {
			t.Errorf("%s is not shown", user)
		}
	}
}
