package wire

// CreateMode says what kind of node a create makes
// (org.apache.zookeeper.CreateMode). Zero is a persistent node.
type CreateMode int32

// The kinds of nodes. The server wants ModeContainer with OpCreateContainer
// and the TTL modes with OpCreateTTL.
const (
	ModePersistent              CreateMode = 0
	ModeEphemeral               CreateMode = 1
	ModePersistentSequential    CreateMode = 2
	ModeEphemeralSequential     CreateMode = 3
	ModeContainer               CreateMode = 4
	ModePersistentTTL           CreateMode = 5
	ModePersistentSequentialTTL CreateMode = 6
)

// Valid reports whether the mode is one of those above; a server answers any
// other with ErrBadArguments.
func (m CreateMode) Valid() bool {
	return m >= ModePersistent && m <= ModePersistentSequentialTTL
}

// Ephemeral reports whether the node ends with its session.
func (m CreateMode) Ephemeral() bool {
	return m == ModeEphemeral || m == ModeEphemeralSequential
}

// Sequential reports whether the server appends a number to the name.
func (m CreateMode) Sequential() bool {
	return m == ModePersistentSequential || m == ModeEphemeralSequential || m == ModePersistentSequentialTTL
}

// Container reports whether the server removes the node some time after its
// last child.
func (m CreateMode) Container() bool {
	return m == ModeContainer
}

// TTL reports whether the server removes the node when it was neither changed
// nor had children for a given time.
func (m CreateMode) TTL() bool {
	return m == ModePersistentTTL || m == ModePersistentSequentialTTL
}
