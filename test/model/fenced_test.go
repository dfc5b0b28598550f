package model

import (
	"slices"
	"testing"
)

func fencedCases() []testCase {
	return append(mutexCases(),
		testCase{"a token goes back", `1 call; 1 got 6; 1 release; 1 released; 2 call; 2 got 5; 2 release; 2 released`, false, false},
		testCase{"a token comes again", `1 call; 1 got 5; 1 release; 1 released; 2 call; 2 got 5; 2 release; 2 released`, false, false},
		testCase{"a token goes back after a loss", `1 call; 1 got 6 until 25; 1 lost; 2 call; 2 got 5; 2 release; 2 released`, false, false},
		// Client 1's hold is never certain, but it was granted before client 2's call.
		testCase{"a token goes back after a hold that was over at once", `1 call; 1 got 6 until 15; 1 lost; 2 call; 2 got 5; 2 release; 2 released`, false, true},
		testCase{"a token goes back after a hold that was certain", `1 call; 1 got 6 until 25; 1 held until 35; 2 call; 1 lost; 2 got 5; 2 release; 2 released`, false, false},
		testCase{"tokens in the order of grants, not of returns", `
			1 call; 2 call; 2 got 6; 1 got 5 until 15; 1 lost; 2 release; 2 released`, true, true},
	)
}

func TestFenced(t *testing.T) {
	runCases(t, Fenced(), append(fencedCases(),
		testCase{"it can't be entered again", `1 call; 1 got 5; 2 again 1; 2 got 5; 2 release; 2 released; 1 release; 1 released`, false, true},
	))
}

func TestReentrantFenced(t *testing.T) {
	runCases(t, ReentrantFenced(), append(fencedCases(),
		testCase{"again under the same token", `1 call; 1 got 5; 2 again 1; 2 got 5; 3 call; 2 release; 2 released; 1 release; 3 got 6; 1 released; 3 release; 3 released`, true, true},
		testCase{"a reader inside of the writer", `1 call; 1 got 5; 2 again 1 shared; 2 got 5; 2 release; 2 released; 1 release; 1 released`, true, true},
		testCase{"the outer one is released first", `1 call; 1 got 5; 2 again 1; 2 got 5; 1 release; 1 released; 3 call; 2 release; 2 released; 3 got 6; 3 release; 3 released`, true, true},
		testCase{"again under another token", `1 call; 1 got 5; 2 again 1; 2 got 6; 2 release; 2 released; 1 release; 1 released`, false, false},
		testCase{"the first of two releases gives it away", `1 call; 1 got 5; 2 again 1; 2 got 5; 3 call; 2 release; 2 released; 3 got 6; 1 release; 1 released; 3 release; 3 released`, false, false},
		testCase{"again under what was released", `1 call; 1 got 5; 1 release; 1 released; 2 again 1; 2 got 5; 2 release; 2 released`, false, true},
		testCase{"all levels are lost at once", `1 call; 1 got 5 until 45; 2 again 1; 2 got 5 until 45; 3 call; 3 got 6; 1 lost; 2 lost; 3 release; 3 released`, true, true},
		testCase{"a loss before one level's deadline", `1 call; 1 got 5 until 45; 2 again 1; 2 got 5 until 65; 3 call; 3 got 6; 1 lost; 2 lost; 3 release; 3 released`, false, false},
		testCase{"left once, then its session was ended", `
			1 call; 1 got 5 until 900; 2 again 1; 2 got 5 until 900; 2 release; 2 released; 3 call; 9 expire 1; 3 got 6
			9 expired 1; 1 lost; 3 release; 3 released`, true, true},
		testCase{"its session was ended, and it is left afterwards", `
			1 call; 1 got 5 until 900; 2 again 1; 2 got 5 until 900; 9 expire 1; 3 call; 3 got 6; 2 release; 2 released
			1 release; 1 released; 9 expired 1; 3 release; 3 released`, true, true},
		testCase{"its session was ended, and it is entered before that is known", `
			1 call; 1 got 5 until 900; 3 call; 9 expire 1; 3 got 6; 9 expired 1; 2 again 1; 2 got 5 until 900; 2 lost; 1 lost
			3 release; 3 released`, true, true},
		testCase{"entered under another token, and its session was ended later", `
			1 call; 1 got 5 until 900; 2 again 1; 2 got 6 until 900; 9 expire 1; 9 expired 1; 2 lost; 1 lost`, false, false},
		testCase{"entered by a client that does not hold", `1 call; 1 got 5; 2 call; 2 got 5; 1 release; 1 released; 2 release; 2 released`, false, false},
	))
}

func TestHandedOff(t *testing.T) {
	runCases(t, HandedOff(), slices.Concat(mutexCases(), []testCase{
		{"handed off under the same token", `1 call; 1 got 5; 2 call; 1 release; 1 released; 2 got 5; 2 release; 2 released`, true, true},
		{"handed off while it is held", `1 call; 1 got 5; 2 call; 2 got 5; 1 release; 1 released; 2 release; 2 released`, false, false},
		{"a token goes back", `1 call; 1 got 6; 1 release; 1 released; 2 call; 2 got 5; 2 release; 2 released`, false, false},
	}))
}
