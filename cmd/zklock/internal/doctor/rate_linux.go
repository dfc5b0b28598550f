package doctor

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// rateTime is the minimum time over which the rate is measured.
const rateTime = 100 * time.Millisecond

// readPair reads both clocks, and returns the reading with the smallest gap of several.
func readPair() (best pair, err error) {
	for i := range 8 {
		before, err1 := clock(unix.CLOCK_MONOTONIC_RAW)
		slewed, err2 := clock(unix.CLOCK_MONOTONIC)
		after, err3 := clock(unix.CLOCK_MONOTONIC_RAW)
		for _, err := range []error{err1, err2, err3} {
			if err != nil {
				return pair{}, err
			}
		}
		if took := after - before; i == 0 || took < best.apart {
			best = pair{slewed, before + took/2, took}
		}
	}
	return best, nil
}

// clock reads a clock.
func clock(id int32) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, fmt.Errorf("clock_gettime: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// measureRate starts a measurement and returns a function that ends it. That function
// returns nil if the rate cannot be measured.
func measureRate() func(context.Context) *Rate {
	from, err := readPair()
	return func(ctx context.Context) *Rate {
		to, err2 := readPair()
		if left := rateTime - (to.raw - from.raw); err == nil && err2 == nil && left > 0 {
			select {
			case <-time.After(left):
			case <-ctx.Done():
			}
			to, err2 = readPair()
		}
		if err != nil || err2 != nil {
			return nil
		}
		r := from.rate(to)
		if r != nil {
			r.Slew, r.Daemon = daemonSlew(os.DirFS("/"))
		}
		return r
	}
}
