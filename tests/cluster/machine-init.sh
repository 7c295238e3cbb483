#!/bin/bash
# PID 1 of a machine of tests/cluster: prepares its own mounts, then collects orphans until it is killed.
# usage (by rmcluster/machine.py, in fresh namespaces): machine-init.sh NAME STATE_DIRECTORY
set -euo pipefail
name=$1 state=$2

hostname "$name"
mount --make-rprivate /

# A fresh /sys, since the old one shows the network devices of the system; the cgroups move over.
mkdir -p "$state/cgroup"
mount --rbind /sys/fs/cgroup "$state/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$state/cgroup" /sys/fs/cgroup
umount -l "$state/cgroup"

# The kubelet sets these for the whole kernel when they differ from what it wants. Here it finds what it wants.
mkdir -p "$state/run/sysctl"
pretend() {
  [ -e "/proc/sys/$1" ] || return 0
  echo "$2" >"$state/run/sysctl/${1//\//.}"
  mount --bind "$state/run/sysctl/${1//\//.}" "/proc/sys/$1"
}
pretend vm/overcommit_memory 1
pretend vm/panic_on_oom 0
pretend kernel/panic 10
pretend kernel/panic_on_oops 1
pretend kernel/keys/root_maxkeys 1000000
pretend kernel/keys/root_maxbytes 25000000
# All machines share one kernel. One that was started again shows its kubelet a boot id of its own.
[ ! -e "$state/boot-id" ] || pretend kernel/random/boot_id "$(<"$state/boot-id")"

# Its own /var and /run, so that no two kubelets meet and none leaves anything behind.
chmod 1777 "$state/var/tmp" "$state/run/lock"
mount --bind "$state/var" /var
mount --bind "$state/run" /run
mount --make-rshared /

: >"$state/ready"
while :; do
  sleep 3600 &
  wait $! || true
done
