package hold

// textfile*.go keep the outcomes of runs in a file for the node exporter's textfile
// collector.
//
// A run is too short to be scraped. Each run reads the file of the previous run, adds its
// own outcome, and replaces the file atomically, so that a reader always finds a complete
// one. Counters continue over runs and restarts. Several runs can share a file: a lock on
// its directory lets one run update it at a time.
