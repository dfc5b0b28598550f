/*
 * Calls the asynchronous and the synchronous functions of ZooKeeper's C library on the server at
 * argv[1]. Prints one line for each step, without values that differ between runs, and then "end of
 * script".
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <zookeeper/zookeeper.h>

#define WAIT 60 /* seconds, for an expected event */
#define SESSION 30000 /* milliseconds; sessions must survive a stall of the machine */
#define MANY 500

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int done;      /* completions */
static int connected, other_connected; /* connections of the two main sessions */
static int opened; /* connections of other sessions */
static int expired;
static char events[8192]; /* one line each, in order */
static int nevents;

static void say(const char *what, int rc) {
	printf("%s: %s\n", what, rc == ZOK ? "ok" : zerror(rc));
	fflush(stdout);
}

static void say_stat(const char *what, int rc, const struct Stat *s) {
	if (rc != ZOK) {
		say(what, rc);
		return;
	}
	printf("%s: v=%d cv=%d av=%d len=%d children=%d owned=%d\n", what, s->version, s->cversion, s->aversion,
	       s->dataLength, s->numChildren, s->ephemeralOwner != 0);
}

/* Waits until *counter is n. */
static void await_count(const char *what, int *counter, int n) {
	struct timespec limit;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += WAIT;
	pthread_mutex_lock(&lock);
	while (*counter < n) {
		if (pthread_cond_timedwait(&changed, &lock, &limit) == ETIMEDOUT) {
			printf("FAILED: never came: %s\n", what);
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void count(int *counter) {
	pthread_mutex_lock(&lock);
	++*counter;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void session_watcher(zhandle_t *zh, int type, int state, const char *path, void *context) {
	(void)zh, (void)path;
	if (type != ZOO_SESSION_EVENT)
		return;
	if (state == ZOO_CONNECTED_STATE)
		count(context);
	if (state == ZOO_EXPIRED_SESSION_STATE)
		count(&expired);
}

static int second_expired; /* a second handle learned that the session has expired */

static void second_watcher(zhandle_t *zh, int type, int state, const char *path, void *context) {
	(void)zh, (void)path;
	if (type != ZOO_SESSION_EVENT)
		return;
	if (state == ZOO_EXPIRED_SESSION_STATE)
		second_expired = 1;
	if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_CONNECTED_STATE)
		count(context);
}

static const char *type_name(int type) {
	return type == ZOO_CREATED_EVENT ? "created" : type == ZOO_DELETED_EVENT ? "deleted" :
	       type == ZOO_CHANGED_EVENT ? "changed" : type == ZOO_CHILD_EVENT ? "child" :
	       type == ZOO_NOTWATCHING_EVENT ? "not watching" : type == ZOO_SESSION_EVENT ? "session" : "removed";
}

static void watcher(zhandle_t *zh, int type, int state, const char *path, void *context) {
	(void)zh, (void)state;
	if (type == ZOO_SESSION_EVENT)
		return; /* every watch receives it when the state of the connection changes */
	pthread_mutex_lock(&lock);
	size_t used = strlen(events);
	snprintf(events + used, sizeof events - used, "event: %s %s %s\n", (char *)context, type_name(type), path);
	pthread_mutex_unlock(&lock);
	count(&nevents);
}

/* Waits for n more events, and prints them. */
static void await_events(int n) {
	static int seen;
	seen += n;
	await_count("events", &nevents, seen);
	pthread_mutex_lock(&lock);
	fputs(events, stdout);
	events[0] = 0;
	pthread_mutex_unlock(&lock);
}

static void on_string(int rc, const char *value, const void *data) {
	printf("%s: %s %s\n", (const char *)data, rc == ZOK ? "ok" : zerror(rc), value ? value : "-");
	count(&done);
}

static void on_string_stat(int rc, const char *value, const struct Stat *s, const void *data) {
	printf("%s: %s ", (const char *)data, value ? value : "-");
	say_stat("stat", rc, s);
	count(&done);
}

static void on_stat(int rc, const struct Stat *s, const void *data) {
	say_stat(data, rc, s);
	count(&done);
}

static void on_data(int rc, const char *value, int len, const struct Stat *s, const void *data) {
	printf("%s: %d bytes %.*s, ", (const char *)data, len, len > 0 && len < 50 ? len : 0, value ? value : "");
	say_stat("stat", rc, s);
	count(&done);
}

static int by_name(const void *a, const void *b) {
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void on_strings(int rc, const struct String_vector *v, const void *data) {
	printf("%s: %s", (const char *)data, rc == ZOK ? "ok" : zerror(rc));
	if (rc == ZOK && v) {
		char **names = malloc((v->count + 1) * sizeof *names);
		memcpy(names, v->data, v->count * sizeof *names);
		qsort(names, v->count, sizeof *names, by_name);
		for (int i = 0; i < v->count; i++)
			printf(" %s", names[i]);
		free(names);
	}
	printf("\n");
	count(&done);
}

static void on_strings_stat(int rc, const struct String_vector *v, const struct Stat *s, const void *data) {
	say_stat("stat", rc, s);
	on_strings(rc, v, data);
}

static void on_acl(int rc, struct ACL_vector *acl, struct Stat *s, const void *data) {
	for (int i = 0; acl && i < acl->count; i++)
		printf("acl: %d %s %s\n", acl->data[i].perms, acl->data[i].id.scheme, acl->data[i].id.id);
	on_stat(rc, s, data);
}

static void on_void(int rc, const void *data) {
	say(data, rc);
	count(&done);
}

static int in_order = 1, next_number; /* of completions */

static void on_numbered(int rc, const char *value, const void *data) {
	(void)value;
	if (rc != ZOK || (int)(size_t)data != next_number++)
		in_order = 0;
	count(&done);
}

/* Opens a session, and counts its connections in counter. */
static zhandle_t *open_handle(const char *addr, const clientid_t *id, int *counter) {
	int before = *counter;
	zhandle_t *zh = zookeeper_init(addr, session_watcher, SESSION, id, counter, 0);
	if (zh == NULL) {
		printf("FAILED: no handle\n");
		exit(1);
	}
	await_count("connection", counter, before + 1);
	return zh;
}

static void nodes(zhandle_t *zh) {
	int before = done;
	zoo_acreate(zh, "/n", "data", 4, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, "create");
	zoo_acreate(zh, "/n", "data", 4, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, "again");
	zoo_acreate(zh, "/x/y", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, "no parent");
	zoo_acreate(zh, "/n/null", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, "null data");
	zoo_acreate(zh, "/n/e", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, on_string, "ephemeral");
	zoo_acreate(zh, "/n/e/c", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, "below it");
	zoo_acreate(zh, "/n/s-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, on_string, "sequence");
	zoo_acreate(zh, "/n/s-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, on_string, "ephemeral sequence");
	zoo_acreate2(zh, "/n/box", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_CONTAINER, on_string_stat, "container");
	zoo_acreate2(zh, "/n/two", "22", 2, &ZOO_OPEN_ACL_UNSAFE, 0, on_string_stat, "create2");
	zoo_acreate2(zh, "/n/two", "22", 2, &ZOO_OPEN_ACL_UNSAFE, 0, on_string_stat, "create2 again");
	zoo_acreate2_ttl(zh, "/n/ttl", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 3600000, on_string_stat, "ttl");
	zoo_aexists(zh, "/n", 0, on_stat, "exists");
	zoo_aexists(zh, "/missing", 0, on_stat, "exists missing");
	zoo_aget(zh, "/n", 0, on_data, "get");
	zoo_aget(zh, "/n/null", 0, on_data, "get null");
	zoo_aget(zh, "/missing", 0, on_data, "get missing");
	zoo_aset(zh, "/n", "12", 2, 0, on_stat, "set");
	zoo_aset(zh, "/n", "12", 2, 0, on_stat, "set bad version");
	zoo_aset(zh, "/n", NULL, -1, -1, on_stat, "set null");
	zoo_aget_children(zh, "/n", 0, on_strings, "children");
	zoo_aget_children2(zh, "/n", 0, on_strings_stat, "children2");
	zoo_aget_children(zh, "/missing", 0, on_strings, "children of none");
	zoo_async(zh, "/n", on_string, "sync");
	zoo_adelete(zh, "/n", -1, on_void, "delete not empty");
	zoo_adelete(zh, "/n/two", 7, on_void, "delete bad version");
	zoo_adelete(zh, "/n/two", 0, on_void, "delete");
	zoo_adelete(zh, "/n/two", -1, on_void, "delete missing");
	await_count("completions", &done, before + 29 - 1);
	before = done;
	for (int i = 0; i < MANY; i++) {
		char path[32];
		snprintf(path, sizeof path, "/n/m%d", i);
		zoo_acreate(zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, on_numbered, (void *)(size_t)i);
	}
	await_count("many", &done, before + MANY);
	printf("many in order: %d\n", in_order);
	for (int i = 0; i < MANY; i++) {
		char path[32];
		snprintf(path, sizeof path, "/n/m%d", i);
		zoo_delete(zh, path, 0);
	}
	struct Stat stat;
	say_stat("after many", zoo_exists(zh, "/n", 0, &stat), &stat);
}

static void acls(zhandle_t *zh, const char *addr) {
	int before = done;
	/* The library completes these in another thread than answers. */
	zoo_add_auth(zh, "digest", "user:secret", 11, on_void, "auth");
	await_count("auth", &done, before + 1);
	zoo_acreate(zh, "/acl", "", 0, &ZOO_CREATOR_ALL_ACL, 0, on_string, "creator");
	zoo_aget_acl(zh, "/acl", on_acl, "get acl");
	await_count("acls", &done, before + 3);
	zhandle_t *stranger = open_handle(addr, NULL, &opened);
	struct Stat stat;
	char buffer[64];
	int len = sizeof buffer;
	say("a stranger reads", zoo_get(stranger, "/acl", 0, buffer, &len, NULL));
	say("a stranger sets", zoo_set(stranger, "/acl", "", 0, -1));
	say("auth of nobody", zoo_create(stranger, "/acl2", "", 0, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0));
	say("read for all", zoo_set_acl(zh, "/acl", 0, &ZOO_READ_ACL_UNSAFE));
	say("bad version", zoo_set_acl(zh, "/acl", 0, &ZOO_READ_ACL_UNSAFE));
	len = sizeof buffer;
	say("a stranger reads now", zoo_get(stranger, "/acl", 0, buffer, &len, NULL));
	before = done;
	zoo_aget_acl(stranger, "/acl", on_acl, "its acl");
	await_count("its acl", &done, before + 1);
	zoo_add_auth(stranger, "digest", "super:test", 10, on_void, "super");
	await_count("super", &done, before + 2);
	say_stat("super sets", zoo_set2(stranger, "/acl", "x", 1, -1, &stat), &stat);
	say("super deletes", zoo_delete(stranger, "/acl", -1));
	say("reconfig", zoo_reconfig(stranger, NULL, "1", NULL, -1, buffer, &len, &stat));
	len = sizeof buffer;
	say("configuration", zoo_getconfig(stranger, 0, buffer, &len, &stat));
	zookeeper_close(stranger);
}

static void watches(zhandle_t *zh, zhandle_t *other) {
	struct Stat stat;
	char buffer[64];
	int len = sizeof buffer;
	struct String_vector names;
	say("watch missing", zoo_wexists(zh, "/w", watcher, "exists", &stat));
	zoo_create(other, "/w", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	await_events(1);
	say("watch data", zoo_wget(zh, "/w", watcher, "data", buffer, &len, &stat));
	say("watch it twice", zoo_wexists(zh, "/w", watcher, "exists", &stat));
	zoo_set(other, "/w", "1", 1, -1);
	await_events(2);
	say("watch children", zoo_wget_children(zh, "/w", watcher, "children", &names));
	zoo_create(other, "/w/c", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	await_events(1);
	say("watch to remove", zoo_wexists(zh, "/w", watcher, "gone", &stat));
	say("remove", zoo_remove_watches(zh, "/w", ZWATCHTYPE_DATA, watcher, "gone", 0)); /* no event */
	say("remove again", zoo_remove_watches(zh, "/w", ZWATCHTYPE_DATA, watcher, "gone", 0));
	say("remove all of none", zoo_remove_all_watches(zh, "/none", ZWATCHTYPE_ANY, 0));
	len = sizeof buffer;
	say("for deletion", zoo_wget(zh, "/w/c", watcher, "deletion", buffer, &len, &stat));
	say("for deletion", zoo_wget_children(zh, "/w/c", watcher, "deletion's children", &names));
	zoo_delete(other, "/w/c", -1);
	await_events(2);
	zoo_delete(other, "/w", -1);
}

static void print_results(const char *what, int rc, zoo_op_result_t *results, int n) {
	say(what, rc);
	for (int i = 0; i < n; i++)
		printf("  %d: %s %s\n", i, results[i].err == ZOK ? "ok" : zerror(results[i].err),
		       results[i].value && results[i].err == ZOK ? results[i].value : "-");
}

static void multis(zhandle_t *zh) {
	char path[64] = "", seq[64] = "";
	struct Stat stat;
	zoo_op_t good[5], bad[3];
	zoo_op_result_t results[5];
	memset(results, 0, sizeof results);
	zoo_create_op_init(&good[0], "/t", "1", 1, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path);
	zoo_create_op_init(&good[1], "/t/s-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, seq, sizeof seq);
	zoo_check_op_init(&good[2], "/t", 0);
	zoo_set_op_init(&good[3], "/t", "22", 2, 0, &stat);
	zoo_delete_op_init(&good[4], "/t/s-0000000000", 0);
	print_results("multi", zoo_multi(zh, 5, good, results), results, 5);
	say_stat("its stat", ZOK, &stat);
	zoo_create_op_init(&bad[0], "/t/n", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path);
	zoo_check_op_init(&bad[1], "/t", 0);
	zoo_delete_op_init(&bad[2], "/t", -1);
	memset(results, 0, sizeof results);
	print_results("failing", zoo_multi(zh, 3, bad, results), results, 3);
	say("nothing of it", zoo_exists(zh, "/t/n", 0, &stat));
	int before = done;
	zoo_amulti(zh, 1, bad, results, on_void, "asynchronous");
	await_count("multi", &done, before + 1);
	say("delete", zoo_delete(zh, "/t/n", -1));
	say("delete", zoo_delete(zh, "/t", -1));
}

/* Breaks the connection. The session and its watches must survive. */
static void reconnect(zhandle_t *zh, zhandle_t *other) {
	struct Stat stat;
	const clientid_t *id = zoo_client_id(zh);
	long long before = id->client_id;
	say("watch", zoo_wexists(zh, "/r", watcher, "reconnected", &stat));
	say("ephemeral", zoo_create(zh, "/eph", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0));
	int mine = connected, others = other_connected;
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof peer;
		/* The library does not expose its sockets. */
		if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.ss_family != AF_UNIX)
			shutdown(fd, SHUT_RDWR);
	}
	await_count("the new connection", &connected, mine + 1);
	await_count("the other's new connection", &other_connected, others + 1);
	printf("the same session: %d\n", zoo_client_id(zh)->client_id == before);
	say("create", zoo_create(other, "/r", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	await_events(1);
	say_stat("ephemeral", zoo_exists(other, "/eph", 0, &stat), &stat);
	say("delete", zoo_delete(other, "/r", -1));
}

/* Ends the session by a second handle. */
static void expire(zhandle_t *zh, zhandle_t *other, const char *addr) {
	clientid_t id = *zoo_client_id(zh);
	struct Stat stat;
	/* If the first handle reconnects before the second one closes the session, the close has no
	 * effect, so repeat it until the server does not know the session. */
	for (int over = 0; !over;) {
		int decided = 0; /* the second handle is connected, or the session has expired */
		second_expired = 0;
		zhandle_t *second = zookeeper_init(addr, second_watcher, SESSION, &id, &decided, 0);
		if (second == NULL) {
			printf("FAILED: no handle\n");
			exit(1);
		}
		await_count("take-over", &decided, 1);
		over = second_expired;
		zookeeper_close(second);
	}
	await_count("expiry", &expired, 1);
	say("expired", zoo_exists(zh, "/n", 0, &stat));
	say("its ephemeral", zoo_exists(other, "/eph", 0, &stat));
	zookeeper_close(zh);
}

int main(int argc, char **argv) {
	if (argc != 2)
		return 2;
	zoo_set_debug_level(0);
	zoo_deterministic_conn_order(1);
	zhandle_t *zh = open_handle(argv[1], NULL, &connected), *other = open_handle(argv[1], NULL, &other_connected);
	nodes(zh);
	acls(zh, argv[1]);
	watches(zh, other);
	multis(zh);
	reconnect(zh, other);
	expire(zh, other, argv[1]);
	struct String_vector names;
	if (zoo_get_children(other, "/n", 0, &names) == ZOK)
		on_strings(ZOK, &names, "left");
	zookeeper_close(other);
	printf("end of script\n");
	return 0;
}
