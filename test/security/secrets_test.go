package security

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// secrets are texts that must not be visible.
type secrets struct {
	mu    sync.Mutex        // guards forms
	forms map[string]string // descriptions by form
}

// add adds a secret in every form in which a program could print it.
func (s *secrets) add(what, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forms == nil {
		s.forms = map[string]string{}
	}
	b := []byte(secret)
	for _, form := range []string{
		secret, hex.EncodeToString(b), strings.Trim(fmt.Sprint(b), "[]"),
		strings.TrimRight(base64.StdEncoding.EncodeToString(b), "="), strings.Trim(fmt.Sprintf("%q", secret), `"`),
		strings.ReplaceAll(strings.Trim(fmt.Sprint(b), "[]"), " ", ","), fmt.Sprintf("% x", b),
	} {
		s.forms[form] = what
	}
}

// find returns the descriptions of the secrets in a text.
func (s *secrets) find(text string) (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for form, what := range s.forms {
		if strings.Contains(text, form) || strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
			found = append(found, what)
		}
	}
	return found
}

// hidden fails the test if a text contains a secret, or does not contain mustHave, which shows
// that it is the expected text.
func (s *secrets) hidden(t *testing.T, of, text, mustHave string) {
	t.Helper()
	for _, what := range s.find(text) {
		t.Errorf("%s shows %s:\n%s", of, what, text)
	}
	if !strings.Contains(text, mustHave) {
		t.Errorf("%s does not contain %q:\n%s", of, mustHave, text)
	}
}

// TestSecretsAreFoundInAllForms checks the search on which the other tests depend.
func TestSecretsAreFoundInAllForms(t *testing.T) {
	var s secrets
	s.add("the password", "tr0ub4dor&3")
	s.add("the session's password", "\x01\x02\xfe\xff0123456789ab")
	for _, text := range []string{
		"user:tr0ub4dor&3", "TR0UB4DOR&3", "dHIwdWI0ZG9yJjM=", "[116 114 48 117 98 52 100 111 114 38 51]", "7472307562346434 7472307562346f",
		"0x74723075623464 6f722633", "747230756234646f722633", "74 72 30 75 62 34 64 6f 72 26 33", "116,114,48,117,98,52,100,111,114,38,51",
		`"\x01\x02\xfe\xff0123456789ab"`, "0102FEFF" + hex.EncodeToString([]byte("0123456789ab")),
	} {
		found := len(s.find(text)) > 0
		if broken := strings.HasPrefix(text, "7472307562346434") || strings.HasPrefix(text, "0x7472"); found == broken {
			t.Errorf("%q: found %v", text, found)
		}
	}
}
