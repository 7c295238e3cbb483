#include "operator/cli/command_options.h"

#include "common/option_bounds/option_bounds.h"

namespace ringmaster::cli {
namespace {

constexpr char kAbout[] = R"(Elastic training: run a HorovodJob, look at it, scale it, break it.

Try it on this machine, in two terminals:
  @ run examples/digits/job.yaml        # the same manifest as on a cluster
  @ kill digits-worker-2 --worker 0     # a worker dies; the others go on
  @ drain digits-worker-1               # a pod leaves by plan and is replaced
  @ scale digits --replicas 6           # two more join while it trains

Something is wrong:
  @ why digits                          # what holds it up, or why it failed
  @ top digits                          # which rank is slow
  @ logs digits --rank 2 --tail 50      # what one worker printed last
)";

constexpr char kFooter[] = R"(`@ COMMAND --help` shows options and an example.

Exit status: 0 done, 1 the job failed or is not there, 2 bad usage or manifest, 3 the machine lacks
something, 130 interrupted.)";

constexpr char kRunFooter[] = R"(Examples:
  @ run job.yaml                          one job
  @ run jobs/ --summary out.json          every *.yaml of a folder
  @ run -np 4 python3 train.py --lr 0.1   one pod of four workers, no manifest
  @ run -np 4 --standby 1 python3 train.py
  @ run --output-filename out job.yaml    each worker's output in out/rank.N/
  @ run -H a:2,b:2 python3 train.py       four workers on two machines, by ssh
  @ run -np 4 --min-np 2 --max-np 8 --host-discovery-script ./hosts.sh python3 train.py

Ctrl-C ends the job and cleans up; a second Ctrl-C ends at once.)";

// "@" stands for the name of the program as the user called it.
std::string Named(std::string text, const std::string& program) {
  for (size_t at = 0; (at = text.find('@', at)) != std::string::npos; at += program.size())
    text.replace(at, 1, program);
  return text;
}

class Builder {
 public:
  Builder(CLI::App* root, std::string program, Parsed* parsed)
      : root_(root), program_(std::move(program)), p_(parsed) {}

  void Root() {
    root_->description(Named(kAbout, program_));
    root_->footer(Named(kFooter, program_));
  }

  void Run() {
    CLI::App* app = Add("run", "run jobs on this machine and show how they go", kRunFooter);
    RunOptions& run = p_->run;
    app->add_option("what", p_->run_words, "manifests or folders; with -np: the command")
        ->type_name("JOB.yaml|DIR|COMMAND");
    Number(app, "--np", &run.np, "-np N: run COMMAND as N workers in one pod", 1);
    Number(app, "--min-np", &run.min_np, "go on while N workers live (default: 1)", 1);
    Number(app, "--max-np", &run.max_np, "never more than N workers (default: -np)", 1);
    Number(app, "--standby", &run.standby, "keep N processes ready to replace a dead worker", 0, 1);
    Optional(app, "--init-timeout", &run.init_timeout,
             "fail when not all workers have called init() by then (default: 600)", 1, 31'622'400)
        ->type_name("SECONDS");
    Optional(app, "--backoff-limit", &run.backoff_limit,
             "fail after more than N faults of workers (default: 6)", 0, 1'000'000);
    Optional(app, "--fusion-threshold", &run.fusion_threshold,
             "fuse small tensors into buffers of this size; 0: none (default: 64 MiB)", 0, 1 << 30)
        ->type_name("BYTES");
    CLI::Option* backend = app->add_option(
        "--backend", run.backend,
        "what carries the collectives; None: those of COMMAND itself, such as torchrun's "
        "scripts (default: Auto)");
    OneOf(backend, {"Auto", "Cpu", "Nccl", "None"})->type_name("Auto|Cpu|Nccl|None");
    app->add_option("-H,--hosts", p_->hosts,
                    "run on other machines, too, by ssh: each with its workers (with a manifest: "
                    "pods) at a time")
        ->type_name("HOST:SLOTS,...");
    app->add_option("--host-discovery-script", run.host_script,
                    "the same, asked of a program that prints HOST:SLOTS, every second: workers "
                    "come and go with the slots")
        ->type_name("FILE");
    Number(app, "--slots-per-host", &run.slots_per_host,
           "slots of a host of which the script says no number (default: 1)", 1);
    app->add_option("--carry", run.carried,
                    "a file that every worker finds as `file` in $RINGMASTER_MOUNT_CARRIED, on "
                    "whatever machine it runs")
        ->type_name("FILE");
    app->add_option("--volume", run.volumes,
                    "the folder that stands for a manifest's persistentVolumeClaim; all pods share "
                    "it, and it stays")
        ->type_name("CLAIM=DIR")
        ->allow_extra_args(false);
    Number(app, "--ssh-port", &run.ssh.port, "port of the hosts' sshd", 1, 65535)
        ->type_name("PORT");
    app->add_option("--ssh-identity-file", run.ssh.identity_file, "key for the hosts")
        ->type_name("FILE");
    app->add_option("--address", run.address,
                    "by which the hosts reach this machine (default: as they see it)")
        ->type_name("IP")
        ->check(CLI::ValidIPV4.description(""));
    Number(app, "--abandon-after", &p_->abandon_after,
           "a host ends its workers when this machine has not answered for so long (default: 3600)",
           1, 31'622'400)
        ->type_name("SECONDS");
    app->add_option("--run-dir", run.run_dir,
                    "where logs, sockets and kubeconfig go; its logs are kept")
        ->type_name("DIR");
    Number(app, "--port", &run.port, "port of the API server (default: a free one)", 0, 65535)
        ->type_name("PORT");
    app->add_option("--summary", run.summary, "write the summary as JSON")->type_name("FILE");
    app->add_option("--output-filename", run.output_dir,
                    "keep what each worker prints in DIR/rank.N/stdout and DIR/rank.N/stderr")
        ->type_name("DIR");
    app->add_option("--timeout", p_->timeout, "end the run as failed after so many seconds")
        ->type_name("SECONDS")
        ->check(option_bounds::Number(1, 1e9));
    app->add_flag("--plain", run.plain, "plain lines, also on a terminal");
    app->add_flag("--ui", run.ui, "serve a page that shows the run, and print its address");
    app->add_option("--metrics-listen", run.metrics_listen,
                    "serve the operator's metrics, and /targets: where those of the workers are")
        ->type_name("HOST:PORT");
    app->add_flag("--keep", run.keep, "keep the run directory with its logs");
  }

  void Get() {
    CLI::App* app = Add("get", "show jobs, their pods and workers",
                        "Examples:\n  @ get\n  @ get -A -w\n  @ get digits -o wide\n"
                        "  @ status digits -o json | jq .status.epoch")
                        ->alias("status");
    app->add_option("job", p_->get.job, "a job; none: all of the namespace")->type_name("JOB");
    OneOf(app->add_option("-o,--output", p_->format, "json, yaml, wide or table (default)"),
          {"json", "yaml", "wide", "table"})
        ->type_name("FORMAT");
    app->add_flag("-w,--watch", p_->get.watch, "go on, with a line for each change, until Ctrl-C");
    app->add_flag("-A,--all-namespaces", p_->get.all_namespaces, "the jobs of all namespaces");
    AddTarget(app, &p_->get.target);
  }

  void Describe() {
    CLI::App* app = Add("describe", "all that is known of a job: conditions, pods, events",
                        "Example:\n  @ describe digits");
    app->add_option("job", p_->describe.job, "the job")->required()->type_name("JOB");
    AddTarget(app, &p_->describe.target);
  }

  void Why() {
    CLI::App* app = Add("why", "what holds a job up, or why it failed", "Example:\n  @ why digits");
    app->add_option("job", p_->why.job, "the job")->required()->type_name("JOB");
    AddTarget(app, &p_->why.target);
  }

  void Top() {
    CLI::App* app =
        Add("top", "where the time of each rank goes, and which one the others wait for",
            "Example:\n  @ top digits");
    app->add_option("job", p_->top.job, "the job")->required()->type_name("JOB");
    app->add_option("--interval", p_->top_interval, "between two looks (default: 2)")
        ->type_name("SECONDS")
        ->check(option_bounds::Number(0.1, 3600));
    app->add_flag("--once", p_->top.once, "one look, as when the output is no terminal");
    AddTarget(app, &p_->top.target);
  }

  void Timeline() {
    CLI::App* app = Add("timeline", "what each rank did in the last seconds, for Perfetto",
                        "Examples:\n  @ timeline digits\n"
                        "  @ timeline digits --seconds 30 -o digits.json");
    TimelineOptions& timeline = p_->timeline;
    app->add_option("job", timeline.job, "the job")->required()->type_name("JOB");
    Number(app, "--seconds", &timeline.seconds, "how many of them (default: 10)", 1, 60);
    app->add_option("-o,--output", timeline.file,
                    "where to (default: JOB-timeline.json); -: standard output")
        ->type_name("FILE");
    AddTarget(app, &timeline.target);
  }

  void Ui() {
    CLI::App* app = Add("ui", "a page that shows jobs as they train, in a browser",
                        "Examples:\n  @ ui\n  @ ui --port 8080 -A");
    Number(app, "--port", &p_->ui.port, "on 127.0.0.1 (default: a free one)", 0, 65535)
        ->type_name("PORT");
    app->add_option("--interval", p_->ui_interval, "between two looks (default: 1)")
        ->type_name("SECONDS")
        ->check(option_bounds::Number(0.2, 3600));
    app->add_flag("-A,--all-namespaces", p_->ui.all_namespaces, "the jobs of all namespaces");
    AddTarget(app, &p_->ui.target);
  }

  void Bench() {
    CLI::App* app =
        Add("bench", "measure the collectives on this machine",
            "Examples:\n  @ bench -np 4\n  @ bench -np 4 --op allreduce --max-bytes 64M "
            "--csv out.csv\n  @ bench -np 2 --model-bytes 500M --step-ms 350    how far does my "
            "model scale?\n\n"
            "On a cluster `ringmaster-bench` is the command of a HorovodJob: examples/bench.");
    Number(app, "--np", &p_->bench.np, "-np N: with N workers (default: 2)", 2, 1024);
    bench::AddOptions(app, &p_->measured);
  }

  void Convert() {
    CLI::App* app =
        Add("convert", "make a HorovodJob of a Kubeflow job",
            "Example:\n  @ convert mpijob.yaml > job.yaml\n  @ convert trainjob.yaml > job.yaml");
    app->add_option("file", p_->convert.file,
                    "an MPIJob, PyTorchJob or TrainJob; -: standard input")
        ->required()
        ->type_name("JOB.yaml");
  }

  void Logs() {
    CLI::App* app = Add("logs", "what a pod, or every pod of a job, has printed",
                        "Examples:\n  @ logs digits --tail 20\n  @ logs -f digits\n"
                        "  @ logs digits --rank 2\n"
                        "  @ logs digits-worker-0 -c ringmaster-sidecar");
    LogsOptions& logs = p_->logs;
    app->add_option("name", logs.name, "a pod or a job")->required()->type_name("POD|JOB");
    app->add_option("-c,--container", logs.container, "default: the training container")
        ->type_name("NAME");
    app->add_flag("-f,--follow", logs.follow,
                  "go on until the job ends, with the pods that join it");
    Number(app, "--tail", &p_->logs_tail, "of each pod, only the last N lines", 0, 100'000'000);
    Number(app, "--rank", &p_->logs_rank,
           "only the worker whose lines have [N] in front (HOROVOD_RANK)", 0, 100'000'000);
    AddTarget(app, &logs.target);
  }

  void Scale() {
    CLI::App* app = Add("scale", "change how many pods a job has, while it trains",
                        "Example:\n  @ scale digits --replicas 6");
    app->add_option("job", p_->scale.job, "the job")->required()->type_name("JOB");
    Number(app, "--replicas", &p_->scale.replicas, "pods", 0, 100000)->required();
    AddTarget(app, &p_->scale.target);
  }

  void Drain() {
    CLI::App* app = Add("drain", "let a pod finish its step and leave; it is replaced",
                        "Example:\n  @ drain digits-worker-1");
    app->add_option("pod", p_->drain.pod, "the pod")->required()->type_name("POD");
    AddTarget(app, &p_->drain.target);
  }

  void Kill() {
    CLI::App* app = Add("kill", "kill a pod, or one of its workers, without a word",
                        "For trying out what a loss costs; pods of a run on this machine only. "
                        "Examples:\n"
                        "  @ kill digits-worker-2 --worker 0    SIGKILL to one training process\n"
                        "  @ kill digits-worker-2               all processes of the pod, as if "
                        "the machine were lost");
    app->add_option("pod", p_->kill.pod, "the pod")->required()->type_name("POD");
    Number(app, "--worker", &p_->kill_slot, "only the worker in this slot", 0, 1023)
        ->type_name("SLOT");
    AddTarget(app, &p_->kill.target);
  }

  void Delete() {
    CLI::App* app =
        Add("delete", "end a job and remove it with its pods", "Example:\n  @ delete digits");
    app->add_option("job", p_->del.job, "the job")->required()->type_name("JOB");
    AddTarget(app, &p_->del.target);
  }

  void Apply() {
    CLI::App* app = Add("apply", "make or change jobs on a cluster, and Secrets that they use",
                        "Examples:\n  @ apply job.yaml\n  @ apply -n team secret.yaml job.yaml\n"
                        "  make-manifest | @ apply -");
    app->add_option("files", p_->apply.files, "manifests; -: standard input")
        ->required()
        ->type_name("FILE");
    app->add_flag("--force-conflicts", p_->apply.force_conflicts,
                  "take over fields that kubectl or another program has set to other values");
    AddTarget(app, &p_->apply.target);
  }

  void Node() {
    CLI::App* app = Add("node", "run pods of a `run --hosts` that was started on another machine",
                        "`run --hosts` starts it by ssh. A signal ends it, and its pods with it.");
    NodeCommandOptions& node = p_->node;
    app->add_option("--kubeconfig", node.kubeconfig,
                    "of the run's API server; -: from standard input")
        ->required()
        ->type_name("FILE");
    app->add_option("--node-name", node.name, "what the run calls this machine")
        ->required()
        ->type_name("NAME");
    app->add_option("--address", node.address, "by which the other machines reach this one")
        ->required()
        ->type_name("IP")
        ->check(CLI::ValidIPV4.description(""));
    app->add_option("--work-dir", node.work_dir,
                    "where logs and sockets go (default: a new one in /tmp/ring-nodes-UID)")
        ->type_name("DIR");
    Number(app, "--pods", &node.pods, "pods at a time (default: 1000)", 1, 1'000'000);
    Number(app, "--abandon-after", &p_->abandon_after,
           "end the pods when the API server has not answered for so long (default: 3600)", 1,
           31'622'400)
        ->type_name("SECONDS");
    app->add_flag("--again", node.again,
                  "take over from a process of the name that has died: its pods have ended");
    app->add_flag("--detach", node.detach, "go on in the background, and return when it runs");
  }

  void Completion() {
    CLI::App* app = Add("completion", "a script that completes commands and options in a shell",
                        "Examples:\n"
                        "  source <(ringmaster completion bash)     in ~/.bashrc\n"
                        "  source <(ringmaster completion zsh)      in ~/.zshrc, after compinit\n"
                        "  ringmaster completion fish | source      in ~/.config/fish/config.fish");
    OneOf(app->add_option("shell", p_->shell, "bash, zsh or fish"), {"bash", "zsh", "fish"})
        ->required()
        ->type_name("SHELL");
  }

  void Version() { Add("version", "print the version", ""); }

 private:
  CLI::App* Add(const char* name, const char* about, const char* footer) {
    CLI::App* app = root_->add_subcommand(name, about);
    app->footer(Named(footer, program_));
    return app;
  }

  // Letters of any case.
  CLI::Option* OneOf(CLI::Option* option, const std::vector<std::string>& words) {
    p_->choices[option] = words;
    return option->transform(CLI::IsMember(words, CLI::ignore_case).description(""));
  }

  static CLI::Option* Number(CLI::App* app, const char* name, int* value, const char* about,
                             int least, int most = 1024) {
    return app->add_option(name, *value, about)
        ->type_name("N")
        ->check(option_bounds::WholeNumber(least, most));
  }

  static CLI::Option* Optional(CLI::App* app, const char* name, std::optional<int>* value,
                               const char* about, int least, int most) {
    return app->add_option(name, *value, about)
        ->type_name("N")
        ->check(option_bounds::WholeNumber(least, most));
  }

  static void AddTarget(CLI::App* app, Target* target) {
    app->add_option("-n,--namespace", target->ns, "namespace (default: the context's)")
        ->type_name("NS");
    app->add_option("--run-dir", target->run_dir,
                    "run directory of a `ringmaster run` on this machine")
        ->type_name("DIR");
    app->add_option("--context", target->context, "a context of the kubeconfig")
        ->type_name("CONTEXT");
    app->add_option("--kubeconfig", target->kubeconfig,
                    "a cluster's kubeconfig (default: $KUBECONFIG)")
        ->type_name("FILE");
  }

  CLI::App* const root_;
  const std::string program_;
  Parsed* const p_;
};

}  // namespace

bool TakesFile(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  for (const char* word : {"FILE", "DIR", ".yaml"})
    if (type.find(word) != std::string::npos) return true;
  return false;
}

void AddCommands(CLI::App* root, const std::string& program, Parsed* parsed) {
  Builder builder(root, program, parsed);
  builder.Root();
  builder.Run();
  builder.Get();
  builder.Describe();
  builder.Why();
  builder.Top();
  builder.Timeline();
  builder.Ui();
  builder.Bench();
  builder.Convert();
  builder.Logs();
  builder.Scale();
  builder.Drain();
  builder.Kill();
  builder.Delete();
  builder.Apply();
  builder.Node();
  builder.Completion();
  builder.Version();
}

}  // namespace ringmaster::cli
