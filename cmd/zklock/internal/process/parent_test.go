package process

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestParentEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parent atomic.Int64
		parent.Store(77)
		ended := parentEnded(time.Second, 77, func() int { return int(parent.Load()) })
		select {
		case <-ended:
			t.Error("the parent that runs has ended")
		case <-time.After(time.Hour):
		}
		parent.Store(1)
		at := time.Now()
		<-ended
		if took := time.Since(at); took > time.Second {
			t.Errorf("noticed after %v", took)
		}
	})
}
