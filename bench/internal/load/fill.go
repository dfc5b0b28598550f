package load

import (
	"fmt"

	"github.com/zklock/zklock/internal/wire"
)

// window is the number of requests that Fill keeps in flight.
const window = 500

// Fill creates n children of parent with the same data, many requests at a time, and checks
// that each was created.
func (c *Client) Fill(parent string, n int, data []byte) error {
	first := c.xid + 1
	sent := 0
	var buf []byte
	for got := range n {
		// Half a window at a time: one write for each request would take most of the time.
		if sent < n && sent-got <= window/2 {
			buf = buf[:0]
			for ; sent < n && sent-got < window; sent++ {
				c.xid++
				buf = wire.AppendRequest(buf, c.xid, wire.OpCreate, createRequest(fmt.Sprintf("%s/n%08d", parent, sent), data))
			}
			if _, err := c.nc.Write(buf); err != nil {
				return fmt.Errorf("load: fill %s: %w", parent, err)
			}
		}
		if err := c.expect(first + int32(got)); err != nil {
			return fmt.Errorf("load: fill %s: %w", parent, err)
		}
	}
	return nil
}

// expect reads the answer to the request xid, which must be a success.
func (c *Client) expect(xid int32) error {
	body, err := c.read()
	if err != nil {
		return err
	}
	h, _, err := header(body)
	switch {
	case err != nil:
		return err
	case h.Xid != xid:
		return fmt.Errorf("%w: to request %d, not %d", ErrAnswer, h.Xid, xid)
	case h.Err != wire.ErrOK:
		return h.Err
	}
	c.zxid = h.Zxid
	return nil
}
