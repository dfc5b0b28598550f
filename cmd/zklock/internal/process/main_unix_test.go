//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	asHelper = append(asHelper,
		func() (int, bool) {
			if len(os.Args) < 2 || os.Args[1] != ChildArgument {
				return 0, false
			}
			return ChildMain(os.Args[2:]), true
		},
		func() (int, bool) {
			if len(os.Args) < 2 || os.Args[1] != WatchdogArgument {
				return 0, false
			}
			return WatchdogMain(), true
		},
		func() (int, bool) {
			if len(os.Args) < 2 || os.Args[1] != HookArgument {
				return 0, false
			}
			return HookMain(os.Args[2:]), true
		},
		func() (int, bool) { // moves to another process group, then waits for a signal
			group, err := strconv.Atoi(os.Getenv("JOIN_GROUP"))
			if err != nil {
				return 0, false
			}
			if err := unix.Setpgid(0, group); err != nil {
				return 1, true
			}
			if os.Getenv("COUNT_TERM") != "" {
				countTERM()
			}
			time.Sleep(patience) // at most; the parent-death signal ends it sooner
			return 0, true
		},
		func() (int, bool) { // a wrapper whose files are closed, but which ends later
			token := os.Getenv("WRAP_GROUP")
			group, err := strconv.Atoi(token)
			if err != nil {
				return 0, false
			}
			g, err := StartWatchdog(RunningProgram(os.Args[0]))
			if err == nil {
				err = errors.Join(g.Until(BootTime()+time.Hour), g.Watch(group, []string{EnvToken + "=" + token}), g.pipe.Close())
			}
			if err != nil {
				fmt.Println(err)
				return 1, true
			}
			_, _ = os.Stdin.Read(make([]byte, 1)) // until the test closes it
			return 0, true
		},
		func() (int, bool) { // a watchdog that can open no more files, so it has no timer
			if os.Getenv("WATCH_WITHOUT_TIMER") == "" {
				return 0, false
			}
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}); err != nil {
				return 1, true
			}
			return WatchdogMain(), true
		},
		func() (int, bool) {
			if os.Getenv("COUNT_TERM") == "" {
				return 0, false
			}
			countTERM()
			return 0, true
		},
		func() (int, bool) {
			if os.Getenv("INHERIT_CHILD") == "" {
				return 0, false
			}
			CloseInherited(4)
			for fd := 3; fd <= 5; fd++ {
				_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
				fmt.Printf("%d:%v ", fd, err == nil)
			}
			return 0, true
		})
}

// countTERM writes a line when it is ready, and one for each TERM.
func countTERM() {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGTERM)
	fmt.Println("up")
	for end := time.After(patience); ; {
		select {
		case <-signals:
			fmt.Println("TERM")
		case <-end:
			return
		}
	}
}
