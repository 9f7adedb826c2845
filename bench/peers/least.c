/*
 * The least walls: what a confined command costs before anybody judges it, records it, bounds it or reads
 * what it writes. `least COUNT` runs `/bin/true` so often and prints the seconds that one of them took.
 *
 * As in Capsule, namespaces of users, network and host names are made once, and those of processes, mounts
 * and IPC for each command; its first process stands by with its own `/proc` and `/tmp` behind Landlock and
 * a filter while the command before still runs. Unlike there, nothing hides the machine's files, no limit is
 * set, no output is collected, and hardly anything is checked. It is a measure, not a sandbox.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Into how many runs the numbers of system calls fall, so that the filter is as long as that of a command. */
enum { RUNS = 36 };

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

static void check(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        _exit(1);
    }
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    check(file && fputs(text, file) >= 0 && fclose(file) == 0, path);
}

static void raise_landlock(void)
{
    static const char *open_to_all[] = {"/usr", "/etc", "/tmp", "/proc", "/dev"};
    const __u64 reading =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    struct landlock_ruleset_attr handled = {.handled_access_fs = (1 << 13) - 1};
    int rules = syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    check(rules >= 0, "landlock");
    for (size_t i = 0; i < sizeof open_to_all / sizeof *open_to_all; i++) {
        struct landlock_path_beneath_attr rule = {.allowed_access = reading};
        rule.parent_fd = open(open_to_all[i], O_PATH | O_CLOEXEC);
        check(!syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0), "rule");
        close(rule.parent_fd);
    }
    check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "privileges");
    check(!syscall(SYS_landlock_restrict_self, rules, 0), "landlock");
    close(rules);
}

/* A tree of comparisons that finds the run of a number among those from `low` to before `high`. */
static unsigned short grow(struct sock_filter *tree, int low, int high)
{
    const int middle = (low + high) / 2;
    if (high - low == 1) {
        /* Numbers that no kernel has yet: it is their count that matters. */
        const unsigned answer = low % 2 ? SECCOMP_RET_ERRNO | 1 : SECCOMP_RET_ALLOW;
        tree[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
        return 1;
    }
    const unsigned short left = grow(tree + 1, low, middle);
    const unsigned short right = grow(tree + 1 + left, middle, high);
    tree[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 900 + middle, left, 0);
    return 1 + left + right;
}

static void attach_filter(void)
{
    struct sock_filter filter[2 * RUNS + 4] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    struct sock_fprog program = {.len = 4, .filter = filter};
    program.len += grow(filter + program.len, 0, RUNS);
    check(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "filter");
}

/* The whole life of a first process: it stands by, runs one command, and says how that went. */
static void live(int line)
{
    static char *const words[] = {"true", NULL};
    static char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    const unsigned long flags = MS_NOSUID | MS_NODEV;
    int status = 0;
    char word;
    check(!prctl(PR_SET_PDEATHSIG, SIGKILL), "parent");
    check(!mount("proc", "/proc", "proc", flags | MS_RDONLY | MS_NOEXEC, "subset=pid"), "/proc");
    check(!mount("tmp", "/tmp", "tmpfs", flags, "size=250000k"), "/tmp");
    raise_landlock();
    attach_filter();
    if (read(line, &word, 1) != 1)
        _exit(0);
    pid_t program = vfork();
    if (program == 0) {
        execve("/bin/true", words, environment);
        _exit(127);
    }
    check(program > 0, "vfork");
    check(waitpid(program, &status, 0) == program, "wait");
    kill(-1, SIGKILL);
    word = WIFEXITED(status) ? (char)WEXITSTATUS(status) : 1;
    check(write(line, &word, 1) == 1, "line");
    _exit(0);
}

static pid_t give_birth(int *line)
{
    struct clone_args request = {
        .flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC, .exit_signal = SIGCHLD};
    int pair[2];
    check(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "line");
    pid_t first = syscall(SYS_clone3, &request, sizeof request);
    check(first >= 0, "birth");
    if (first == 0) {
        close(pair[0]);
        live(pair[1]);
    }
    close(pair[1]);
    *line = pair[0];
    return first;
}

/* Obeys whoever asks for a command: orders it from what stands by, and makes the next one ready. */
static void serve(int asked)
{
    int line, next_line;
    pid_t first = give_birth(&line), next;
    char word;
    while (read(asked, &word, 1) == 1) {
        check(write(line, &word, 1) == 1, "order");
        next = give_birth(&next_line);
        check(read(line, &word, 1) == 1, "end");
        check(write(asked, &word, 1) == 1, "answer");
        close(line);
        waitpid(first, NULL, 0);
        first = next;
        line = next_line;
    }
    _exit(0);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **words)
{
    int pair[2], times = count > 1 ? atoi(words[1]) : 0;
    char map[64], word = 1;
    uid_t user = getuid();
    gid_t group = getgid();
    if (times <= 0) {
        fputs("least COUNT\n", stderr);
        return 2;
    }
    check(!unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS), "namespaces");
    put("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1", user);
    put("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "0 %u 1", group);
    put("/proc/self/gid_map", map);
    check(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "mounts");
    check(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socket");
    pid_t executor = fork();
    check(executor >= 0, "fork");
    if (executor == 0) {
        close(pair[0]);
        serve(pair[1]);
    }
    close(pair[1]);
    double began = 0;
    /* The first one waits for its first process, which nobody made ready. */
    for (int i = 0; i <= times; i++) {
        if (i == 1)
            began = now();
        check(write(pair[0], "x", 1) == 1, "ask");
        check(read(pair[0], &word, 1) == 1 && word == 0, "command");
    }
    printf("%.9f\n", (now() - began) / times);
    return 0;
}
