package model

import "testing"

func TestMulti(t *testing.T) {
	runCases(t, Multi(), append(fencedCases(),
		testCase{"paths that do not meet", `1 call on /x /y; 1 got 5; 2 call on /z; 2 got 6; 1 release; 1 released; 2 release; 2 released`, true, true},
		testCase{"the second path is held", `1 call on /y; 1 got 5; 2 call on /x /y; 2 got 6; 1 release; 1 released; 2 release; 2 released`, false, false},
		testCase{"one of two is taken", `1 call on /x /y; 1 got 5; 2 call on /y; 2 got 6; 2 release; 2 released; 1 release; 1 released`, false, false},
		testCase{"in turn on both", `1 call on /x /y; 1 got 5; 2 call on /y /x; 1 release; 2 got 6; 1 released; 2 release; 2 released`, true, true},
		testCase{"the token goes back on one path", `1 call on /y; 1 got 6; 1 release; 1 released; 2 call on /x /y; 2 got 5; 2 release; 2 released`, false, false},
		testCase{"tokens of paths that do not meet", `1 call on /y; 1 got 6; 1 release; 1 released; 2 call on /x; 2 got 5; 2 release; 2 released`, true, true},
		testCase{"a reader and a writer in one", `
			1 call on /x and shared on /y; 1 got 5; 2 call shared on /y; 2 got 6; 3 call on /x; 1 release; 3 got 7; 1 released
			2 release; 2 released; 3 release; 3 released`, true, true},
		testCase{"a writer where the other reads", `
			1 call on /x and shared on /y; 1 got 5; 2 call on /y; 2 got 6; 1 release; 1 released; 2 release; 2 released`, false, false},
		testCase{"permits among them", `
			1 call on /x and permits 1/2 on /s; 1 got 5; 2 call permits 1/2 on /s; 2 got 6; 3 call on /x and permits 2/2 on /s
			1 release; 1 released; 2 release; 3 got 7; 2 released; 3 release; 3 released`, true, true},
		testCase{"permits alone need no token", `
			1 call permits 1/2 on /s and permits 1/2 on /r; 1 got 0; 2 call permits 1/2 on /s and permits 1/2 on /r; 2 got 0
			1 release; 1 released; 2 release; 2 released`, true, true},
		testCase{"entries at two locks that were made in one transaction, and a semaphore", `
			1 call on /x and permits 1/2 on /s; 2 call on /y and permits 2/2 on /s; 1 got 5; 1 release; 2 got 5; 1 released
			2 release; 2 released`, true, true},
		testCase{"entries at one lock that were made in one transaction, and a semaphore", `
			1 call on /x and permits 1/2 on /s; 2 call on /x and permits 2/2 on /s; 1 got 5; 1 release; 2 got 5; 1 released
			2 release; 2 released`, false, false},
		testCase{"too many permits", `
			1 call on /x and permits 1/2 on /s; 1 got 5; 2 call on /y and permits 2/2 on /s; 2 got 6
			1 release; 1 released; 2 release; 2 released`, false, false},
		testCase{"both are lost at once", `1 call on /x /y; 1 got 5 until 25; 2 call on /y; 2 got 6; 3 call on /x; 3 got 7; 1 lost; 2 release; 2 released; 3 release; 3 released`, true, true},
		testCase{"one is lost, the other is not", `1 call on /x /y; 1 got 5 until 45; 2 call on /y; 2 got 6; 1 lost; 2 release; 2 released`, false, false},
		testCase{"deadlock is not its business", `1 call on /x /y; 1 fail; 2 call on /y /x; 2 fail`, true, true},
		testCase{"downgrade of one writer", `1 call; 1 got 5; 1 downgrade; 1 downgraded; 2 call shared; 2 got 6; 1 release; 1 released; 2 release; 2 released`, true, true},
		testCase{"downgrade of a reader", `1 call shared; 1 got 5; 1 downgrade; 1 downgraded; 1 release; 1 released`, false, true},
	))
}
