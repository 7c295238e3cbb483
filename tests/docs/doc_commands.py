"""The commands that the docs show, and which test runs each.

A command stands in a ```console block behind `$ `, or behind `# ` where it is for root; lines that it goes on over follow without a prompt. What it
prints stands below it. tests/integration/pages_test.py types the commands of the pages that are in TYPED and compares what they print; each other
command, there and on other pages, is in a row of ELSEWHERE: its page, how it begins, the test that runs it, and the words of it that stand in that
test. What nothing can run here is in NOT_RUN, with the reason.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPED = ["cli", "my-job-hangs", "my-job-is-slow", "where-are-my-logs", "debugging-a-rank", "notebooks", "tensorboard"]
LANGUAGES = {"console", "json", "mermaid", "promql", "python", "text", "yaml"}

E2E = "tests/e2e/install_test.py"
CLI = "tests/integration/commands_test.py"
TROUBLES = "tests/e2e/surroundings_test.py"
KUBECTL = "tests/integration/kubectl_test.py"
PAGE = "tests/e2e/operators_page_test.py"
# On the pages README.md and CONTRIBUTING.md of the top folder, and of docs/.
ELSEWHERE = [
    ("README", "pip install --no-index --find-links dist", "tests/integration/release_test.py", "wheel"),
    ("README", "ringmaster run -np 4 python3 train.py", "tests/integration/readme_test.py", "run -np train.py"),
    ("README", "ringmaster run examples/digits/job.yaml", "tests/integration/story_test.py", "examples/digits"),
    ("README", "ringmaster status digits", CLI, 'do("status"'),
    ("README", "ringmaster ui", "tests/integration/page_test.py", 'Reader("ui"'),
    ("README", "ringmaster top digits", CLI, 'do("top"'),
    ("README", "ringmaster why digits", CLI, 'do("why"'),
    ("README", "ringmaster kill digits-worker-2 --worker 0", "tests/integration/story_test.py", "kill --worker"),
    ("README", "ringmaster scale digits --replicas 6", "tests/integration/story_test.py", "scale --replicas"),
    ("api", "kubectl apply --server-side -f crds/", E2E, "apply --server-side -f"),
    ("api", "kubectl apply -f examples/digits/job.yaml", "tests/e2e/disruptions_test.py", "apply -f examples/digits"),
    ("api", "kubectl get hvdjob", "tests/e2e/operator_test.py", "get"),
    ("api", "kubectl apply -f job.yaml", "tests/e2e/operator_test.py", "kubectl apply -f"),
    ("api", "ringmaster run job.yaml", "tests/integration/bad_input_test.py", "run"),
    ("cli", "source <(ringmaster completion bash)", CLI, "completion bash"),
    ("cli", "source <(ringmaster completion zsh)", CLI, "completion zsh compinit"),
    ("cli", "ringmaster completion fish", CLI, "completion fish source"),
    ("cli", 'ln -s "$(command -v ringmaster)" ~/.local/bin/kubectl-ringmaster', CLI, "kubectl-ringmaster symlink_to"),
    ("cli", 'ln -s "$(command -v ringmaster)" ~/.local/bin/kubectl_complete-ringmaster', CLI, "kubectl_complete-ringmaster symlink_to"),
    ("cli", "kubectl ringmaster why digits -n team", CLI, "why plugin"),
    ("debugging-a-rank", "kubectl exec POD -c worker", "tests/e2e/disruptions_test.py", "exec -c"),
    ("debugging-a-rank", "kubectl logs POD", "tests/e2e/disruptions_test.py", "logs"),
    ("from-kubeflow-trainer", "ringmaster convert trainjob.yaml", CLI, "convert trainjob.yaml job.yaml"),
    ("from-kubeflow-trainer", "kubectl apply -f job.yaml", "operator/cli/convert_train_job_test.cc", "ParseHorovodJob"),
    ("from-mpi-operator", "ringmaster convert mpijob.yaml", "operator/cli/convert_test.cc", "ConvertJob --allow-run-as-root -bind-to"),
    ("from-mpi-operator", "kubectl apply -f job.yaml", "operator/cli/convert_test.cc", "ParseHorovodJob"),
    ("horovod", "horovodrun -np 4 python3 train.py --lr 0.1", "tests/integration/horovodrun_test.py", "-np train.py"),
    ("horovod", "horovodrun -np 4 --min-np 2 --max-np 8 --host-discovery-script", "tests/integration/horovodrun_test.py", "-np --min-np --host-discovery-script"),
    ("horovod", "mpirun -np 4 -H a:2,b:2 python3 train.py", "tests/integration/mpirun_test.py", "mpirun -np"),
    ("horovod", "RINGMASTER_BACKEND=mpi mpirun -np 4 -H a:2,b:2", "tests/integration/mpi_backend_test.py", "RINGMASTER_BACKEND mpirun"),
    ("horovodrun-ssh", "horovodrun -np 4 -H a:2,b:2", "tests/integration/hosts_test.py", "-H a:2,b:2 train.py"),
    ("horovodrun-ssh", "ringmaster run --hosts a:2,b:2 -- python3 train.py", "tests/integration/hosts_test.py", "a:2,b:2 train.py"),
    ("horovodrun-ssh", "ringmaster run --hosts a:2,b:2 job.yaml", "tests/integration/hosts_test.py", "a:2,b:2"),
    ("horovodrun-ssh", "horovodrun -np 2 --min-np 2 --max-np 8 --host-discovery-script", "tests/integration/hosts_test.py", "--min-np --host-discovery-script"),
    ("install", "pip install --no-index --find-links dist", "tests/integration/release_test.py", "wheel"),
    ("install", "ringmaster run -np 4 python3 train.py", "tests/integration/readme_test.py", "run -np train.py"),
    ("install", "helm install ringmaster charts/ringmaster", E2E, "--namespace --create-namespace"),
    ("install", "helm test ringmaster", E2E, "test --namespace"),
    ("install", "kubectl apply --server-side -k deploy/kustomize/base", E2E, "kustomize apply --server-side base"),
    ("install", "kubectl -n ringmaster-system get pods", E2E, "pods"),
    ("install", "kubectl apply -f examples/digits/job.yaml", "tests/e2e/disruptions_test.py", "apply -f examples/digits"),
    ("install", "kubectl scale hvdjob/digits --replicas=6", "tests/e2e/disruptions_test.py", "scale --replicas"),
    ("install", "helm upgrade ringmaster charts/ringmaster", E2E, "upgrade --namespace"),
    ("install", "kubectl delete hvdjob --all", E2E, "delete"),
    ("install", "helm uninstall ringmaster", E2E, "uninstall --namespace"),
    ("install", "tar -xzf ringmaster-", "tests/integration/release_test.py", "tarfile"),
    ("metrics", "ringmaster run --metrics-listen", "tests/integration/metrics_test.py", "--metrics-listen"),
    ("operations", "ringmaster why JOB", CLI, 'do("why"'),
    ("operations", "ringmaster get JOB", CLI, 'do("get"'),
    ("operations", "ringmaster get", CLI, 'do("get"'),
    ("operations", "ringmaster describe JOB", CLI, 'do("describe"'),
    ("operations", "ringmaster logs JOB", CLI, 'do("logs"'),
    ("operations", "kubectl get pods -l training.kubeflow.org/job-name=JOB", TROUBLES, "list training.kubeflow.org/job-name"),
    ("operations", "kubectl logs POD", "tests/e2e/disruptions_test.py", "logs"),
    ("operations", "kubectl proxy", PAGE, "kubectl proxy"),
    ("operations", "TOKEN=$(printf", PAGE, "TOKEN=$(printf"),
    ("operations", "curl -H", PAGE, "curl -H"),
    ("operations", "kubectl get hvdjob", "tests/e2e/operator_test.py", "get"),
    ("operations", "kubectl describe hvdjob JOB", "tests/e2e/looking_test.py", 'kubectl("describe", "hvdjob"'),
    ("operations", "helm upgrade ringmaster charts/ringmaster", PAGE, "helm upgrade ringmaster"),
    ("operations", "kubectl create clusterrolebinding", PAGE, "kubectl create clusterrolebinding"),
    ("operations", "kubectl -n ringmaster-system port-forward", PAGE, "kubectl -n ringmaster-system port-forward"),
    ("operations", "kubectl -n team create token NAME", PAGE, "kubectl -n team create token NAME"),
    ("python", "python3 -m ringmaster.timeline", "collectives/python/tests/timeline_test.py", "timeline.main t.json"),
    ("reliability", "for seed in $(seq 1 25); do tests/chaos/storm.py", "tests/chaos/CMakeLists.txt", "storm.py --seed --faults"),
    ("testing-cluster", "tests/cluster/cluster build", "tests/cluster/cluster_test.py", "build"),
    ("testing-cluster", 'eval "$(tests/cluster/cluster up', "tests/cluster/cluster_test.py", "up"),
    ("testing-cluster", "kubectl get nodes", "tests/cluster/cluster_test.py", "get nodes"),
    ("testing-cluster", "tests/cluster/cluster down", "tests/cluster/cluster_test.py", "down"),
    ("troubleshooting", "kubectl describe hvdjob JOB", "tests/e2e/looking_test.py", 'kubectl("describe", "hvdjob"'),
    ("troubleshooting", "kubectl get hvdjob", "tests/e2e/operator_test.py", "get"),
    ("troubleshooting", "kubectl -n ringmaster-system logs -l ringmaster.dev/leader=true", E2E, "logs ringmaster.dev/leader"),
    ("troubleshooting", "kubectl patch hvdjob JOB --type=merge", TROUBLES, "patch --type=merge suspend"),
    ("troubleshooting", "kubectl wait hvdjob/JOB --for=condition=Suspended", TROUBLES, "wait --for=condition=Suspended"),
    ("testing-cluster", "RINGMASTER_E2E_CLUSTER=", "tests/e2e/disruptions_test.py", "RINGMASTER_E2E_CLUSTER killed_worker"),
    ("gpu", "tests/gpu/run 3", "tests/gpu/runner_test.sh", "run 3"),
    ("kubernetes-client", "build/release/bin/job_controller_test", "operator/controllers/CMakeLists.txt", "job_controller_test"),
    ("kubernetes-client", "ctest --test-dir build/release -R conformance_real", "tests/conformance/CMakeLists.txt", "conformance_real_test"),
    ("CONTRIBUTING", "cmake --preset release", "hack/lib/common.sh", "cmake --preset --build"),
    ("CONTRIBUTING", "cmake --build build/release --target", "hack/lib/common.sh", "cmake --build --target"),
    ("CONTRIBUTING", "RINGMASTER_E2E_CLUSTER=", "tests/e2e/disruptions_test.py", "RINGMASTER_E2E_CLUSTER killed_worker"),
    ("CONTRIBUTING", "tests/cluster/cluster image", "hack/test", "tests/cluster/cluster image deploy/build-images --with buildah --build-dir --save"),
    ("CONTRIBUTING", 'eval "$(tests/cluster/cluster up', "tests/cluster/cluster_test.py", "up --nodes --gpus"),
    ("CONTRIBUTING", "tests/integration/sandbox.sh $PWD", "tests/integration/CMakeLists.txt", "sandbox.sh /usr/bin/python3 -m pytest"),
    ("install", "cmake --preset release", "hack/lib/common.sh", "cmake --preset --build"),
    ("install", "deploy/build-images", "tests/chart/images_test.py", "build-images --prefix"),
    ("kubernetes-client", "KUBE_CONFORMANCE_KUBECONFIG=", "tests/conformance/conformance_real_test.py", "KUBE_CONFORMANCE_KUBECONFIG"),
    ("install", "sed 's|ringmaster.dev/examples|", KUBECTL, "sed --validate=false --dry-run=server"),
    ("install", "kubectl get hvdjob -w", KUBECTL, "goes_on get hvdjob -w"),
    ("install", "kubectl get pods -A -l", KUBECTL, "get pods -A -l ringmaster.dev/job-uid"),
    ("operations", "export KUBECONFIG", KUBECTL, "export KUBECONFIG"),
    ("operations", "kubectl get hvdjob,pods,nodes", KUBECTL, "get hvdjob,pods,nodes"),
    ("operations", "kubectl logs -f POD", KUBECTL, "logs -f"),
    ("operations", "kubectl scale hvdjob JOB --replicas 3", KUBECTL, "scale --replicas"),
    ("operations", "kubectl apply --validate=false", KUBECTL, "apply --validate=false -f job.yaml"),
    ("operations", "kubectl delete hvdjob JOB", KUBECTL, "delete"),
    ("troubleshooting", "kubectl edit hvdjob JOB", KUBECTL, "edit KUBE_EDITOR"),
    ("reliability", "tests/chaos/table.py", "tests/chaos/table_test.py", "table figures"),
    ("README", "export PATH", "tests/integration/readme_test.py", "export PATH"),
]
NOT_RUN = [
    ("README", "hack/quickstart", "it installs packages; CI runs it before everything else"),
    ("README", "hack/test", "it is what runs the tests"),
    ("CONTRIBUTING", "hack/test", "it is what runs the tests"),
    ("CONTRIBUTING", "hack/cross arm64", "it makes a root directory of another processor's packages, which takes an hour"),
    ("CONTRIBUTING", "ctest --test-dir", "it is what runs the tests"),
    ("CONTRIBUTING", "build/release/bin/planner_test", "it is what ctest runs, with a filter"),
    ("CONTRIBUTING", "PYTHONPATH=build/release/python", "it is what ctest runs, with a filter"),
    ("install", "kind load docker-image", "there is no Docker in the tests, whose cluster imports the archives"),
    ("install", "export PATH", "sets a variable alone"),
    ("reliability", "hack/quickstart", "it installs packages; CI runs it before everything else"),
]


def blocks(text):
    """[(language, body)] of a page."""
    return [(match[2], match[3]) for match in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```", text, re.S | re.M)]


def goes_on(line, loops):
    """Whether a command goes on in the next line; `loops` that it has begun are not over."""
    code = re.sub(r"\s+#.*", "", line).rstrip()
    return loops > 0 or code.endswith(("\\", "|", "$("))


def commands(text):
    """[(command, lines that the page shows)] of a page, in order."""
    found = []
    for language, body in blocks(text):
        going, loops = False, 0
        for line in body.splitlines() if language == "console" else []:
            if going:
                found[-1] = (found[-1][0] + "\n" + line, [])
            elif line.startswith(("$ ", "# ")):
                loops = 0
                line = line[2:]
                found.append((line, []))
            else:
                found[-1][1].append(line)
                continue
            loops += len(re.findall(r"\bdo\b", line)) - len(re.findall(r"\bdone\b", line))
            going = goes_on(line, loops)
    return found


def page_file(page):
    return ROOT / (page + ".md") if page.isupper() else ROOT / "docs" / (page + ".md")


def rows_of(page, command, rows=None):
    """Those that a command of a page is in: where several fit, the longest."""
    fitting = [row for row in (ELSEWHERE + NOT_RUN if rows is None else rows) if row[0] == page and command.startswith(row[1])]
    return sorted(fitting, key=lambda row: -len(row[1]))[:1]
