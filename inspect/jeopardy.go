package inspect

import "time"

// InJeopardy reports whether the holds of a session are in jeopardy: the servers have not
// heard from the session for more than a third of its timeout.
func InJeopardy(silence, timeout time.Duration) bool { return silence > timeout/3 }
