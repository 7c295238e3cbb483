"""horovodrun's --config-file: options in YAML, in sections. Those of the command line win."""

from ringmaster.runner.errors import LaunchError

# {section: {key: option that it stands for}}. Of a switch, true is the option and false its --no-
# form.
_SECTIONS = {
    "params": {
        "fusion_threshold_mb": "--fusion-threshold-mb", "cycle_time_ms": "--cycle-time-ms",
        "cache_capacity": "--cache-capacity", "hierarchical_allreduce": "--hierarchical-allreduce",
        "hierarchical_allgather": "--hierarchical-allgather",
        "torus_allreduce": "--torus-allreduce"
    },
    "autotune": {
        "enabled": "--autotune", "log_file": "--autotune-log-file",
        "warmup_samples": "--autotune-warmup-samples",
        "steps_per_sample": "--autotune-steps-per-sample",
        "bayes_opt_max_samples": "--autotune-bayes-opt-max-samples",
        "gaussian_process_noise": "--autotune-gaussian-process-noise"
    },
    "timeline": {
        "filename": "--timeline-filename", "mark_cycles": "--timeline-mark-cycles"
    },
    "stall_check": {
        "enabled": "--stall-check", "warning_time_seconds": "--stall-check-warning-time-seconds",
        "shutdown_time_seconds": "--stall-check-shutdown-time-seconds"
    },
    "library_options": {
        "mpi_threads_disable": "--mpi-threads-disable", "num_nccl_streams": "--num-nccl-streams",
        "ccl_bgt_affinity": "--thread-affinity", "gloo_timeout_seconds": "--gloo-timeout-seconds"
    },
    "logging": {
        "level": "--log-level", "with_timestamp": "--log-with-timestamp"
    },
}
_CONTROLLERS = ("gloo", "mpi")


def words(path):
    """The words of a command line that say what the file says."""
    config = _load(path)
    found = []
    controller = config.pop("controller", None)
    if controller is not None:
        if str(controller).lower() not in _CONTROLLERS:
            raise LaunchError("--config-file %s: controller: is %r, allowed are %s" %
                              (path, controller, " and ".join(_CONTROLLERS)))
        found.append("--" + str(controller).lower())
    for section, values in config.items():
        if section not in _SECTIONS:
            raise _unknown(path, section, ["controller", *_SECTIONS])
        if values is None:
            continue
        if not isinstance(values, dict):
            raise LaunchError("--config-file %s: %s: is %r, must be a section of keys and values" %
                              (path, section, values))
        for key, value in values.items():
            if key not in _SECTIONS[section]:
                raise _unknown(path, "%s.%s" % (section, key), _SECTIONS[section])
            found += _words_of(_SECTIONS[section][key], value, "%s: %s.%s" % (path, section, key))
    return found


def _load(path):
    try:
        import yaml
    except ImportError:
        raise LaunchError("--config-file %s: reading YAML needs the package PyYAML: "
                          "pip install pyyaml" % path)
    try:
        with open(path) as file:
            config = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LaunchError("--config-file %s: can't be read: %s" % (path, error))
    if not isinstance(config or {}, dict):
        raise LaunchError("--config-file %s: must be sections of keys and values" % path)
    return dict(config or {})


def _words_of(option, value, where):
    if value is None:
        return []
    if isinstance(value, bool):
        return [option] if value else ["--no-" + option[2:]]
    if not isinstance(value, (int, float, str)):
        raise LaunchError("--config-file %s: is %r, must be one value" % (where, value))
    return ["%s=%s" % (option, value)]


def _unknown(path, key, allowed):
    return LaunchError("--config-file %s: there is no %s; allowed are %s" %
                       (path, key, ", ".join(allowed)))
