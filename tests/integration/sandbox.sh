#!/bin/sh
# Runs a command in PID, mount and network namespaces of its own, with an empty /tmp and /dev/shm: what a test leaves behind is
# then easy to see, and nobody else's run disturbs it. Where namespaces are forbidden it says so and runs the command as it is.
#   sandbox.sh REPOSITORY COMMAND [ARGS...]
repository=$1
shift

if [ -z "$RINGMASTER_SANDBOX" ]; then
  user=
  [ "$(id -u)" = 0 ] || user=--map-root-user
  if unshare $user --pid --mount --net --fork --mount-proc true 2>/dev/null; then
    # --kill-child: when ctest ends us, all ends.
    RINGMASTER_SANDBOX=1 exec unshare $user --pid --mount --net --fork --mount-proc --kill-child \
      /bin/sh "$0" "$repository" "$@"
  fi
  echo 'SKIPPED: no namespaces on this machine; what is left behind is looked for by name only' >&2
  exec "$@"
fi

mount -t tmpfs -o mode=1777 tmpfs /dev/shm
case $repository/ in
  /tmp/*) ;;
  *) mount -t tmpfs -o mode=1777 tmpfs /tmp ;;
esac
/usr/bin/python3 -c '
import fcntl, socket, struct
s = socket.socket()
fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: IFF_UP | IFF_RUNNING
'
"$@" # not exec: as PID 1 this shell reaps orphans
exit $?
