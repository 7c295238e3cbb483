#include "operator/cli/convert_starter_options.h"

namespace ringmaster::cli::conversion {

std::optional<int> StarterOptions::WordsBehind(const std::string& name) const {
  if (flags.count(name) > 0) return 0;
  if (of_one_word.count(name) > 0) return 1;
  if (of_two_words.count(name) > 0) return 2;
  return std::nullopt;
}

const StarterOptions& OptionsOfMpi() {
  static const StarterOptions options = {
      .flags =
          {// horovodrun
           "v", "version", "h", "help", "cb", "check-build", "verbose", "disable-cache", "gloo",
           "mpi", "jsrun", "tcp", "hierarchical-allreduce", "no-hierarchical-allreduce",
           "hierarchical-allgather", "no-hierarchical-allgather", "torus-allreduce",
           "no-torus-allreduce", "autotune", "no-autotune", "timeline-mark-cycles",
           "no-timeline-mark-cycles", "stall-check", "no-stall-check", "mpi-threads-disable",
           "no-mpi-threads-disable", "log-with-timestamp", "log-without-timestamp",
           "log-hide-timestamp", "no-log-hide-timestamp", "prefix-timestamp",
           "prefix-output-with-timestamp",
           // Open MPI
           "V", "q", "quiet", "d", "allow-run-as-root", "bind-to-core", "bind-to-socket", "bycore",
           "bynode", "bysocket", "byslot", "continuous", "debug", "debug-devel", "debug-daemons",
           "debug-daemons-file", "disable-recovery", "display-allocation",
           "display-devel-allocation", "display-devel-map", "display-diffable-map", "display-map",
           "display-topo", "do-not-launch", "do-not-resolve", "enable-instant-on-support",
           "enable-recovery", "fwd-mpirun-port", "get-stack-traces", "index-argv-by-rank",
           "leave-session-attached", "merge-stderr-to-stdout", "nolocal", "nooversubscribe",
           "noprefix", "novm", "output-proctable", "oversubscribe", "pernode", "preload-binary",
           "report-bindings", "report-child-jobs-separately", "report-state-on-timeout",
           "set-cwd-to-session-dir", "show-progress", "tag-output", "timestamp-output", "tv",
           "use-hwthread-cpus", "use-regexp", "wait-for-server", "xml",
           // MPICH and Intel MPI
           "genvnone", "genvall", "envnone", "envall", "enable-x", "disable-x", "info",
           "print-all-exitcodes", "profile", "l", "prepend-rank", "disable-auto-cleanup",
           "disable-hostname-propagation", "pmi-port", "skip-launch-node", "rr"},
      .of_one_word =
          {
              // horovodrun
              "np", "num-proc", "p", "ssh-port", "i", "ssh-identity-file", "hosts", "hostfile",
              "host-discovery-script", "min-np", "min-num-proc", "max-np", "max-num-proc",
              "slots-per-host", "reset-limit", "elastic-timeout", "network-interface",
              "network-interfaces", "output-filename", "start-timeout", "config-file",
              "fusion-threshold-mb", "cycle-time-ms", "cache-capacity", "autotune-log-file",
              "autotune-warmup-samples", "autotune-steps-per-sample",
              "autotune-bayes-opt-max-samples", "autotune-gaussian-process-noise",
              "timeline-filename", "stall-check-warning-time-seconds",
              "stall-check-shutdown-time-seconds", "mpi-args", "binding-args", "num-nccl-streams",
              "thread-affinity", "gloo-timeout-seconds", "log-level",
              // Open MPI
              "n", "c", "N", "npernode", "npersocket", "x", "H", "host", "machinefile",
              "default-hostfile", "bind-to", "map-by", "mapby", "rank-by", "ppr", "wdir", "wd",
              "prefix", "path", "am", "tune", "app", "timeout", "rankfile", "rf", "cf", "cartofile",
              "cpu-list", "cpu-set", "slot-list", "cpus-per-proc", "cpus-per-rank", "debugger",
              "hnp", "launch-agent", "max-restarts", "max-vm-size", "ompi-server", "personality",
              "preload-files", "report-events", "report-pid", "report-uri",
              "server-wait-time", "stdin", "tmpdir", "xml-file", "xterm", "output", "display",
              "runtime-options", "forward-signals",
              // MPICH and Intel MPI
              "f", "ppn", "perhost", "genvlist", "envlist", "configfile", "launcher",
              "launcher-exec", "bootstrap", "bootstrap-exec", "rmk", "topolib", "membind", "demux",
              "iface", "prepend-pattern", "outfile-pattern", "errfile-pattern", "nameserver",
              "order-nodes", "localhost", "usize", "gpus-per-proc", "arch", "soft", "gtool",
              "gtoolfile", "hostos"},
      .of_two_words = {// horovodrun
                       "blacklist-cooldown-range",
                       // Open MPI
                       "mca", "gmca", "omca", "gomca", "pmca", "prtemca", "gprtemca", "pmixmca",
                       "gpmixmca",
                       // MPICH and Intel MPI
                       "genv", "env"}};
  return options;
}

const StarterOptions& OptionsOfTorchrun() {
  static const StarterOptions options = {
      .flags = {"h", "help", "standalone", "m", "module", "no-python", "run-path", "use-env",
                "virtual-local-rank"},
      .of_one_word = {"nnodes",
                      "nproc-per-node",
                      "rdzv-backend",
                      "rdzv-endpoint",
                      "rdzv-id",
                      "rdzv-conf",
                      "max-restarts",
                      "monitor-interval",
                      "start-method",
                      "event-log-handler",
                      "role",
                      "log-dir",
                      "r",
                      "redirects",
                      "t",
                      "tee",
                      "local-ranks-filter",
                      "node-rank",
                      "master-addr",
                      "master-port",
                      "local-addr",
                      "logs-specs",
                      "numa-binding",
                      "signals-to-handle",
                      "duplicate-stdout-filters",
                      "duplicate-stderr-filters"},
      .of_two_words = {}};
  return options;
}

}  // namespace ringmaster::cli::conversion
