package zklock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/zklock/zklock/internal/queue"
)

// MaxValue is the maximum size of a value in bytes; see [Lock.WithValue].
const MaxValue = 1024

// WithValue returns the lock with a value that callers publish while they wait for the
// lock or hold it, such as an address, a version, or a zone. An acquire writes the value
// with its entry, without a further request. [Hold.SetValue] changes the value.
// [Client.Watch], Inspect, and the tools of this package show it.
//
// A value has at most [MaxValue] bytes of any kind. The empty string means no value.
// Every client that may read the entry can read the value, as it can read the owner: by
// default, that is every client of the servers. See [Options].ACL, and do not publish
// secrets. A value does not affect the order of the queue, and is deleted with the entry.
// Re-entering a hold does not change its value. Curator's Revoker replaces the data of an
// entry, including the value, until the next SetValue.
//
// Mutexes, readers, writers, and node locks have values, in every [Options].Layout. A
// semaphore, an [All], and a lock with a LocalHandoff fail with ErrInvalidLock: their holds
// have several znodes, or share one.
func (l *Lock) WithValue(value string) *Lock {
	return l.derive(func(l *Lock) error {
		if err := l.checkValue(value); err != nil {
			return err
		}
		l.value = value
		return nil
	})
}

// checkValue returns why the lock cannot have this value, or nil.
func (l *Lock) checkValue(value string) error {
	switch {
	case len(value) > MaxValue:
		return fmt.Errorf("%w: a value has at most %d bytes, not %d", ErrInvalidLock, MaxValue, len(value))
	case l.all:
		return fmt.Errorf("%w: an All has no value; publish it with a lock that is acquired alone", ErrInvalidLock)
	case l.components[0].mode == Permit:
		return fmt.Errorf("%w: a semaphore has no value; use a mutex", ErrInvalidLock)
	case l.maxHandoffs > 1:
		return fmt.Errorf("%w: a lock with LocalHandoff has no value, because its holds share a znode", ErrInvalidLock)
	}
	return nil
}

// SetValue replaces the value of the hold; see [Lock.WithValue]. An empty value removes it.
// It takes one request, and a second one if the client watches the znode of the hold. A
// release request by [Lock.Revoke] is never lost: if a client writes one at the same time,
// both are in the entry afterwards.
//
// SetValue works for each hold of a lock that can have a value, whether it was acquired
// with one or not. It fails with ErrInvalidLock where [Hold.Verify] does, because the znode
// could belong to another client. If the hold ends first, the error wraps ErrLost or
// ErrReleased. If ctx ends first, the change is not confirmed and continues in the
// background. If other clients change the data of the znode before each of eight attempts,
// SetValue fails with zk.ErrBadVersion. Concurrent calls for one hold are executed one after
// another. All holds of a re-entered lock share one value.
func (h *Hold) SetValue(ctx context.Context, value string) error {
	fail := func(err error) error { return &Error{Op: "set the value of", Path: h.lock.path, Err: err} }
	p := h.grant
	if err := p.lock.checkValue(value); err != nil {
		return fail(err)
	}
	if p.lock.hasReusableNames() {
		return fail(fmt.Errorf("%w: the name of its znode has no GUID, so the write could reach the znode of another client; acquire the lock again with WithValue", ErrInvalidLock))
	}
	if ctx.Err() != nil {
		return fail(contextError(ctx))
	}
	var k *call
	err := h.whenSettled(ctx, func(core *queue.Core, now time.Duration) error {
		data, err := p.data(value)
		if err != nil {
			return err
		}
		p.changing = make(chan struct{})
		p.changeCall, k = p.client.newCall(nil, func(s queue.Signal) {
			p.settle()
			if s.Err == nil {
				p.value = value
			}
		})
		core.SetData(now, p.id, data, p.changeCall)
		return nil
	})
	if err != nil {
		return fail(err)
	}
	if err := h.awaitChange(ctx, k); err != nil {
		return fail(err)
	}
	return nil
}

// awaitChange waits for the answer to a downgrade or a SetValue.
func (h *Hold) awaitChange(ctx context.Context, k *call) error {
	select {
	case s := <-k.answer:
		if errors.Is(s.Err, queue.ErrNotWriter) {
			return fmt.Errorf("%w: this layout has no downgrade", ErrInvalidLock)
		}
		return h.callError(s)
	case <-h.doneChan(): // and there will be no answer
		return h.Err()
	case <-ctx.Done():
		return fmt.Errorf("not confirmed yet; continues in the background: %w", contextError(ctx))
	}
}

// whenSettled calls f once no downgrade and no SetValue of the grant is in progress, with
// the mutex of the client held. It returns the error of f, or why it could not call f.
func (h *Hold) whenSettled(ctx context.Context, f func(core *queue.Core, now time.Duration) error) error {
	for {
		var changing chan struct{}
		var err error
		h.update(func(core *queue.Core, now time.Duration) {
			if err, changing = h.err, h.grant.changing; err == nil && changing == nil {
				err = f(core, now)
			}
		})
		if err != nil || changing == nil {
			return err
		}
		select {
		case <-changing:
		case <-h.doneChan():
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

// settle ends a downgrade or a SetValue. The mutex is held.
func (p *grant) settle() {
	changing := p.changing
	p.changing = nil
	p.client.deferClose(changing)
}

// data returns the data of the znodes of the grant with this value. The mutex is held.
func (p *grant) data(value string) ([]byte, error) {
	owner := p.client.identity
	owner.Since = p.started
	if p.shared {
		owner.Token = p.token
	}
	return p.client.encodeData(owner, value)
}

// valueData are the fields of a value in the data of a znode. Readable text is written as
// it is, for people and other programs, and any other value in base64. So a value takes at
// most about 2 KiB.
type valueData struct {
	Text  string `json:"value,omitempty"`
	Bytes []byte `json:"value64,omitempty"`
}

// encodeData returns the data of a znode with a value. Earlier versions of this package do
// not know the fields of a value. They accept unknown fields if the data name a version of
// this package, so data with a value always do.
func (c *Client) encodeData(o Owner, value string) ([]byte, error) {
	if value == "" {
		return c.encodeOwner(o)
	}
	if c.opts.Anonymous {
		o = o.anonymous()
	}
	if !strings.HasPrefix(o.Version, versionPrefix) {
		o.Version = strings.TrimSpace(versionPrefix + Version + " " + o.Version)
	}
	owner, err := o.encode()
	if err != nil {
		return nil, err
	}
	v := valueData{Text: value}
	if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		v = valueData{Bytes: []byte(value)}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // which would make the value longer
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	data := append(owner[:len(owner)-1], ',')
	return append(data, bytes.TrimSpace(b.Bytes())[1:]...), nil
}

// parseValue returns the value in the data of a znode, or "". It ignores a value that is
// longer than this package writes.
func parseValue(data []byte) string {
	d, ok := decodeData(data)
	switch {
	case !ok || len(d.Text) > MaxValue || len(d.Bytes) > MaxValue:
		return ""
	case d.Text != "":
		return d.Text
	}
	return string(d.Bytes)
}
