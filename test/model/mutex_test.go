package model

import "testing"

// inTurn is a history that every model of a mutex permits.
const inTurn = `
	1 call; 1 got 5; 2 call; 1 release; 2 got 6; 1 released; 2 release; 2 released`

// mutexCases returns the cases with the same result for every model of a mutex.
func mutexCases() []testCase {
	return []testCase{
		{"nothing", ``, true, true},
		{"one", `1 call; 1 got 5; 1 release; 1 released`, true, true},
		{"in turn", inTurn, true, true},
		{"two hold", `1 call; 1 got 5; 2 call; 2 got 6; 1 release; 1 released; 2 release; 2 released`, false, false},
		{"granted before the release is called", `1 call; 2 call; 1 got 5; 2 got 6; 2 release; 2 released; 1 release; 1 released`, false, false},
		{"failed acquires change nothing", `1 call; 1 got 5; 2 call; 2 fail; 3 try; 3 locked; 1 release; 1 released`, true, true},
		{"an unknown acquire constrains nothing", `1 call; 2 call; 2 got 5; 1 info; 2 release; 2 released; 3 call; 3 got 7; 3 release; 3 released`, true, true},
		{"an unconfirmed release may be done at once", `1 call; 1 got 5; 1 release; 1 unconfirmed; 2 call; 2 got 6; 2 release; 2 released`, true, true},
		{"an unconfirmed release may be done late", `1 call; 1 got 5; 1 release; 1 unconfirmed; 2 call; 2 fail; 3 call; 3 got 6; 3 release; 3 released`, true, true},
		{"an unconfirmed release is not done before its call", `1 call; 1 got 5; 2 call; 2 got 6; 1 release; 1 unconfirmed; 2 release; 2 released`, false, false},
		{"lost at its deadline", `1 call; 1 got 5 until 30; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, true, true},
		{"granted before the deadline", `1 call; 1 got 5 until 45; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, false, false},
		{"a check of the hold extends the deadline", `1 call; 1 got 5 until 25; 1 held until 65; 2 call; 2 got 6; 1 lost; 2 release; 2 released`, false, false},
		{"lost before its deadline", `1 call; 1 got 5 until 900; 1 lost; 2 call; 2 got 6; 2 release; 2 released`, true, true},
		{"the release finds it lost", `1 call; 1 got 5 until 25; 2 call; 2 got 6; 1 release; 1 too-late; 2 release; 2 released`, true, true},
		{"the release finds it lost before the deadline", `1 call; 1 got 5 until 90; 2 call; 2 got 6; 1 release; 1 too-late; 2 release; 2 released`, false, false},
		{"over before the acquire returns", `1 call; 2 call; 2 got 6; 1 got 5 until 15; 1 lost; 2 release; 2 released`, true, true},
		{"its session was ended", `1 call; 1 got 5 until 900; 2 call; 9 expire 1; 2 got 6; 9 expired 1; 1 lost; 2 release; 2 released`, true, true},
		{"its session was perhaps ended", `1 call; 1 got 5 until 900; 2 call; 9 expire 1; 2 got 6; 9 expired? 1; 1 release; 1 released; 2 release; 2 released`, true, true},
		{"granted before its session was ended", `1 call; 1 got 5 until 900; 2 call; 2 got 6; 9 expire 1; 9 expired 1; 1 lost; 2 release; 2 released`, false, false},
		{"another's session was ended", `1 call; 1 got 5 until 900; 2 call; 9 expire 7; 2 got 6; 9 expired 7; 1 lost; 2 release; 2 released`, false, false},
		{"its session was ended after its release", `1 call; 1 got 5; 1 release; 1 released; 9 expire 1; 9 expired 1; 2 call; 2 got 6; 2 release; 2 released`, true, true},
		{"its process was killed", `1 call; 1 got 5 until 900; 2 call; 1 killed; 2 got 6; 2 release; 2 released`, true, true},
		{"granted before its process was killed", `1 call; 1 got 5 until 900; 2 call; 2 got 6; 1 killed; 2 release; 2 released`, false, false},
		{"killed while it releases", `1 call; 1 got 5 until 900; 1 release; 1 killed; 2 call; 2 got 6; 2 release; 2 released`, true, true},
		{"killed while it acquires", `1 call; 1 killed; 2 call; 2 got 6; 2 release; 2 released`, true, true},
		{"two paths are two locks", `1 call on /x; 1 got 5; 2 call on /y; 2 got 6; 2 release; 2 released; 1 release; 1 released`, true, true},
	}
}

func TestMutex(t *testing.T) {
	runCases(t, Mutex(), append(mutexCases(),
		testCase{"a reader is none of a mutex's", `1 call shared; 1 got 5; 1 release; 1 released`, false, true},
		testCase{"two paths at once are not its business", `1 call on /x /y; 1 got 5; 1 release; 1 released`, false, true},
		testCase{"a lost hold can't end twice", `1 call; 1 got 5 until 25; 1 lost; 2 call; 2 got 6; 3 call; 3 got 7; 2 release; 2 released; 3 release; 3 released`, false, false},
		testCase{"tokens are none of its business", `1 call; 1 got 6; 1 release; 1 released; 2 call; 2 got 5; 2 release; 2 released`, true, false},
	))
}

func TestOwner(t *testing.T) {
	runCases(t, Owner(), append(mutexCases(),
		// Client 1's hold may end after client 2's grant. The model Mutex lets that end
		// release client 2's lock; the model Owner does not.
		testCase{"the end of a hold does not release another hold", `
			1 call; 1 got 5 until 20; 1 lost; 2 call; 2 got 6; 3 call; 3 got 7 until 60
			3 lost; 2 release; 2 released`, false, true},
		testCase{"a downgrade is none of a mutex's", `1 call; 1 got 5; 1 downgrade; 1 downgraded; 1 release; 1 released`, false, true},
	))
}
