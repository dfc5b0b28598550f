package process

import (
	"os"
	"time"
)

// firstParent is the parent of this process, as early as the program can read it.
var firstParent = os.Getppid()

// ParentEnded returns a channel that is closed within about interval after the parent
// process has ended. The goroutine ends with the parent or this process. It compares
// numbers of processes: a parent-death signal would also come at the end of the parent's
// thread that started this process. On systems that keep the number of a parent that has
// ended, such as Windows, the channel is never closed.
func ParentEnded(interval time.Duration) <-chan struct{} {
	return parentEnded(interval, firstParent, os.Getppid)
}

// parentEnded is ParentEnded for a process whose parent was first, and is what parent returns.
func parentEnded(interval time.Duration, first int, parent func() int) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(interval)
		defer t.Stop()
		for parent() == first {
			<-t.C
		}
	}()
	return ended
}
