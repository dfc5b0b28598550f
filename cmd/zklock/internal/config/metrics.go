package config

import (
	"cmp"
	"net"
	"strconv"
	"strings"
)

// metrics has the values of the keys metricsProvider.*.
type metrics struct {
	class, host string
	port, line  int
}

// The default address of the metrics. ZooKeeper's default is all addresses, which shows
// them to every machine in the network.
const (
	metricsHost = "127.0.0.1"
	metricsPort = 7000
)

// metricsKey handles one of these keys.
func (c *ServerConfig) metricsKey(line int, key, value string) (err error) {
	switch key {
	case "metricsProvider.className":
		c.metrics.class, c.metrics.line = value[strings.LastIndexByte(value, '.')+1:], line
	case "metricsProvider.httpHost":
		c.metrics.host, err = host(value)
	case "metricsProvider.httpPort":
		c.metrics.port, err = count(1, 65535)(value)
	case "metricsProvider.exportJvmInfo":
		c.note(Note{Line: line, Text: key + " has no effect: there is no JVM; the metrics include those of the Go runtime"})
	case "metricsProvider.httpsPort":
		c.note(Note{Line: line, Warning: true, Text: key + " has no effect: metrics are served without TLS; serve them on the loopback, or behind a proxy"})
	default:
		c.note(Note{Line: line, Text: shown(key) + " has no effect: this server needs no such setting for metrics"})
	}
	return err
}

// finishMetrics sets the address of the metrics.
func (c *ServerConfig) finishMetrics() {
	m := &c.metrics
	switch m.class {
	case "PrometheusMetricsProvider":
		c.Metrics = net.JoinHostPort(cmp.Or(m.host, metricsHost), strconv.Itoa(cmp.Or(m.port, metricsPort)))
	case "", "DefaultMetricsProvider", "NullMetricsProvider":
		if m.port != 0 || m.host != "" {
			c.note(Note{Text: "metricsProvider.httpHost and httpPort have no effect without metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"})
		}
	default:
		c.note(Note{Line: m.line, Warning: true, Text: "metricsProvider.className: this server cannot load the Java class " + shown(m.class) + "; use PrometheusMetricsProvider"})
	}
}
