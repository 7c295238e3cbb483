"""The few requests that the harness itself makes to kube-apiserver."""
import datetime
import http.client
import json
import ssl

from .common import Trouble


class Api:
    def __init__(self, pki, port):
        self.port = port
        self.context = ssl.create_default_context(cafile=pki.file("ca.crt"))
        self.context.load_cert_chain(pki.file("admin.crt"), pki.file("admin.key"))

    def request(self, method, path, body=None, content="application/json", timeout=20):
        """Returns (HTTP status, parsed answer); status 0 when there was no answer."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=timeout)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": content} if text else {})
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            return 0, {"message": str(error)}
        finally:
            connection.close()
        try:
            return answer.status, json.loads(data)
        except ValueError:
            return answer.status, {"message": data.decode(errors="replace")}

    def ready(self):
        return self.request("GET", "/readyz", timeout=5)[0] == 200

    def get(self, path):
        status, answer = self.request("GET", path)
        if status != 200:
            raise Trouble("GET %s: %s %s" % (path, status or "no answer:", answer.get("message", "")))
        return answer

    def create(self, path, thing):
        """Creates; what is there already is fine."""
        status, answer = self.request("POST", path, thing)
        if status not in (201, 409):
            raise Trouble("creating %s %s: %s %s" % (thing["kind"], thing["metadata"]["name"],
                                                    status or "no answer:", answer.get("message", "")))

    def nodes(self):
        """{name: Node}"""
        return {node["metadata"]["name"]: node for node in self.get("/api/v1/nodes?resourceVersion=0")["items"]}


    def lease_renewed(self, name):
        """When the node's kubelet last said that it lives (seconds since 1970, 0 for never)."""
        status, lease = self.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + name)
        return _seconds(lease["spec"].get("renewTime")) if status == 200 else 0


def _seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else 0


def heard_since(node, moment):
    """Has the kubelet reported the node's conditions since then? (They have whole seconds.)"""
    return any(c["type"] == "Ready" and _seconds(c.get("lastHeartbeatTime")) >= int(moment)
               for c in node.get("status", {}).get("conditions", []))


def is_ready(node):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", []))
