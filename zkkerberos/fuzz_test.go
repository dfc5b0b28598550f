package zkkerberos

import (
	"errors"
	"testing"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"

	"github.com/zklock/zklock/zk"
)

// FuzzExchange passes bytes to an exchange, before and after the server's proof, and to the
// parser of krb5.conf. No token of a server causes a panic, and only its own proof, which
// the fuzzer cannot make, is accepted. The file is trusted, but no text in it causes a panic.
func FuzzExchange(f *testing.F) {
	other, _ := requestTicket(f, etypeID.AES256_CTS_HMAC_SHA1_96)
	f.Add(false, other.reply(other.key))
	f.Add(true, offer(noLayer, 1, other.signing()))
	f.Add(false, []byte(noKDC))
	f.Add(false, []byte("[libdefaults]\n udp_preference_limit\n[realms]\n A = {\n v4_x\n }\n[domain_realm]\n .a = A\n"))
	a, x := requestTicket(f, etypeID.AES256_CTS_HMAC_SHA1_96)
	requested := *x
	if _, _, err := x.Step(a.reply(a.key)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, proved bool, b []byte) {
		next := requested
		if proved {
			next = *x
		}
		if _, done, err := next.Step(b); done || !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("done %v, %v", done, err)
		}
		if conf, err := parseConfig(string(b)); err == nil && conf.LibDefaults.UDPPreferenceLimit != 1 {
			t.Error("KDCs are not asked by TCP")
		}
	})
}
