# SPDX-License-Identifier: Apache-2.0
"""A real etcd, kube-apiserver and kube-scheduler on the loopback. A node object with a Ready condition can be scheduled on, so no kubelet is
needed."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml
from certificates import Authority, openssl
from waiting import PATIENCE_S, until

ADMIN = "admin-token"
SCHEDULER = "scheduler-token"
# What kube-scheduler reads and writes, but for events.
WITHOUT_EVENTS = [
    {"apiGroups": [""], "verbs": ["*"], "resources": [f"{kind}s" for kind in ("node", "namespace", "service", "replicationcontroller")]},
    {"apiGroups": [""], "verbs": ["*"], "resources": ["pods", "pods/binding", "pods/status", "persistentvolumes", "persistentvolumeclaims"]},
    {"apiGroups": ["apps", "policy", "resource.k8s.io", "storage.k8s.io", "scheduling.k8s.io"], "verbs": ["*"], "resources": ["*"]},
]


class Missing(Exception):
    pass


def programs() -> Path:
    """The directory of the programs, from the cache."""
    done = subprocess.run([str(Path(__file__).with_name("programs"))], capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(done.stderr.strip())
    return Path(done.stdout.strip())


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


class Cluster:
    def __init__(self, directory: Path, fast: bool = False) -> None:
        """`fast`: for many thousand pods. The scheduler may not write events, memory is collected more rarely, and no request waits for others."""
        self.fast = fast
        self.programs = programs()
        self.directory = directory
        self.authority = Authority(directory / "pki")
        self.server_certificate = self.authority.issue("server", "/CN=kube-apiserver")
        # The key of service accounts is of RSA, or of a curve, as one file.
        self.accounts_key = directory / "pki/accounts.key"
        openssl("genrsa", "-out", str(self.accounts_key), "2048")
        (directory / "tokens").write_text(f'{ADMIN},admin,1,"system:masters"\n{SCHEDULER},scheduler,2\n')
        self.etcd_port, self.etcd_peer_port, self.port = free_port(), free_port(), free_port()
        self.context = ssl.create_default_context(cafile=str(self.authority.certificate))
        self.tokens: dict[str, str] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.etcd = f"http://127.0.0.1:{self.etcd_port}"
        try:
            self._begin()
        except BaseException:
            self.stop()
            raise

    def _begin(self) -> None:
        peer = f"http://127.0.0.1:{self.etcd_peer_port}"
        self._start(
            "etcd",
            f"--data-dir={self.directory}/etcd",
            f"--listen-client-urls={self.etcd}",
            f"--advertise-client-urls={self.etcd}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )
        self.start_apiserver()
        if self.fast:
            self._refuse_events()

    def _refuse_events(self) -> None:
        """Gives the scheduler a user that may do all it needs, but for events."""
        group = "rbac.authorization.k8s.io"
        role = {"apiGroup": group, "kind": "ClusterRole", "name": "without-events"}
        self.good("POST", f"/apis/{group}/v1/clusterroles", {"metadata": {"name": role["name"]}, "rules": WITHOUT_EVENTS})
        binding = {"metadata": {"name": role["name"]}, "roleRef": role, "subjects": [{"apiGroup": group, "kind": "User", "name": "scheduler"}]}
        self.good("POST", f"/apis/{group}/v1/clusterrolebindings", binding)

    def _start(self, name: str, *options: str) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            environment = os.environ | ({"GOGC": "400"} if self.fast else {})
            words = [str(self.programs / name), *options]
            self.processes[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def end(self, name: str) -> None:
        if process := self.processes.pop(name, None):
            process.kill()
            process.wait()

    def stop(self) -> None:
        for name in list(self.processes)[::-1]:
            self.end(name)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start_apiserver(self) -> None:
        certificate, key = self.server_certificate
        self._start(
            "kube-apiserver",
            f"--etcd-servers={self.etcd}",
            f"--token-auth-file={self.directory}/tokens",
            f"--client-ca-file={self.authority.certificate}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={self.accounts_key}",
            f"--service-account-signing-key-file={self.accounts_key}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            *(["--enable-priority-and-fairness=false"] if self.fast else []),
        )
        until(self._is_ready, "API server")

    def _is_ready(self) -> bool:
        assert self.processes["kube-apiserver"].poll() is None, (self.directory / "kube-apiserver.log").read_text()[-2000:]
        try:
            return self.request("GET", "/readyz", raw=True)[0] == 200
        except OSError:
            return False

    def start_scheduler(self, extender: str | None = None, fast: bool = False) -> None:
        """`fast`: as many requests as the scheduler can make, in place of its usual 50 a second."""
        user = {"clusters": [{"name": "c", "cluster": {"server": self.url, "certificate-authority": str(self.authority.certificate)}}]}
        user |= {"users": [{"name": "u", "user": {"token": SCHEDULER if self.fast else ADMIN}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}
        kubeconfig = self.directory / "scheduler.conf"
        kubeconfig.write_text(json.dumps(user))
        # The example of the manual, with this cluster's addresses.
        example = Path(__file__).resolve().parents[2] / "integrations/kubernetes/manifests/scheduler.yaml"
        config = yaml.safe_load(example.read_text())
        config["clientConnection"]["kubeconfig"] = str(kubeconfig)
        config["leaderElection"] = {"leaderElect": False}
        if fast:
            config["clientConnection"] |= {"qps": 2000, "burst": 4000}
            config |= {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
        if extender:
            config["extenders"][0]["urlPrefix"] = extender
        else:
            del config["extenders"]
        file = self.directory / "scheduler.yaml"
        file.write_text(json.dumps(config))
        self._start("kube-scheduler", f"--config={file}", "--secure-port=0", "--authentication-skip-lookup")

    # Requests.

    def request(self, method: str, path: str, body: Any = None, kind: str = "application/json", token: str = ADMIN, raw: bool = False) -> tuple[int, Any]:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=PATIENCE_S)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, text if raw else json.loads(text)
        finally:
            connection.close()

    def good(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        status, answer = self.request(method, path, body, kind)
        assert 200 <= status <= 299, answer
        return answer

    def apply(self, manifest: Path) -> None:
        places = {
            "Namespace": "/api/v1/namespaces",
            "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        }
        for document in yaml.safe_load_all(manifest.read_text()):
            self.good("POST", places[document["kind"]], document)

    def account_token(self, name: str) -> str:
        """A token of a service account in the namespace berth-kube."""
        path = "/api/v1/namespaces/berth-kube/serviceaccounts"
        self.good("POST", path, {"metadata": {"name": name}})
        return str(self.good("POST", f"{path}/{name}/token", {"spec": {}})["status"]["token"])

    def node_token(self, node: str) -> str:
        if node not in self.tokens:
            self.tokens[node] = self.account_token(node)
        return self.tokens[node]

    # Nodes and pods.

    def add_node(self, name: str, cpu: str = "8", extended: dict[str, str] | None = None) -> None:
        amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"} | (extended or {})
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        self.good("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "status": status})

    def node(self, name: str) -> dict[str, Any]:
        return dict(self.good("GET", f"/api/v1/nodes/{name}"))

    def amount(self, name: str, of: str = "be-cpu") -> str | None:
        amount = self.node(name)["status"]["allocatable"].get(f"berth.org/{of}")
        return None if amount is None else str(amount)

    def taint(self, name: str) -> str | None:
        own = [taint.get("value") for taint in self.node(name)["spec"].get("taints", []) if taint["key"] == "berth.org/no-schedule"]
        return own[0] if own else None

    def add_pod(self, name: str, requests: dict[str, str] | None = None, **spec: Any) -> None:
        resources = {"requests": requests or {}, "limits": requests or {}}
        body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "none", "resources": resources}], **spec}}
        self.good("POST", "/api/v1/namespaces/default/pods", body)

    def place(self, pod: str) -> str | None:
        found = self.good("GET", f"/api/v1/namespaces/default/pods/{pod}")["spec"].get("nodeName")
        return None if found is None else str(found)

    def is_refused(self, pod: str) -> bool:
        conditions = self.good("GET", f"/api/v1/namespaces/default/pods/{pod}")["status"].get("conditions", [])
        return any(it["type"] == "PodScheduled" and it["status"] == "False" for it in conditions)

    def places(self) -> Counter[str]:
        pods = self.good("GET", "/api/v1/namespaces/default/pods")["items"]
        return Counter(pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"])

    def clear(self) -> None:
        self.good("DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0")
        until(lambda: not self.good("GET", "/api/v1/namespaces/default/pods")["items"], "empty namespace")
        self.good("DELETE", "/api/v1/nodes")

    def many(self, work: Any, items: Any) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, items))
