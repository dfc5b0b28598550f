package zktest_test

import (
	"testing"

	"github.com/zklock/zklock/zktest"
)

func TestExampleBubble(t *testing.T) { testStopsInTime(t) }

func TestExampleProxy(t *testing.T) {
	testThroughProxy(t, zktest.Start(t).ListenTCP(t))
}
