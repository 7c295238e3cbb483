"""What judges a HorovodJob: the parser (command line and operator), the embedded API server and a real one."""

import http.client
import json
import os
import re
import ssl
import subprocess
import tempfile

import pytest

import apiserver
import schema

SKIPPED = 77  # as ctest is told
JOBS = "/apis/ringmaster.dev/v1alpha1/namespaces/default/horovodjobs"


class Refusal:
    """Why a manifest isn't taken: [(path of the field, words)]."""

    def __init__(self, errors, text):
        self.errors, self.text = errors, text

    def paths(self):
        return [path for path, _ in self.errors]

    def words_at(self, path):
        return [words for at, words in self.errors if at == path]

    def __repr__(self):
        return self.text[:600]


class Http:
    """POST, PUT and PATCH with dryRun over one connection that is kept."""

    def __init__(self, name, connect, token):
        self.name, self.connect, self.token, self.connection = name, connect, token, None

    def request(self, method, path, body=None, kind="application/json"):
        for attempt in (1, 2):
            fresh = self.connection is None
            if fresh:
                self.connection = self.connect()
            try:
                self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                        {"Authorization": "Bearer " + self.token, "Content-Type": kind})
                answer = self.connection.getresponse()
                return answer.status, json.loads(answer.read())
            except (http.client.HTTPException, OSError):
                self.connection.close()
                self.connection = None
                if fresh or attempt == 2:  # an old connection may have been closed by the server
                    raise

    def create(self, job, dry_run=True):
        """(the object as the server would store it, None) or (None, Refusal)"""
        return self.judged(*self.request("POST", JOBS + "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else ""), job))

    def patch(self, name, patch, subresource=""):
        return self.judged(*self.request("PATCH", "%s/%s%s?fieldValidation=Strict&dryRun=All" % (JOBS, name, subresource), patch,
                                         "application/merge-patch+json"))

    def delete(self, name):
        self.request("DELETE", JOBS + "/" + name)

    @staticmethod
    def judged(status, answer):
        if status < 300:
            return answer, None
        assert status in (400, 422), (status, answer)
        text = answer["message"]
        errors = [(cause["field"], cause["message"]) for cause in answer.get("details", {}).get("causes", []) if "field" in cause]
        errors += [(path, "unknown field") for path in re.findall(r'unknown field "([^"]+)"', text)]
        return None, Refusal(errors, text)


class Parser:
    name = "parser"

    def __init__(self, helper):
        self.helper = helper

    def create(self, job):
        self.helper.stdin.write(json.dumps(job) + "\n")
        self.helper.stdin.flush()
        line = self.helper.stdout.readline()
        assert line, "crd_server died of this manifest: status %s" % self.helper.wait(10)
        errors = [(error["path"], error["message"]) for error in json.loads(line)]
        return (None, Refusal(errors, "\n".join("%s: %s" % error for error in errors))) if errors else (job, None)


class Helper:
    """The test program that serves the embedded API server and answers for the parser."""

    def __init__(self):
        program = os.environ.get("RINGMASTER_CRD_SERVER")
        assert program, "RINGMASTER_CRD_SERVER has to name the built crd_server (ctest sets it)"
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        place = json.loads(self.process.stdout.readline())
        with tempfile.NamedTemporaryFile("w", suffix=".crt") as ca:
            ca.write(place["ca"])
            ca.flush()
            context = ssl.create_default_context(cafile=ca.name)
        self.parser = Parser(self.process)
        self.embedded = Http("embedded", lambda: http.client.HTTPSConnection("127.0.0.1", place["port"], timeout=60,
                                                                             context=context), place["token"])

    def stop(self):
        try:
            self.process.stdin.close()
            self.process.wait(30)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def start_real():
    """A real API server with the CRD. Where none can run, the tests end here: skipped, or failed with REQUIRE_CLUSTER=1."""
    try:
        server = apiserver.ApiServer()
    except apiserver.Missing as missing:
        required = os.environ.get("REQUIRE_CLUSTER") == "1"
        pytest.exit("%s: no real API server: %s" % ("FAILED (REQUIRE_CLUSTER=1)" if required else "SKIPPED", missing),
                    returncode=1 if required else SKIPPED)
    try:
        server.create_crd(schema.CRD)
    except BaseException:
        server.stop()
        raise
    return server
