"""Certificates and kubeconfigs of a cluster, made with openssl and gone with it."""
import base64
import os

from . import layout
from .common import run

DAYS = "365"


class Pki:
    def __init__(self, where):
        self.dir = where.path("pki")
        self.layout = where
        os.makedirs(self.dir, mode=0o700, exist_ok=True)

    def file(self, name):
        return os.path.join(self.dir, name)

    def _key(self, name):
        run("openssl", "ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", self.file(name + ".key"))

    def authority(self, name):
        self._key(name)
        run("openssl", "req", "-x509", "-new", "-key", self.file(name + ".key"), "-subj", "/CN=" + name, "-days", DAYS,
            "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature", "-out", self.file(name + ".crt"))

    def certificate(self, name, subject, authority="ca", names=()):
        self._key(name)
        request = run("openssl", "req", "-new", "-key", self.file(name + ".key"), "-subj", subject)
        extensions = ["basicConstraints=CA:FALSE", "keyUsage=critical,digitalSignature,keyEncipherment",
                      "extendedKeyUsage=clientAuth,serverAuth"]
        if names:
            extensions.append("subjectAltName=" + ",".join(names))
        layout.write(self.file(name + ".ext"), "\n".join(extensions) + "\n")
        run("openssl", "x509", "-req", "-CA", self.file(authority + ".crt"), "-CAkey", self.file(authority + ".key"),
            "-CAcreateserial", "-days", DAYS, "-extfile", self.file(name + ".ext"), "-out", self.file(name + ".crt"),
            stdin=request)
        os.unlink(self.file(name + ".ext"))

    def token_key(self):
        """The key that signs the tokens of service accounts, a new one each time."""
        run("openssl", "genrsa", "-out", self.file("sa.key"), "2048")
        run("openssl", "rsa", "-in", self.file("sa.key"), "-pubout", "-out", self.file("sa.pub"))

    def kubeconfig(self, name, server, path=None):
        """A kubeconfig for the holder of certificate `name`, with everything inside the file."""

        def embedded(file):
            with open(self.file(file), "rb") as data:
                return base64.b64encode(data.read()).decode()

        path = path or self.file(name + ".kubeconfig")
        layout.write(path, "", mode=0o600)
        layout.write_json(path, {
            "apiVersion": "v1", "kind": "Config", "current-context": "ringmaster-test",
            "clusters": [{"name": "ringmaster-test", "cluster": {
                "server": server, "certificate-authority-data": embedded("ca.crt")}}],
            "users": [{"name": name, "user": {
                "client-certificate-data": embedded(name + ".crt"), "client-key-data": embedded(name + ".key")}}],
            "contexts": [{"name": "ringmaster-test", "context": {"cluster": "ringmaster-test", "user": name}}]})
        return path

    def create(self, nodes):
        """Everything for a control plane and the given {node: address}."""
        inside = "https://%s:%d" % (layout.CONTROL_ADDRESS, layout.API_PORT)
        self.authority("ca")
        self.authority("front-proxy-ca")
        self.token_key()
        service = "kubernetes.default.svc." + layout.DOMAIN
        labels = service.split(".")
        self.certificate("apiserver", "/CN=kube-apiserver", names=(
            ["DNS:localhost"] + ["DNS:" + ".".join(labels[:n]) for n in (1, 2, 3, len(labels))] +
            ["IP:" + ip for ip in ("127.0.0.1", layout.CONTROL_ADDRESS, layout.API_SERVICE)]))
        self.certificate("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
        self.certificate("front-proxy-client", "/CN=front-proxy-client", authority="front-proxy-ca")
        for name, subject in (("admin", "/O=system:masters/CN=admin"),
                              ("controller-manager", "/CN=system:kube-controller-manager"),
                              ("scheduler", "/CN=system:kube-scheduler"),
                              ("proxy", "/CN=system:kube-proxy")):
            self.certificate(name, subject)
            self.kubeconfig(name, inside)
        for node, address in nodes.items():
            self.certificate("node-" + node, "/O=system:nodes/CN=system:node:" + node, names=("DNS:" + node, "IP:" + address))
            self.kubeconfig("node-" + node, inside)
