//! System calls: their names, and what can go wrong with them.

use nix::libc;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::registers::Frame;
use super::tracee;

/// A call that was made.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Call {
    /// Its number.
    pub number: i64,
    /// File name of the program that made it.
    pub program: String,
    /// Whether the descriptor in its first argument is a socket.
    pub socket: bool,
    /// Whether it opens a file to write or make it.
    pub writes: bool,
}

/// What a call is for, as far as it decides which errors it can give.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Opens or looks at something.
    Open,
    /// Makes a name or changes one.
    Name,
    /// Reads from a file.
    Read,
    /// Writes to a file.
    Write,
    /// Sends to the kernel.
    Send,
    /// Receives from the kernel.
    Receive,
    /// Makes a socket or another descriptor.
    Descriptor,
    /// Sets an option of a socket.
    Option,
    /// Takes a lock.
    Lock,
    /// Enters a namespace.
    Namespace,
    /// Starts a process.
    Process,
    /// Waits.
    Wait,
    /// Memory, signals, threads: their failure is the end of any program, or none of its business.
    Runtime,
}

impl Call {
    /// The call that a stopped process is about to make.
    pub fn of(pid: Pid, frame: &Frame) -> Self {
        let [first, _, third, ..] = frame.arguments;
        let flags = i32::try_from(third).unwrap_or_default();
        Self {
            number: frame.number,
            program: tracee::program(pid),
            socket: tracee::descriptor(pid, first).starts_with("socket:"),
            writes: frame.number == libc::SYS_openat
                && flags & (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT) != 0,
        }
    }

    /// What it is for.
    pub fn kind(&self) -> Kind {
        match self.number {
            libc::SYS_openat | libc::SYS_open if self.writes => Kind::Name,
            libc::SYS_openat
            | libc::SYS_open
            | libc::SYS_statx
            | libc::SYS_newfstatat
            | libc::SYS_fstat
            | libc::SYS_stat
            | libc::SYS_lstat
            | libc::SYS_statfs
            | libc::SYS_readlink
            | libc::SYS_readlinkat
            | libc::SYS_access
            | libc::SYS_faccessat
            | libc::SYS_faccessat2
            | libc::SYS_getdents64 => Kind::Open,
            libc::SYS_linkat
            | libc::SYS_link
            | libc::SYS_unlink
            | libc::SYS_unlinkat
            | libc::SYS_rename
            | libc::SYS_renameat
            | libc::SYS_renameat2
            | libc::SYS_mkdir
            | libc::SYS_mkdirat
            | libc::SYS_ftruncate
            | libc::SYS_utimensat
            | libc::SYS_fsync => Kind::Name,
            libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_writev if self.socket => Kind::Send,
            libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_writev => Kind::Write,
            libc::SYS_read | libc::SYS_pread64 | libc::SYS_lseek | libc::SYS_ioctl => Kind::Read,
            libc::SYS_sendto | libc::SYS_sendmsg => Kind::Send,
            libc::SYS_recvfrom | libc::SYS_recvmsg => Kind::Receive,
            libc::SYS_socket
            | libc::SYS_memfd_create
            | libc::SYS_pipe2
            | libc::SYS_dup
            | libc::SYS_dup2
            | libc::SYS_dup3
            | libc::SYS_signalfd4
            | libc::SYS_eventfd2
            | libc::SYS_fcntl
            | libc::SYS_epoll_create1
            | libc::SYS_timerfd_create => Kind::Descriptor,
            libc::SYS_bind
            | libc::SYS_connect
            | libc::SYS_getsockname
            | libc::SYS_setsockopt
            | libc::SYS_getsockopt => Kind::Option,
            libc::SYS_flock => Kind::Lock,
            libc::SYS_setns => Kind::Namespace,
            libc::SYS_clone
            | libc::SYS_clone3
            | libc::SYS_vfork
            | libc::SYS_fork
            | libc::SYS_execve => Kind::Process,
            libc::SYS_wait4
            | libc::SYS_poll
            | libc::SYS_ppoll
            | libc::SYS_epoll_wait
            | libc::SYS_waitid => Kind::Wait,
            _ => Kind::Runtime,
        }
    }
}

/// What is known of a call before it is made, in words.
pub fn describe(pid: Pid, frame: &Frame) -> String {
    let [first, second, ..] = frame.arguments;
    let about = match frame.number {
        libc::SYS_openat
        | libc::SYS_statx
        | libc::SYS_newfstatat
        | libc::SYS_mkdirat
        | libc::SYS_linkat
        | libc::SYS_unlinkat
        | libc::SYS_renameat => tracee::text(pid, second),
        libc::SYS_open
        | libc::SYS_unlink
        | libc::SYS_rename
        | libc::SYS_mkdir
        | libc::SYS_readlink
        | libc::SYS_execve
        | libc::SYS_statfs
        | libc::SYS_access => tracee::text(pid, first),
        libc::SYS_brk
        | libc::SYS_mmap
        | libc::SYS_munmap
        | libc::SYS_mprotect
        | libc::SYS_getrandom
        | libc::SYS_socket
        | libc::SYS_clone3
        | libc::SYS_wait4
        | libc::SYS_exit_group
        | libc::SYS_rt_sigaction
        | libc::SYS_rt_sigprocmask => String::new(),
        _ => tracee::descriptor(pid, first),
    };
    let program = tracee::program(pid);
    format!("{program}: {}({about})", name(frame.number))
}

macro_rules! names {
    ($number:expr, $($name:ident)+) => {
        match $number {
            $(libc::$name => stringify!($name).trim_start_matches("SYS_").to_owned(),)+
            other => format!("call {other}"),
        }
    };
}

fn name(number: i64) -> String {
    names!(number,
        SYS_read SYS_write SYS_open SYS_close SYS_stat SYS_fstat SYS_lstat SYS_poll SYS_lseek
        SYS_mmap SYS_mprotect SYS_munmap SYS_brk SYS_rt_sigaction SYS_rt_sigprocmask
        SYS_rt_sigreturn SYS_ioctl SYS_pread64 SYS_pwrite64 SYS_writev SYS_access SYS_mremap
        SYS_madvise SYS_dup SYS_dup2 SYS_dup3 SYS_getpid SYS_gettid SYS_socket SYS_connect
        SYS_sendto SYS_recvfrom SYS_sendmsg SYS_recvmsg SYS_bind SYS_getsockname SYS_setsockopt
        SYS_getsockopt SYS_clone SYS_fork SYS_vfork SYS_execve SYS_exit SYS_wait4 SYS_waitid
        SYS_fcntl SYS_flock SYS_fsync SYS_ftruncate SYS_getdents64 SYS_rename SYS_mkdir
        SYS_rmdir SYS_link SYS_unlink SYS_readlink SYS_chmod SYS_getuid SYS_geteuid SYS_getgid
        SYS_getegid SYS_sigaltstack SYS_statfs SYS_prctl SYS_arch_prctl SYS_sched_getaffinity
        SYS_futex SYS_set_tid_address SYS_set_robust_list SYS_rseq SYS_prlimit64 SYS_getrandom
        SYS_memfd_create SYS_openat SYS_mkdirat SYS_newfstatat SYS_unlinkat SYS_renameat
        SYS_renameat2 SYS_linkat SYS_readlinkat SYS_faccessat SYS_faccessat2 SYS_ppoll
        SYS_utimensat SYS_signalfd4 SYS_eventfd2 SYS_pipe2 SYS_statx SYS_setns SYS_clone3
        SYS_exit_group SYS_uname SYS_sysinfo SYS_umask SYS_pidfd_open SYS_epoll_create1
        SYS_epoll_wait SYS_epoll_ctl SYS_timerfd_create SYS_clock_nanosleep SYS_kill SYS_tgkill
    )
}
