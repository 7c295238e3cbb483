# Shared by hack/release and hack/wheel: the programs with the shared libraries that they need, and a root directory with little in it to try them.
# Source it after common.sh; it runs nothing by itself.

portable_glibc=2.28 # what is loaded in images of others needs no newer one (Debian 10, Ubuntu 20.04, UBI 8)
private=lib/ringmaster/private # the shared libraries that are brought along

# Shared libraries that programs need, glibc's left out: every machine has its own.
needed_libraries() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | grep -vE '/lib(c|m|pthread|dl|rt|resolv|ringmaster)\.so\.[0-9]$'
}

# What `ringmaster run` starts on one machine, in TREE: bin/, lib/libringmaster.so, the Python packages, shared libraries, licences. The bill of
# materials goes to BILL; it names Debian's files, whose RPATH is changed here.
bundle_programs() { # bundle_programs BUILD-DIR TREE VERSION BILL [LIBRARY-LEFT-OUT]
  local build_dir=$1 tree=$2 version=$3 bill=$4 left_out=${5:-none} component library program
  command -v patchelf >/dev/null || lacks "There is no patchelf. Type:  apt-get install -y patchelf"
  for component in cli programs collectives python; do
    cmake --install "$build_dir" --prefix "$tree" --component $component --strip >>"$tree.log" 2>&1 ||
      { tail -n 20 "$tree.log" >&2; echo "cmake --install $build_dir failed: is the build complete?" >&2; return 1; }
  done
  rm "$tree/bin/ringmaster-operator" # runs on a cluster, from its image
  mkdir -p "$tree/$private"
  needed_libraries "$tree"/bin/ringmaster "$tree"/bin/ringmaster-sidecar | { grep -v "/$left_out" || true; } >"$tree.libraries"
  while read -r library; do cp -L "$library" "$tree/$private/"; done <"$tree.libraries"
  # RPATH, not RUNPATH: LD_LIBRARY_PATH, as environments of conda set it, must not bring other libraries of these names.
  for library in "$tree/$private"/*; do patchelf --force-rpath --set-rpath '$ORIGIN' "$library" || return 1; done
  for program in ringmaster ringmaster-sidecar; do
    patchelf --force-rpath --set-rpath "\$ORIGIN/../$private" "$tree/bin/$program" || return 1
  done
  patchelf --force-rpath --set-rpath "\$ORIGIN/lib:\$ORIGIN/../lib:\$ORIGIN/../$private" "$tree/bin/ringmaster-bench" || return 1
  cp LICENSE "$tree/"
  /usr/bin/python3 hack/lib/bill-of-materials --version "$version" --shared "$tree.libraries" --licences "$tree/licences" >"$bill" ||
    { echo 'the bill of materials could not be made' >&2; return 1; }
}

# The newest version of glibc that any of the files asks for: 2.36
newest_glibc() {
  objdump -T "$@" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | sed 's/GLIBC_//'
}

# Packages with all that they need.
with_dependencies() {
  apt-cache depends --installed --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$@" |
    grep '^[a-z0-9]' | sort -u
}

# A root directory that holds the files of some of this machine's packages and nothing else.
make_root() { # make_root ROOT PACKAGE...
  local root=$1 folder
  shift
  mkdir -p "$root"/{proc,dev,tmp,etc,opt} "$root"/usr/{bin,sbin,lib,lib64}
  for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root/$folder"; done # as Debian has it
  dpkg -L "$@" | sort -u | grep -vE '^/usr/share/(doc|man|lintian|locale)/' | while read -r file; do
    if [ -f "$file" ] || [ -h "$file" ]; then echo ".$file"; fi
  done >"$root.files"
  tar -C / -cf - --no-recursion -T "$root.files" | tar -C "$root" -xf -
  echo 'root:x:0:0:root:/:/none' >"$root/etc/passwd"
}

# Runs a command in such a root, with an empty environment and a network of its own that has the loopback interface alone.
in_root() { # in_root ROOT COMMAND...
  local user=
  [ "$(id -u)" = 0 ] || user=--map-root-user
  unshare $user --mount --pid --net --fork --mount-proc --kill-child sh -c '
    mount -t proc proc "$1/proc" && for device in null zero urandom random; do touch "$1/dev/$device" && mount --bind /dev/$device "$1/dev/$device"; done
    /usr/bin/python3 -c "import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack(\"16sh14x\", b\"lo\", 0x41))"
    root=$1; shift; exec env -i HOME=/ PATH=/opt/python/bin:/usr/bin /usr/sbin/chroot "$root" "$@"' sh "$@"
}
