"""A kazoo client with TLS: ADDRESS CERT KEY CA, lines on standard output."""
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import make_acl, CREATOR_ALL_ACL

address, cert, key, ca, other = sys.argv[1:]
zk = KazooClient(hosts=address, use_ssl=True, certfile=cert or None, keyfile=key or None, ca=ca, verify_certs=True, timeout=20)
try:
    zk.start(timeout=float(60))
except Exception as error:  # kazoo has several exceptions for timeouts and refusals
    print("not connected", type(error).__name__)
    sys.exit(0)
zk.create("/kazoo", b"", acl=CREATOR_ALL_ACL)
acl = zk.get_acls("/kazoo")[0][0]
print("acl", acl.id.scheme, acl.id.id)
zk.set("/kazoo", b"x")
try:
    zk.get(other)
    print("read", other)
except NoAuthError:
    print("refused NOAUTH")
zk.create("/kazoo-for-go", b"", acl=[make_acl("x509", "CN=go", all=True)])
zk.stop()
zk.close()
print("done")
