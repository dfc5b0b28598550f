//go:build !linux

package doctor

import "context"

// measureRate measures nothing on this system.
func measureRate() func(context.Context) *Rate {
	return func(context.Context) *Rate { return nil }
}
