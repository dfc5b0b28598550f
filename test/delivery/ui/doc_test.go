// Package ui tests the page of package zkui in a browser: Debian's Chromium, headless. A script
// error, or a violation of the page's Content-Security-Policy, fails a test.
//
// Without Chromium, the tests are skipped. With ZKLOCK_REQUIRE_REAL=1 in the environment, they
// fail. `make screenshots` writes docs/screenshots.
package ui
