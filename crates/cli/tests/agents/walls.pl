# What a hostile agent asks of the kernel: each line is an attempt and how it ended, by the number of the error. Numbers
# of calls are those of x86-64. No module is used: an image has none.
my $buffer = "\0" x 256;

sub called {
    my ($name, $number, @arguments) = @_;
    $! = 0;
    my $result = syscall($number, @arguments);
    my $error = $! + 0;
    print "$name: ", ($result == -1 ? $error : "done"), "\n";
}

sub opened {
    my ($path, $mode) = @_;
    my $is_open = sysopen(my $file, $path, $mode);
    print(($mode ? "write" : "read"), " $path: ", ($is_open ? "done" : $! + 0), "\n");
}

called("mount", 165, my $none = "none", my $at = "/workspace", my $kind = "tmpfs", 0, 0);
called("remount the root writable", 165, $none, my $root = "/", $none, 32, 0);
called("unmount the workspace", 166, my $workspace = "/workspace", 2);
called("pivot_root", 155, $root, $root);
called("chroot", 161, $root);
called("mknod of a disk", 133, my $disk = "/workspace/disk", 0060644, 0x800);
called("sethostname", 170, $none, 4);
called("settimeofday", 164, $buffer, 0);
called("swapon", 167, $none, 0);
called("reboot", 169, 0, 0, 0);
called("init_module", 175, $buffer, 256, $buffer);
called("kexec_load", 246, 0, 0, 0, 0);
called("iopl", 172, 3);
called("acct", 163, $none);
called("quotactl", 179, 0, $none, 0, $buffer);
called("open_by_handle_at", 304, 3, $buffer, 0);
called("bpf", 321, 0, $buffer, 128);
called("perf_event_open", 298, $buffer, 0, -1, -1, 0);
called("userfaultfd", 323, 0);
called("io_uring_setup", 425, 4, $buffer);
called("add_key", 248, my $type = "user", $none, $buffer, 4, -2);
called("keyctl", 250, 0, -3, 0);
called("ptrace of the first process", 101, 0x4206, 1, 0, 0);
called("process_vm_readv of the first process", 310, 1, $buffer, 1, $buffer, 1, 0);
called("packet socket", 41, 17, 3, 768);
called("raw socket", 41, 2, 3, 1);
called("vsock", 41, 40, 1, 0);
called("kernel crypto socket", 41, 38, 5, 0);
called("bluetooth socket", 41, 31, 3, 1);
called("audit socket", 41, 16, 3, 9);
called("namespace of mounts", 272, 0x20000);
called("priority above that of others", 141, 0, 0, -20);

opened($_, 0) for (
    "/etc/shadow", "/root/.bashrc", "/home", "/boot", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/fuse", "/dev/net/tun",
    "/proc/kcore", "/sys/firmware", "/sys/kernel/debug",
    "/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket", "/lib/modules", "/var/lib/dpkg/status",
);
opened($_, 1) for (
    "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/suid_dumpable",
);
opened($_, 65) for (
    "/x", "/etc/x", "/usr/bin/x", "/usr/lib/x", "/sys/fs/cgroup/x", "/sys/x", "/dev/x", "/proc/x", "/run/x", "/var/x",
);
