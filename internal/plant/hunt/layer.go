package main

import "time"

// A layer is one way in which the project is tested: one package of tests.
type layer struct {
	name   string
	what   string // in a few words, for the table
	module string // its folder, from the root of the repository
	pkg    string // its folder within the module
	args   []string
	budget time.Duration // for one run, on a slow and busy machine
	real   bool          // it needs what may not be installed
}

// binary is what the layer's tests are called when they are built.
func (l layer) binary() string { return l.name + ".test" }

// layers are all that bugs are caught by, the cheap ones first.
func layers() []layer {
	return []layer{
		{name: "session", what: "the session's core, input by input", module: ".", pkg: "internal/session", budget: 3 * time.Minute},
		{name: "tree", what: "the server's state machine", module: ".", pkg: "internal/tree", budget: 3 * time.Minute},
		{name: "conformance", what: "what clients rely on, of which Apache ZooKeeper passes the same", module: ".", pkg: "internal/zkconform", budget: 3 * time.Minute},
		{name: "property", what: "the lock's core against random ensembles", module: ".", pkg: "internal/queue",
			args: []string{"-storms=240"}, budget: 6 * time.Minute},
		{name: "simulation", what: "client, lock and server in one thread, from seeds", module: ".", pkg: "internal/sim",
			args: []string{"-seeds=40"}, budget: 8 * time.Minute},
		{name: "bubble", what: "the library against the embedded server, in synctest bubbles", module: ".", pkg: ".", budget: 6 * time.Minute},
		{name: "herd", what: "who is woken by a release", module: ".", pkg: "internal/herd", budget: 6 * time.Minute},
		{name: "durability", what: "the embedded server on a disk that fails", module: ".", pkg: "zkserver", budget: 6 * time.Minute},
		{name: "ensemble", what: "three Apache ZooKeepers, one of them cut off", module: "test", pkg: "locks", budget: 8 * time.Minute, real: true},
	}
}

// layerNamed finds a layer.
func layerNamed(name string) (layer, bool) {
	for _, l := range layers() {
		if l.name == name {
			return l, true
		}
	}
	return layer{}, false
}
