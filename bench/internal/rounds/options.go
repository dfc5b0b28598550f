package rounds

import (
	"io"
	"time"
)

// Options are the options of every comparison. All fields are required, except Zklock and Log.
type Options struct {
	// Dir is the directory for the files of all servers, on the disk to measure.
	Dir string
	// Zklock is the command to run as the embedded server. If it is empty, the benchmark
	// builds it.
	Zklock string
	// Rounds is the number of measurements of each contender. Turn is the duration of a
	// measurement of throughput.
	Rounds int
	Turn   time.Duration
	// Warm is the duration of each contender's work before the first round, because a JVM
	// compiles code that runs often.
	Warm time.Duration
	// Quiet and Retries are those of [Plan].
	Quiet   float64
	Retries int
	// Log receives the progress, unless it is nil.
	Log io.Writer
}

// Plan returns the plan of a comparison, without contenders.
func (o *Options) Plan() Plan {
	return Plan{Rounds: o.Rounds, Quiet: o.Quiet, Retries: o.Retries, Log: o.Log}
}
