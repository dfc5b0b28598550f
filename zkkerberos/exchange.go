package zkkerberos

import (
	"bytes"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// maxToken limits the size of a token of the server. Real ones have less than 200 bytes.
const maxToken = 4 << 10

// Beginnings of tokens (RFC 4121, 4.1): the OID of Kerberos, and the kind of token.
var (
	requestHead = []byte{6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2, 1, 0}
	replyHead   = []byte{6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2, 2, 0}
)

// qopAuth is the bit of the security layer "none" (RFC 4752, 3.3).
const qopAuth = 1

// subkeyFlag says that a token uses the subkey of the server.
const subkeyFlag = 4

// exchange is the exchange of one connection.
//
//	client                                   server
//	        AP-REQ: ticket, authenticator  ->
//	                                       <-  AP-REP: the time in the authenticator
//	        empty token                    ->
//	                                       <-  wrapped: security layers
//	        wrapped: none of them          ->
type exchange struct {
	state  state
	server principal
	ticket *ticket
	auth   types.Authenticator
	// key signs the wrapped tokens: the subkey of the server, or that of the client.
	key          types.EncryptionKey
	serverSubkey bool
}

type state uint8

const (
	begin state = iota
	requested
	verified
	over
)

// newExchange returns the exchange that authenticates by a ticket.
func newExchange(t *ticket, server principal) (x *exchange, err error) {
	defer guard(&err)
	switch t.key.KeyType {
	case etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.AES256_CTS_HMAC_SHA384_192:
	default:
		return nil, refused("use the ticket for", server.String(), fmt.Sprintf("its encryption type %d is too old; give the principal a key for AES", t.key.KeyType))
	}
	x = &exchange{server: server, ticket: t}
	if x.auth, err = types.NewAuthenticator(t.client.realm, t.client.name); err != nil {
		return nil, err
	}
	// A new key for each connection: no token of another connection is valid here.
	if err := x.auth.GenerateSeqNumberAndSubKey(t.key.KeyType, len(t.key.KeyValue)); err != nil {
		return nil, err
	}
	x.key = x.auth.SubKey
	x.auth.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: contextFlags(gssapi.ContextFlagMutual | gssapi.ContextFlagInteg)}
	return x, nil
}

// contextFlags returns the checksum field of an authenticator (RFC 4121, 4.1.1) without
// channel bindings.
func contextFlags(f uint32) []byte {
	b := make([]byte, 24)
	binary.LittleEndian.PutUint32(b, 16)
	binary.LittleEndian.PutUint32(b[20:], f)
	return b
}

// Step implements zk.SASLExchange.
func (x *exchange) Step(challenge []byte) (response []byte, done bool, err error) {
	was := x.state
	x.state = over
	if len(challenge) > maxToken {
		return nil, false, x.impostor(errors.New("its token is too long"))
	}
	switch was {
	case begin:
		if response, err = x.request(); err != nil {
			return nil, false, &Error{Op: "authenticate to", Name: x.server.String(), Err: err}
		}
		x.state = requested
		return response, false, nil
	case requested:
		if err := x.verify(challenge); err != nil {
			return nil, false, x.impostor(err)
		}
		x.state = verified
		return []byte{}, false, nil
	case verified:
		if response, err = x.choose(challenge); err != nil {
			return nil, false, x.impostor(err)
		}
		return response, true, nil
	}
	return nil, false, x.impostor(errors.New("unexpected token"))
}

// impostor returns the error for a server that has not proved its identity.
func (x *exchange) impostor(err error) error {
	return refused("verify the server", x.server.String(), err.Error()+"; the server may be an impostor, or may have another keytab than the KDC")
}

// request returns the first token.
func (x *exchange) request() (token []byte, err error) {
	defer guard(&err)
	req, err := messages.NewAPReq(x.ticket.ticket, x.ticket.key, x.auth)
	if err != nil {
		return nil, err
	}
	types.SetFlag(&req.APOptions, flags.APOptionMutualRequired)
	b, err := req.Marshal()
	if err != nil {
		return nil, err
	}
	return asn1tools.AddASNAppTag(append(bytes.Clone(requestHead), b...), 0), nil
}

// verify checks the server's proof: only a server with the service's key can decrypt the
// authenticator, and so encrypt its time.
func (x *exchange) verify(token []byte) (err error) {
	defer guard(&err)
	var outer asn1.RawValue
	rest, err := asn1.Unmarshal(token, &outer)
	if err != nil || len(rest) > 0 || outer.Class != asn1.ClassApplication || outer.Tag != 0 {
		return errMalformed
	}
	b, ok := bytes.CutPrefix(outer.Bytes, replyHead)
	if !ok {
		return errors.New("its token is not an AP-REP")
	}
	var rep messages.APRep
	if err := rep.Unmarshal(b); err != nil {
		return errMalformed
	}
	plain, err := crypto.DecryptEncPart(rep.EncPart, x.ticket.key, keyusage.AP_REP_ENCPART)
	if err != nil {
		return errors.New("it does not know the session key of the ticket")
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(plain); err != nil {
		return errMalformed
	}
	if part.CTime.Unix() != x.auth.CTime.Unix() || part.Cusec != x.auth.Cusec {
		return errors.New("its token belongs to another connection")
	}
	if len(part.Subkey.KeyValue) > 0 {
		x.key, x.serverSubkey = part.Subkey, true
	}
	return nil
}

// choose checks the signed list of security layers, and returns the client's choice: none,
// and the identity of the ticket.
func (x *exchange) choose(token []byte) (response []byte, err error) {
	defer guard(&err)
	var offer gssapi.WrapToken
	if err := offer.Unmarshal(token, true); err != nil || offer.RRC != 0 {
		return nil, errMalformed
	}
	if ok, err := offer.Verify(x.key, keyusage.GSSAPI_ACCEPTOR_SEAL); !ok || err != nil {
		return nil, errors.New("its token has a wrong signature")
	}
	if len(offer.Payload) != 4 {
		return nil, errMalformed
	}
	if offer.Payload[0]&qopAuth == 0 {
		return nil, errors.New("it requires a security layer of SASL, which ZooKeeper does not use")
	}
	et, err := crypto.GetEtype(x.key.KeyType)
	if err != nil {
		return nil, err
	}
	answer := gssapi.WrapToken{EC: uint16(et.GetHMACBitLength() / 8), SndSeqNum: uint64(x.auth.SeqNumber), Payload: []byte{qopAuth, 0, 0, 0}}
	if x.serverSubkey {
		answer.Flags = subkeyFlag
	}
	if err := answer.SetCheckSum(x.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		return nil, err
	}
	return answer.Marshal()
}
