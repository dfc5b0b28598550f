package model

import "testing"

func TestReadWrite(t *testing.T) {
	runCases(t, ReadWrite(), append(fencedCases(),
		testCase{"readers share", `1 call shared; 2 call shared; 1 got 6; 2 got 5; 1 release; 1 released; 2 release; 2 released`, true, true},
		testCase{"a writer next to a reader", `1 call shared; 1 got 5; 2 call; 2 got 6; 1 release; 1 released; 2 release; 2 released`, false, false},
		testCase{"a reader next to a writer", `1 call; 1 got 5; 2 call shared; 2 got 6; 1 release; 1 released; 2 release; 2 released`, false, false},
		testCase{"a writer when one of two readers is left", `1 call shared; 1 got 5; 2 call shared; 2 got 6; 1 release; 1 released; 3 call; 3 got 7; 2 release; 2 released; 3 release; 3 released`, false, false},
		testCase{"a writer after all readers", `1 call shared; 1 got 5; 2 call shared; 2 got 6; 3 call; 1 release; 1 released; 2 release; 3 got 7; 2 released; 3 release; 3 released`, true, true},
		testCase{"a writer's token below a reader's", `1 call shared; 1 got 6; 1 release; 1 released; 2 call; 2 got 5; 2 release; 2 released`, false, false},
		testCase{"a reader's token below a writer's", `1 call; 1 got 6; 1 release; 1 released; 2 call shared; 2 got 5; 2 release; 2 released`, false, false},
		testCase{"downgrade lets readers in", `1 call; 1 got 5; 2 call shared; 1 downgrade; 2 got 6; 1 downgraded; 2 release; 2 released; 1 release; 1 released`, true, true},
		testCase{"downgrade lets a writer in", `1 call; 1 got 5; 2 call; 1 downgrade; 2 got 6; 1 downgraded; 2 release; 2 released; 1 release; 1 released`, false, false},
		testCase{"a writer next to a downgraded one", `1 call; 1 got 5; 1 downgrade; 1 downgraded; 2 call; 2 got 6; 2 release; 2 released; 1 release; 1 released`, false, false},
		testCase{"a reader before the downgrade", `1 call; 1 got 5; 2 call shared; 2 got 6; 1 downgrade; 1 downgraded; 2 release; 2 released; 1 release; 1 released`, false, false},
		testCase{"an unknown downgrade was done", `1 call; 1 got 5; 1 downgrade; 1 downgraded?; 2 call shared; 2 got 6; 2 release; 2 released; 1 release; 1 released`, true, true},
		testCase{"an unknown downgrade was not done", `1 call; 1 got 5; 1 downgrade; 1 downgraded?; 1 release; 1 released; 2 call; 2 got 6; 2 release; 2 released`, true, true},
		testCase{"an unknown downgrade lets no writer in", `1 call; 1 got 5; 1 downgrade; 1 downgraded?; 2 call; 2 got 6; 2 release; 2 released; 1 release; 1 released`, false, false},
		testCase{"a refused downgrade lets no reader in", `1 call; 1 got 5; 1 downgrade; 1 refused; 2 call shared; 2 got 6; 2 release; 2 released; 1 release; 1 released`, false, false},
		testCase{"downgraded and lost", `1 call; 1 got 5 until 35; 1 downgrade; 1 downgraded; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, true, true},
		testCase{"a downgraded one lost before its deadline", `1 call; 1 got 5 until 65; 1 downgrade; 1 downgraded; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, false, false},
		testCase{"one of two readers is lost", `1 call shared; 1 got 5 until 45; 2 call shared; 2 got 6; 3 call; 1 lost; 3 got 7; 2 release; 2 released; 3 release; 3 released`, false, false},
		testCase{"a reader downgrades", `1 call shared; 1 got 5; 1 downgrade; 1 downgraded; 1 release; 1 released`, false, true},
		testCase{"permits are none of its business", `1 call permits 1/2; 1 got 5; 1 release; 1 released`, false, true},
		testCase{"its session was ended, and it is entered before that is known", `
			1 call; 1 got 5 until 900; 3 call; 9 expire 1; 3 got 6; 9 expired 1; 2 again 1 shared; 2 got 5 until 900; 2 lost; 1 lost
			3 release; 3 released`, true, true},
		testCase{"again as a reader", `1 call; 1 got 5; 2 again 1 shared; 2 got 5; 2 release; 2 released; 1 release; 1 released`, true, true},
	))
}

func TestSemaphore(t *testing.T) {
	runCases(t, Semaphore(3), []testCase{
		{"three of three", `
			1 call permits 1/3; 1 got 5; 2 call permits 1/3; 2 got 7; 3 call permits 1/3; 3 got 6
			1 release; 1 released; 2 release; 2 released; 3 release; 3 released`, true, true},
		{"four of three", `
			1 call permits 1/3; 1 got 5; 2 call permits 1/3; 2 got 6; 3 call permits 1/3; 3 got 7; 4 call permits 1/3; 4 got 8
			1 release; 1 released; 2 release; 2 released; 3 release; 3 released; 4 release; 4 released`, false, false},
		{"two and two of three", `1 call permits 2/3; 1 got 5; 2 call permits 2/3; 2 got 6; 1 release; 1 released; 2 release; 2 released`, false, false},
		{"two and one of three", `1 call permits 2/3; 1 got 5; 2 call permits 1/3; 2 got 6; 1 release; 1 released; 2 release; 2 released`, true, true},
		{"a waiter gets what is given back", `1 call permits 2/3; 1 got 5; 2 call permits 2/3; 1 release; 2 got 6; 1 released; 2 release; 2 released`, true, true},
		{"all of them after a loss", `1 call permits 2/3; 1 got 5 until 25; 2 call permits 3/3; 2 got 6; 1 lost; 2 release; 2 released`, true, true},
		{"all of them before the loss", `1 call permits 2/3; 1 got 5 until 45; 2 call permits 3/3; 2 got 6; 1 lost; 2 release; 2 released`, false, false},
		{"an unknown acquire takes none", `1 call permits 3/3; 1 info; 2 call permits 3/3; 2 got 6; 2 release; 2 released`, true, true},
		{"an unconfirmed release", `1 call permits 3/3; 1 got 5; 1 release; 1 unconfirmed; 2 call permits 3/3; 2 got 6; 2 release; 2 released`, true, true},
		{"peers that disagree", `1 call permits 1/4; 1 got 5; 1 release; 1 released`, false, true},
		{"an exclusive hold is none of its business", `1 call; 1 got 5; 1 release; 1 released`, false, true},
	})
}
