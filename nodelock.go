package zklock

// NodeLock returns the lock that is one ephemeral znode: whoever makes the znode
// at the name's path holds it. It is for sharing a lock with programs that
// already lock this way; see [Client.Mutex] for names. A znode there that is not
// ephemeral is nobody's, and in everybody's way until somebody deletes it.
//
// It is weaker than the others. There is no order: when the znode goes, all who
// wait are told and race. Its name is fixed, so that nothing tells one holder's
// znode from the next one's: [Hold.Verify] and [Hold.Guard] fail with
// ErrInvalidLock, [Lock.Revoke] may ask the next holder instead, and a release
// relies on nobody but the holders deleting it. A hold's token is its znode's
// czxid, as ever.
func (c *Client) NodeLock(name string) *Lock {
	path, err := c.lockPath(name)
	return c.lock(part{path: path, mode: Exclusive, node: true}, err)
}
