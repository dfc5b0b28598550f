package config

import (
	"maps"
	"slices"
	"strings"
)

// Reasons why a key of ZooKeeper has no effect here.
const (
	oneServer   = "there are no other servers"
	otherInside = "it configures the internals of ZooKeeper"
	noAdmin     = "there is no admin server; --metrics and four-letter words have the same data"
	notNeeded   = "this server always does this, or needs no setting for it"
	noKerberos  = "this server does not support Kerberos"
	forClients  = "clients read it, not servers"
	noFIPS      = "this server has no FIPS mode, and always accepts DIGEST-MD5"
)

// idle has the keys of ZooKeeper 3.8 and 3.9 that have no effect in a server of one node in
// one process, with the reasons. Incomplete keys, such as those that end in a dot, are
// prefixes.
type idle struct {
	exact, prefix map[string]string
}

// reason returns why a key has no effect, and reports whether it is in idle.
func (i idle) reason(key string) (string, bool) {
	if why, ok := i.exact[key]; ok {
		return why, true
	}
	for prefix, why := range i.prefix {
		if strings.HasPrefix(key, prefix) {
			return why, true
		}
	}
	return "", false
}

func idleKeys() idle {
	i := idle{exact: map[string]string{}, prefix: map[string]string{
		"quorum.": oneServer, "ssl.quorum.": oneServer, "multiAddress.": oneServer, "learner.": oneServer, "leader.": oneServer,
		"observer.": oneServer, "fastleader.": oneServer,
		"commitProcessor.": otherInside, "nio.": otherInside, "netty.": otherInside, "jvm.pause.": otherInside,
		"request_throttle": otherInside, "requestThrottle": otherInside, "request_stale": otherInside, "connection_throttle_": otherInside, "watcherClean": otherInside, "pathStats": otherInside, "requestStale": otherInside,
		"messageTracker.": otherInside, "snapshot.": otherInside, "digest.": otherInside,
		"jmx.": otherInside, "follower.": oneServer, "observerMaster.": oneServer, "sasl.client": forClients,
		"admin.": noAdmin, "kerberos.": noKerberos, "audit.": notNeeded,
	}}
	for why, list := range map[string]string{
		oneServer: "initLimit syncLimit electionAlg peerType leaderServes cnxTimeout quorumListenOnAllIPs quorumCnxnTimeoutMs " +
			"standaloneEnabled connectToLearnerMasterLimit observerMasterPort localSessionsEnabled localSessionsUpgradingEnabled " +
			"syncEnabled sslQuorum portUnification sslQuorumReloadCertFiles oraclePath electionPortBindRetry tcpKeepAlive " +
			"leaderConnectDelayDuringRetryMs commitLogCount commitLogSize controllerPort " +
			"forward_learner_requests_to_commit_processor_disabled " +
			"follower.nodelay leader.nodelay " +
			"readonlymode.enabled closeSessionTxn.enabled enableEagerACLCheck " +
			"maxConcurrentSnapSyncs maxConcurrentDiffSyncs maxTimeToWaitForEpoch",
		otherInside: "preAllocSize fsync.warningthresholdms maxResponseCacheSize maxGetChildrenResponseCacheSize serverCnxnFactory " +
			"flushDelay maxWriteQueuePollTime maxBatchSize intBufferStartingSizeBytes watchManagerName bitHashCacheSize fastFormat " +
			"maxInProcessingDeadWatchers snapshotSizeFactor throttledOpWaitTime throttled_op_wait_time largeRequestMaxBytes largeRequestThreshold serializeLastProcessedZxid.enabled txnLogSizeLimitInKb " +
			"clientPortListenBacklog znode.container.maxPerMinute jute.maxbuffer.extrasize " +
			"advancedFlowControlEnabled outstandingHandshake.limit ssl.sslProvider " +
			"connectionMaxTokens connectionTokenFillTime connectionTokenFillCount connectionFreezeTime " +
			"connectionDropIncrease connectionDropDecrease connectionDecreaseRatio",
		noKerberos: "kinit requireKerberosConfig security.auth_to_local",
		forClients: "client.secure clientCnxnSocket disableAutoWatchReset request.timeout server.principal server.realm",
		notNeeded:  "forceSnapshotSync client.certReload clientTcpKeepAlive",
		noAdmin:    "IPAuthenticationProvider.usexforwardedfor",
		noFIPS:     "fips-mode",
	} {
		for key := range strings.FieldsSeq(list) {
			i.exact[key] = why
		}
	}
	return i
}

// schemeKeys has the keys, and the ends of the classes of authProvider.*, that have an effect only
// if clients can authenticate with a scheme. Keys that end in a dot are prefixes.
var schemeKeys = []struct{ key, class, scheme, effect string }{
	{"superUser", "", "sasl", " has no effect"},
	{"superUser.", "", "sasl", " has no effect"},
	{"sasl.serverconfig", "", "sasl", " has no effect"},
	{"X509AuthenticationProvider.superUser", "", "x509", " has no effect"},
	{"authProvider.", "SASLAuthenticationProvider", "sasl", " lets no client authenticate"},
	{"authProvider.", "X509AuthenticationProvider", "x509", " lets no client authenticate"},
}

// schemeOf returns the scheme that a key needs, "" for none, and what a note says about the key if
// no client can authenticate with the scheme.
func schemeOf(key, value string) (scheme, effect string) {
	for _, k := range schemeKeys {
		matches := key == k.key || strings.HasSuffix(k.key, ".") && strings.HasPrefix(key, k.key)
		if matches && (k.class == "" || strings.HasSuffix("."+value, "."+k.class)) {
			return k.scheme, k.effect
		}
	}
	return "", ""
}

// everyKey returns all known keys, as candidates for a misspelled one, in no order.
func everyKey(keys map[string]setter, i idle) []string {
	list := slices.AppendSeq(slices.Collect(maps.Keys(keys)), maps.Keys(i.exact))
	return append(list,
		"ssl.keyStore.location", "ssl.keyStore.password", "ssl.keyStore.type", "ssl.trustStore.location", "ssl.trustStore.password",
		"ssl.trustStore.type", "ssl.clientAuth", "ssl.protocol", "ssl.enabledProtocols", "ssl.ciphersuites",
		"metricsProvider.className", "metricsProvider.httpPort", "metricsProvider.httpHost")
}
