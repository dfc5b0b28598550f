package process

// BootTime reads a clock that two processes of a machine can compare, and that runs while
// the machine is suspended.
//
// The wrapper (the process of zklock run) sends its watchdog a deadline on this clock. The
// monotonic clock of package time has no zero that another process knows.
