"""A real kube-apiserver with its etcd on free ports of this machine: enough to create a CRD and to see what it refuses.

Run by hand, it prints a kubeconfig's path and stays until Ctrl-C:  python3 tests/crd/apiserver.py
"""

import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import http.client

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from ports import free_ports  # noqa: E402

TOKEN = "for-this-test-only"
PATIENCE = 90.0


class Missing(Exception):
    """A program that is needed isn't there; says which."""


def find(program):
    cache = pathlib.Path(os.environ.get("RINGMASTER_CACHE") or
                         pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ringmaster")
    for path in (cache / "cluster/bin" / program, shutil.which(program)):
        if path and os.access(path, os.X_OK):
            return str(path)
    raise Missing("%s is neither in %s nor on PATH: `tests/cluster/cluster up` builds it, Debian's etcd-server has etcd"
                  % (program, cache / "cluster/bin"))


class ApiServer:
    def __init__(self):
        programs = [find("etcd"), find("kube-apiserver")]
        if not shutil.which("openssl"):
            raise Missing("openssl is not on PATH")
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-apiserver-"))
        self.processes = []
        try:
            self.start(*programs)
        except BaseException:
            self.stop()
            raise

    def start(self, etcd, kube_apiserver):
        client, peer, self.port = free_ports(3)
        self.make_keys()
        etcd_url = "http://127.0.0.1:%d" % client
        peer_url = "http://127.0.0.1:%d" % peer
        self.spawn("etcd", [etcd, "--name", "e", "--data-dir", self.dir / "etcd", "--listen-client-urls", etcd_url,
                            "--advertise-client-urls", etcd_url, "--listen-peer-urls", peer_url,
                            "--initial-advertise-peer-urls", peer_url, "--initial-cluster", "e=" + peer_url,
                            "--unsafe-no-fsync"])
        self.spawn("kube-apiserver",
                   [kube_apiserver, "--etcd-servers", etcd_url, "--bind-address", "127.0.0.1", "--secure-port", self.port,
                    "--advertise-address", "127.0.0.1", "--tls-cert-file", self.dir / "tls.crt",
                    "--tls-private-key-file", self.dir / "tls.key", "--service-cluster-ip-range", "10.96.0.0/16",
                    "--service-account-issuer", "https://kubernetes.default.svc",
                    "--service-account-key-file", self.dir / "sa.pub",
                    "--service-account-signing-key-file", self.dir / "sa.key", "--token-auth-file", self.dir / "tokens.csv",
                    "--authorization-mode", "AlwaysAllow", "--endpoint-reconciler-type", "none"])
        self.wait_until("it is ready", lambda: self.request("GET", "/readyz")[0] == 200)

    def make_keys(self):
        def openssl(*words):
            subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2, "-subj",
                "/CN=ringmaster-test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.dir / "tls.key",
                "-out", self.dir / "tls.crt")
        openssl("genrsa", "-out", self.dir / "sa.key", 2048)
        openssl("rsa", "-in", self.dir / "sa.key", "-pubout", "-out", self.dir / "sa.pub")
        (self.dir / "tokens.csv").write_text('%s,test,test,"system:masters"\n' % TOKEN)

    def spawn(self, name, command):
        log = open(self.dir / (name + ".log"), "wb")
        self.processes.append((name, subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                                      start_new_session=True)))
        log.close()

    def wait_until(self, what, condition):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for name, process in self.processes:
                if process.poll() is not None:
                    tail = (self.dir / (name + ".log")).read_text(errors="replace")[-2000:]
                    raise RuntimeError("%s ended with %s:\n%s" % (name, process.returncode, tail))
            try:
                if condition():
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.1)
        raise RuntimeError("kube-apiserver: not within %.0f s: %s" % (PATIENCE, what))

    def connection(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE,
                                           context=ssl.create_default_context(cafile=self.dir / "tls.crt"))

    def request(self, method, path, body=None):
        connection = self.connection()
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] == b"{" else text.decode()
        finally:
            connection.close()

    def create_crd(self, crd):
        """Creates it and waits until its resource is served; the error is a sentence of the API server's."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        status, answer = self.request("POST", path, crd)
        assert status == 201, answer.get("message", answer)

        def established():
            conditions = self.request("GET", path + "/" + crd["metadata"]["name"])[1].get("status", {}).get("conditions") or []
            return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
        self.wait_until("the CRD is established", established)
        spec = crd["spec"]
        served = "/apis/%s/%s/namespaces/default/%s" % (spec["group"], spec["versions"][0]["name"], spec["names"]["plural"])
        self.wait_until("the CRD is served", lambda: self.request("GET", served)[0] == 200)

    def kubeconfig(self):
        path = self.dir / "kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:%d" % self.port,
                                                   "certificate-authority": str(self.dir / "tls.crt")}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        return path

    def stop(self):
        for _, process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for _, process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        server = ApiServer()
    except (Missing, RuntimeError) as error:
        sys.exit(str(error))
    try:
        print(server.kubeconfig(), flush=True)
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()
