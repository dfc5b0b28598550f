package x500

import "testing"

// acceptedByJava returns names that X500Principal of Java 17 accepts.
func acceptedByJava() []string {
	return []string{
		"", "CN=a", "cn=a", "CN=a,O=b", "CN=a, O=b", "CN=a;O=b", "CN=a+OU=c,O=b", "CN=", "1.2.3=a",
		"OID.1.2.3=a", "oid.1.2.3=a", "1.2=a", "CN=\"a,b\"", "CN=a\\,b", "CN=a\\2Cb", "CN=#0c0161",
		"EMAILADDRESS=x@y", "DC=com", "UID=x", "SERIALNUMBER=1", "T=x", "S=x", "ST=x", "STREET=x", "C=us",
		"L=x", "SURNAME=x", "GIVENNAME=x", "INITIALS=x", "GENERATION=x", "DNQ=x", "DNQUALIFIER=x",
		"IP=1.2.3.4", "CN=a=b", "CN=a#b", "CN= a ", " CN=a", "CN =a", "CN= a", "CN=a\u000ab", "CN=\u00fc",
		"CN=a b", "CN=a\u0000", "CN=*", "CN=\\ a", "CN=a\\ ", "CN=\\#a", "CN=\"\"", "CN=\\\"a\\\"",
		"CN=\"a\\\"b\"", "CN=\"a\" ", "CN=\"a\",O=b", "CN=a\u0009b", "OU=x+CN=a+O=q", "CN=a\u000a",
		"\u000aCN=a", "CN=ab  ,O=c", "CN=\\e4\\b8\\ad", "CN=\\ff", "1.2.840.113549.1.9.1=x",
		"1.2.840.113549.1.9.1=#160178", "01.2.3=a", "1.02.3=a", "1.2.999999999999999999999=x",
		"CN=a\u4e2d", "CN=a,O=\"b\u000ac\"", "CN=a+O=b;C=d", "CN=#0c0161,O=b",
	}
}

// refusedByJava returns names that X500Principal of Java 17 refuses.
func refusedByJava() []string {
	return []string{
		" ", "CN", "=a", "a", "CN=a,", ",CN=a", "CN=a,,O=b", "CN=a+", "+CN=a", "XX=a", "1=a", "1.2.=a",
		"3.2.1=a", "1.40.1=a", "CN=\"a", "CN=\"a\"b", "CN=a\"b", "CN=a\\", "CN=a\\zb", "CN=a\\2",
		"CN=#0401", "CN=#040", "CN=#", "CN=#zz", "E=x@y", "TITLE=x", "SN=x", "GN=x", "CN=a+b", "CN=a<b",
		"CN=a>b", "CN=a,O", "C N=a", "CN=a;", "anyone", "PSEUDONYM=x", "BUSINESSCATEGORY=x", "MAIL=x",
		"CN=<a>", "CN=#0c0161 ,O=b", "CN=# 0c0161", "CN=#0c 0161", "CN=##",
	}
}

func TestValidAgreesWithJava(t *testing.T) {
	for _, name := range acceptedByJava() {
		if !Valid(name) {
			t.Errorf("%q is not valid", name)
		}
	}
	for _, name := range refusedByJava() {
		if Valid(name) {
			t.Errorf("%q is valid", name)
		}
	}
}
