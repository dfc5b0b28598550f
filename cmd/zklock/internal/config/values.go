package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// number parses an integer within limits, decimal or hexadecimal with 0x, as Java's
// Integer.decode does.
func number(value string, least, most int64) (int64, error) {
	digits, base := value, 10
	if rest, ok := strings.CutPrefix(strings.ToLower(value), "0x"); ok {
		digits, base = rest, 16
	}
	n, err := strconv.ParseInt(digits, base, 64)
	if err != nil || strings.HasPrefix(digits, "+") && base == 16 || n < least || n > most {
		return 0, fmt.Errorf("%+.100q is not a whole number from %d to %d", value, least, most)
	}
	return n, nil
}

// most32 is the largest int of Java.
const most32 = 1<<31 - 1

// milliseconds parses a time. -1 means the default, as in ZooKeeper.
func milliseconds(value string, least int64) (time.Duration, error) {
	n, err := number(value, least, most32)
	return time.Duration(max(n, 0)) * time.Millisecond, err
}

// sessionTimeout parses a limit of the session timeout. For ZooKeeper, 0 is no default: it permits
// any timeout, or none.
func sessionTimeout(value string) (time.Duration, error) {
	d, err := milliseconds(value, -1)
	if d == 0 && err == nil && !strings.HasPrefix(value, "-") {
		err = fmt.Errorf("%.100q is not a session timeout: give 1 or more, or -1 for the default", value)
	}
	return d, err
}

// boolean parses the values of Java's Boolean. It rejects other values, which Java silently
// treats as false.
func boolean(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%+.100q is not true or false", value)
}

// yesOrNo parses the value of a key that ZooKeeper compares with yes or no, and does not parse.
// The caller rejects a value that has an effect here and none in ZooKeeper.
func yesOrNo(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true", "yes":
		return true, nil
	case "false", "no":
		return false, nil
	}
	return false, fmt.Errorf("%+.100q is not yes or no", value)
}

// absolute makes a path independent of the working directory.
func absolute(value string) (string, error) {
	if value == "" || strings.ContainsRune(value, 0) {
		return "", fmt.Errorf("%+.200q is not a path", value)
	}
	return filepath.Abs(value)
}

// host checks the syntax of an address to listen at.
func host(value string) (string, error) {
	value = strings.TrimSuffix(strings.TrimPrefix(value, "["), "]")
	if strings.ContainsAny(value, " \t\x00/[]") {
		return "", fmt.Errorf("%+.100q is not an address: give an IP address or a name, without a port", value)
	}
	return value, nil
}

// digest checks only the syntax. Its errors do not quote the value.
func digest(value string) (string, error) {
	if user, hash, ok := strings.Cut(value, ":"); !ok || user == "" || hash == "" {
		return "", errors.New("the value must have the form super:BASE64")
	}
	return value, nil
}

// words splits a list at commas and omits empty elements.
func words(value string) []string {
	var list []string
	for word := range strings.SplitSeq(value, ",") {
		if word = strings.TrimSpace(word); word != "" {
			list = append(list, word)
		}
	}
	return list
}
