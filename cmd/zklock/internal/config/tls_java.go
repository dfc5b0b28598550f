package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zkserver"
)

// JavaTLS has the TLS settings for clients from ZooKeeper's configuration: the keys that
// begin with "ssl." (X509Util and ClientX509Util there). The zero value has none.
type JavaTLS struct {
	key, trust store
	clientAuth tls.ClientAuthType
	given      bool // clientAuth is set
	versions   []string
	suites     []uint16
	warnings   []string
}

// store is a key store or a trust store.
type store struct{ location, kind string }

// ClientAuth parses none, want, or need, in upper or lower case.
func ClientAuth(value string) (tls.ClientAuthType, error) {
	switch strings.ToLower(value) {
	case "none":
		return tls.NoClientCert, nil
	case "want":
		return tls.VerifyClientCertIfGiven, nil
	case "need":
		return tls.RequireAndVerifyClientCert, nil
	}
	return 0, fmt.Errorf("%w: %+q is not none, want, or need", ErrTLSFiles, value)
}

// Set handles one key, without the prefix "zookeeper.", and reports whether it is known. A
// setting that would leave the server less strict than the file says is an error. Errors do
// not quote a value that may be a password.
func (j *JavaTLS) Set(key, value string) (known bool, err error) {
	switch key {
	case "ssl.keyStore.location":
		j.key.location = value
	case "ssl.keyStore.type":
		j.key.kind = value
	case "ssl.trustStore.location":
		j.trust.location = value
	case "ssl.trustStore.type":
		j.trust.kind = value
	case "ssl.keyStore.password", "ssl.keyStore.passwordPath", "ssl.trustStore.password", "ssl.trustStore.passwordPath":
		// A PEM store has no password, or an encrypted key, which reading detects.
	case "ssl.clientAuth":
		j.clientAuth, err = ClientAuth(value)
		j.given = true
	case "ssl.protocol":
		if j.versions == nil {
			j.versions, err = j.protocols(value)
		}
	case "ssl.enabledProtocols":
		j.versions, err = j.protocols(value)
	case "ssl.ciphersuites":
		j.suites, err = cipherSuites(value)
	case "ssl.crl", "ssl.ocsp":
		var on bool
		if on, err = boolean(value); on {
			err = errors.New("this server does not check revocation: set it to false, and use short-lived certificates")
		}
	case "ssl.context.supplier.class":
		err = errors.New("this server cannot load Java classes: name PEM files with ssl.keyStore.location and ssl.trustStore.location")
	case "ssl.authProvider":
		if value != "" && value != "x509" {
			err = fmt.Errorf("%+q is not supported: this server checks clients' certificates with the scheme x509", value)
		}
	case "ssl.clientHostnameVerification":
		var on bool
		if on, err = boolean(value); on {
			err = errors.New("this server does not check the host names in clients' certificates: " +
				"set it to false, and name the clients in ACLs of the scheme x509")
		}
	case "ssl.hostnameVerification", "ssl.allowReverseDnsLookup":
		var on bool
		if on, err = boolean(value); on {
			j.warnings = append(j.warnings, key+" has no effect: this server does not look up the names in clients' certificates")
		}
	case "ssl.handshakeDetectionTimeoutMillis":
		j.warnings = append(j.warnings, key+" has no effect: the time limit of the whole handshake is ten seconds")
	default:
		return false, nil
	}
	return true, err
}

// protocols parses a list of TLS versions and omits those that are too old.
func (j *JavaTLS) protocols(value string) (versions []string, err error) {
	for v := range strings.SplitSeq(value, ",") {
		switch v = strings.TrimSpace(v); v {
		case "TLSv1.2", "TLSv1.3":
			versions = append(versions, v)
		case "TLS":
			versions = append(versions, "TLSv1.2")
		case "SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1":
			j.warnings = append(j.warnings, v+" is too old to be safe, and is not supported")
		default:
			return nil, fmt.Errorf("%+q is not a TLS version: give TLSv1.2 or TLSv1.3", v)
		}
	}
	if len(versions) == 0 {
		return nil, errors.New("no supported version: give TLSv1.2 or TLSv1.3")
	}
	return versions, nil
}

// cipherSuites parses a list of names. It omits those of TLS 1.3, which are always enabled.
// If no others are left, the list is empty but not nil.
func cipherSuites(value string) (ids []uint16, err error) {
	ids = []uint16{}
	byName := map[string]*tls.CipherSuite{}
	for _, s := range tls.CipherSuites() {
		byName[s.Name] = s
	}
	for name := range strings.SplitSeq(value, ",") {
		s := byName[strings.TrimSpace(name)]
		if s == nil {
			return nil, fmt.Errorf("%+q is not a known and safe cipher suite", strings.TrimSpace(name))
		}
		if s.SupportedVersions[0] < tls.VersionTLS13 {
			ids = append(ids, s.ID)
		}
	}
	return ids, nil
}

// Configured reports whether a key store is set.
func (j *JavaTLS) Configured() bool { return j.key.location != "" }

// Given reports whether any key for TLS is set.
func (j *JavaTLS) Given() bool {
	return j.key != (store{}) || j.trust != (store{}) || j.given || len(j.versions)+len(j.suites)+len(j.warnings) > 0
}

// Files returns the settings for the server. Without ssl.clientAuth, clients need a
// certificate, as in ZooKeeper.
func (j *JavaTLS) Files() (files zkserver.TLSFiles, warnings []string, err error) {
	if !j.Configured() {
		return files, nil, fmt.Errorf("%w: ssl.keyStore.location is missing: name a PEM file with the server's certificate and key", ErrTLSFiles)
	}
	if err := j.key.pem("ssl.keyStore", keyAdvice); err != nil {
		return files, nil, err
	}
	files = zkserver.TLSFiles{Cert: j.key.location, ClientAuth: tls.RequireAndVerifyClientCert, CipherSuites: j.suites}
	if j.given {
		files.ClientAuth = j.clientAuth
	}
	// Java does not use TLS 1.2 without a suite for it, but here an empty list means all
	// suites.
	if files.CipherSuites != nil && len(files.CipherSuites) == 0 {
		files.CipherSuites, files.MinVersion = nil, tls.VersionTLS13
	}
	if len(j.versions) > 0 && !strings.Contains(strings.Join(j.versions, ","), "TLSv1.2") {
		files.MinVersion = tls.VersionTLS13
	}
	if files.ClientAuth == tls.NoClientCert {
		warnings = j.warnings
		if j.trust.location != "" {
			warnings = append(warnings, "ssl.trustStore.location has no effect with ssl.clientAuth=none")
		}
		return files, warnings, nil
	}
	if j.trust.location == "" {
		return files, nil, fmt.Errorf("%w: ssl.trustStore.location is missing: name a PEM file with the CAs of clients' certificates, or set ssl.clientAuth=none", ErrTLSFiles)
	}
	files.CA = j.trust.location
	return files, j.warnings, j.trust.pem("ssl.trustStore", trustAdvice)
}

// Commands that convert Java stores to PEM. Both ask for the password.
const (
	keyAdvice = "umask 077; keytool -importkeystore -srckeystore %[1]s -destkeystore %[2]s -deststoretype PKCS12 && " +
		"openssl pkcs12 -in %[2]s -nodes -out %[3]s && rm %[2]s"
	keyAdvice12 = "umask 077; openssl pkcs12 -in %[1]s -nodes -out %[3]s"
	trustAdvice = "keytool -list -rfc -keystore %[1]s >%[3]s"
)

// pem returns an error for a store that is not PEM, with the command that converts it. The
// type key, or otherwise the file name, says what kind of store it is.
func (s store) pem(key, advice string) error {
	kind, base := strings.ToUpper(s.kind), strings.TrimSuffix(s.location, filepath.Ext(s.location))
	if kind == "" {
		switch strings.ToLower(filepath.Ext(s.location)) {
		case ".pem":
			kind = "PEM"
		case ".jks":
			kind = "JKS"
		case ".p12":
			kind = "PKCS12"
		case ".bcfks":
			kind = "BCFKS"
		default:
			return fmt.Errorf("%w: %s.location is %s: its type is unknown: set %s.type=PEM", ErrTLSFiles, key, s.location, key)
		}
	}
	switch {
	case kind == "PEM":
		return nil
	case kind == "PKCS12" && advice == keyAdvice:
		advice = keyAdvice12
	case kind != "JKS" && kind != "PKCS12" && kind != "BCFKS":
		return fmt.Errorf("%w: %s.type is %+q: only PEM is supported", ErrTLSFiles, key, s.kind)
	}
	command := fmt.Sprintf(advice, legible.Word(s.location), legible.Word(base+".p12"), legible.Word(base+".pem"))
	return fmt.Errorf("%w: %s.location is %s, a %s store, which only Java can read: convert it with %s, set %s.location=%s.pem, and remove %s.type",
		ErrTLSFiles, key, s.location, kind, command, key, base, key)
}
