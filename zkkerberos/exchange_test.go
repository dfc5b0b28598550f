package zkkerberos

import (
	"bytes"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	forked "github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zklock/zklock/zk"
)

// must returns v.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var (
	app    = must(parsePrincipal("app@EXAMPLE.COM"))
	server = must(parsePrincipal("zookeeper/zk1@EXAMPLE.COM"))
)

// acceptor is the server side of an exchange.
type acceptor struct {
	keytab *keytab.Keytab
	auth   types.Authenticator
	key    types.EncryptionKey // of the ticket
	subkey types.EncryptionKey // of the server; empty if it uses the client's
}

// newTicket returns a ticket for the acceptor.
func (a *acceptor) newTicket(encryption int32) *ticket {
	a.keytab = keytab.New()
	if err := a.keytab.AddEntry(server.name.PrincipalNameString(), server.realm, "secret", time.Now(), 1, encryption); err != nil {
		panic(err)
	}
	now, end := time.Now().UTC(), time.Now().UTC().Add(time.Hour)
	t, key, err := messages.NewTicket(app.name, app.realm, server.name, server.realm, types.NewKrbFlags(), a.keytab, encryption, 1, now, now, end, end)
	if err != nil {
		panic(err)
	}
	return &ticket{app, t, key, end}
}

// accept checks the client's first token.
func (a *acceptor) accept(token []byte) error {
	var outer asn1.RawValue
	if rest, err := asn1.Unmarshal(token, &outer); err != nil || len(rest) > 0 {
		return errors.New("no token")
	}
	b, ok := bytes.CutPrefix(outer.Bytes, requestHead)
	var req messages.APReq
	if !ok || req.Unmarshal(b) != nil {
		return errors.New("no AP-REQ")
	}
	if ok, err := req.Verify(a.keytab, time.Minute, types.HostAddress{}, nil); !ok {
		return err
	}
	if !types.IsFlagSet(&req.APOptions, flags.APOptionMutualRequired) || binary.LittleEndian.Uint32(req.Authenticator.Cksum.Checksum[20:])&gssapi.ContextFlagMutual == 0 {
		return errors.New("the client does not want to know the server's identity")
	}
	a.auth, a.key = req.Authenticator, req.Ticket.DecryptedEncPart.Key
	return nil
}

// reply returns the server's proof, encrypted with this key.
func (a *acceptor) reply(key types.EncryptionKey) []byte {
	part := messages.EncAPRepPart{CTime: a.auth.CTime, Cusec: a.auth.Cusec, Subkey: a.subkey}
	plain := asn1tools.AddASNAppTag(must(forked.Marshal(part)), asnAppTag.EncAPRepPart)
	rep := messages.APRep{PVNO: 5, MsgType: msgtype.KRB_AP_REP, EncPart: must(crypto.GetEncryptedData(plain, key, keyusage.AP_REP_ENCPART, 0))}
	b := asn1tools.AddASNAppTag(must(forked.Marshal(rep)), asnAppTag.APREP)
	return asn1tools.AddASNAppTag(append(bytes.Clone(replyHead), b...), 0)
}

// signing returns the key for wrapped tokens.
func (a *acceptor) signing() types.EncryptionKey {
	if len(a.subkey.KeyValue) > 0 {
		return a.subkey
	}
	return a.auth.SubKey
}

// offer returns the wrapped list of security layers, signed with this key.
func offer(layers []byte, flags byte, key types.EncryptionKey) []byte {
	et := must(crypto.GetEtype(key.KeyType))
	w := gssapi.WrapToken{Flags: flags, EC: uint16(et.GetHMACBitLength() / 8), Payload: layers}
	if err := w.SetCheckSum(key, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil {
		panic(err)
	}
	return must(w.Marshal())
}

// requestTicket starts an exchange.
func requestTicket(t testing.TB, encryption int32) (*acceptor, *exchange) {
	t.Helper()
	a := new(acceptor)
	x, err := newExchange(a.newTicket(encryption), server)
	if err != nil {
		t.Fatal(err)
	}
	token, done, err := x.Step(nil)
	if err != nil || done {
		t.Fatalf("done %v, %v", done, err)
	}
	if err := a.accept(token); err != nil {
		t.Fatal(err)
	}
	return a, x
}

var noLayer = []byte{1, 0, 0, 0}

func TestExchange(t *testing.T) {
	for _, encryption := range []int32{etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128} {
		for _, own := range []bool{false, true} {
			a, x := requestTicket(t, encryption)
			acceptorFlags := byte(1)
			if own {
				a.subkey, acceptorFlags = must(types.GenerateEncryptionKey(must(crypto.GetEtype(encryption)))), 1|subkeyFlag
			}
			empty, done, err := x.Step(a.reply(a.key))
			if err != nil || done || empty == nil || len(empty) > 0 {
				t.Fatalf("%q, done %v, %v", empty, done, err)
			}
			last, done, err := x.Step(offer([]byte{7, 0, 1, 0}, acceptorFlags, a.signing()))
			if err != nil || !done {
				t.Fatalf("done %v, %v", done, err)
			}
			var w gssapi.WrapToken
			if err := w.Unmarshal(last, false); err != nil {
				t.Fatal(err)
			}
			if ok, err := w.Verify(a.signing(), keyusage.GSSAPI_INITIATOR_SEAL); !ok || !bytes.Equal(w.Payload, noLayer) || own != (w.Flags&subkeyFlag != 0) {
				t.Errorf("%+v: %v", w, err)
			}
		}
	}
}

// A server without the key of its principal cannot complete an exchange.
func TestServerMustProveItself(t *testing.T) {
	const encryption = etypeID.AES256_CTS_HMAC_SHA1_96
	other := must(types.GenerateEncryptionKey(must(crypto.GetEtype(encryption))))
	for name, tokens := range map[string]func(a *acceptor) [][]byte{
		"another session key": func(a *acceptor) [][]byte { return [][]byte{a.reply(other)} },
		"the proof of another connection": func(a *acceptor) [][]byte {
			a.auth.Cusec = (a.auth.Cusec + 1) % 1e6
			return [][]byte{a.reply(a.key)}
		},
		"the proof of another time": func(a *acceptor) [][]byte {
			a.auth.CTime = a.auth.CTime.Add(-time.Second)
			return [][]byte{a.reply(a.key)}
		},
		"no proof":                    func(a *acceptor) [][]byte { return [][]byte{offer(noLayer, 1, a.signing())} },
		"nothing":                     func(a *acceptor) [][]byte { return [][]byte{{}} },
		"the client's own token":      func(a *acceptor) [][]byte { return [][]byte{asn1tools.AddASNAppTag(requestHead, 0)} },
		"a cut proof":                 func(a *acceptor) [][]byte { b := a.reply(a.key); return [][]byte{b[:len(b)-1]} },
		"more than a proof":           func(a *acceptor) [][]byte { return [][]byte{append(a.reply(a.key), 0)} },
		"an endless token":            func(a *acceptor) [][]byte { return [][]byte{make([]byte, maxToken+1)} },
		"an offer with another key":   func(a *acceptor) [][]byte { return [][]byte{a.reply(a.key), offer(noLayer, 1, other)} },
		"an offer with the wrong key": func(a *acceptor) [][]byte { return [][]byte{a.reply(a.key), offer(noLayer, 1, a.key)} },
		"an offer by the client":      func(a *acceptor) [][]byte { return [][]byte{a.reply(a.key), offer(noLayer, 0, a.signing())} },
		"encryption only":             func(a *acceptor) [][]byte { return [][]byte{a.reply(a.key), offer([]byte{4, 0, 1, 0}, 1, a.signing())} },
		"a long offer": func(a *acceptor) [][]byte {
			return [][]byte{a.reply(a.key), offer([]byte{1, 0, 0, 0, 0}, 1, a.signing())}
		},
		"no offer": func(a *acceptor) [][]byte { return [][]byte{a.reply(a.key), {}} },
		"more after the end": func(a *acceptor) [][]byte {
			o := offer(noLayer, 1, a.signing())
			return [][]byte{a.reply(a.key), o, o}
		},
	} {
		a, x := requestTicket(t, encryption)
		list := tokens(a)
		for i, token := range list {
			_, done, err := x.Step(token)
			switch {
			case i < len(list)-1 && err != nil:
				t.Errorf("%s: token %d: %v", name, i, err)
			case i == len(list)-1 && (done || !errors.Is(err, zk.ErrAuthFailed) || !strings.Contains(err.Error(), "verify the server zookeeper/zk1@EXAMPLE.COM: ")):
				t.Errorf("%s: done %v, %v", name, done, err)
			}
		}
		if _, done, err := x.Step(a.reply(a.key)); done || err == nil {
			t.Errorf("%s: the exchange continues", name)
		}
	}
}

// Old types of encryption have other tokens, and are broken.
func TestOldEncryptionIsRefused(t *testing.T) {
	_, err := newExchange(new(acceptor).newTicket(etypeID.RC4_HMAC), server)
	if !errors.Is(err, zk.ErrAuthFailed) || !strings.Contains(err.Error(), "give the principal a key for AES") {
		t.Error(err)
	}
}
