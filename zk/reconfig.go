package zk

import (
	"context"
	"strings"

	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// configPath is the znode with the ensemble's configuration.
const configPath = "/zookeeper/config"

// AnyVersion permits any version: of a znode's data, of its ACL, or of the configuration of
// the ensemble.
const AnyVersion = -1

// GetConfig returns the configuration of the ensemble. It ignores the client's
// chroot.
func (c *Client) GetConfig(ctx context.Context) ([]byte, Stat, error) {
	op := GetConfigOp()
	res, err := c.do(ctx, &op, nil, nil)
	return res.Data, res.Stat, err
}

// GetConfigOp is [Client.GetConfig] as an operation. On servers before ZooKeeper 3.5 it fails
// with [ErrNoNode].
func GetConfigOp() Op {
	op := GetOp(configPath, false)
	op.absolute = true
	return op
}

// Reconfig replaces the members of the ensemble, if its configuration has this version;
// [AnyVersion] means any. The configuration names its version in hexadecimal digits. A
// member is written as in zoo.cfg: "server.1=host:2888:3888;2181". Reconfig returns the new
// configuration. It fails with [ErrInvalidMembers] if the servers refuse the list, with
// [ErrNewConfigNoQuorum] if no quorum of the new members follows the leader, and with
// [ErrReconfigInProgress] during another one. Servers permit it only with
// reconfigEnabled=true, and to clients that may write the znode /zookeeper/config; else it
// fails with [ErrReconfigDisabled] or [ErrNoAuth].
// See ZooKeeperAdmin.reconfigure.
func (c *Client) Reconfig(ctx context.Context, members []string, version int64) ([]byte, Stat, error) {
	return c.reconfig(ctx, &wire.ReconfigRequest{NewMembers: serverList(members), CurConfigID: version})
}

// IncrementalReconfig adds members to the ensemble or changes them, and removes others, by
// their number: "3". Otherwise it is as [Client.Reconfig]. At least one of the lists must not
// be empty.
func (c *Client) IncrementalReconfig(ctx context.Context, joining, leaving []string, version int64) ([]byte, Stat, error) {
	return c.reconfig(ctx, &wire.ReconfigRequest{
		JoiningServers: serverList(joining), LeavingServers: serverList(leaving), CurConfigID: version,
	})
}

func (c *Client) reconfig(ctx context.Context, members *wire.ReconfigRequest) ([]byte, Stat, error) {
	op := Op{op: session.Op{Code: wire.OpReconfig, Members: members}}
	res, err := c.do(ctx, &op, nil, nil)
	return res.Data, res.Stat, err
}

// serverList returns a list of servers as the request has it: nil for none.
func serverList(servers []string) []byte {
	if len(servers) == 0 {
		return nil
	}
	return []byte(strings.Join(servers, ","))
}
