//go:build unix

package process

import (
	"fmt"
	"os"

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
