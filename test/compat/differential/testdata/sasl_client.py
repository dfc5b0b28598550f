"""Authenticates by kazoo as a user, and prints the result."""

import sys

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import ACL, Id, Permissions

hosts, user, password = sys.argv[1:]
client = KazooClient(
    hosts=hosts,
    sasl_options={"mechanism": "DIGEST-MD5", "username": user, "password": password},
)
try:
    # start or the first request raises the refusal.
    client.start(timeout=30)
    client.create("/kazoo", b"x", acl=[ACL(Permissions.ALL, Id("auth", ""))], ephemeral=True)
except (AuthFailedError, KazooTimeoutError):
    print("refused")
    sys.exit(0)
acls, _ = client.get_acls("/kazoo")
print([(a.perms, a.id.scheme, a.id.id) for a in acls], client.get("/kazoo")[0].decode())
client.stop()
client.close()
