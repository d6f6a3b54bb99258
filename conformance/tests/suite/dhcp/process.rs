//! The daemon as a process, and plugins that do without it.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use conformance::chain::Attachment;
use conformance::net::Rtnl;
use conformance::plugin::find;
use serde_json::json;

use super::super::support::{fine, plugins, refused, sandboxed};
use super::world::*;

sandboxed! {
    fn del_without_the_daemon_gives_the_lease_back(lab) {
        let server = dnsmasq(lab, &[]);
        let frames = Frames::listen(lab);
        let list = list(json!({}));
        let keeper = daemon(lab, &[]);
        let netns = lab.container("c1");
        let fresh = lab.snapshot();
        let mut attachment = Attachment::new("c1", netns.path());
        lab.add(&list, &mut attachment);
        let lost = lab.container("c2");
        let mut other = Attachment::new("c2", lost.path());
        lab.add(&list, &mut other);
        server.expect(2);
        keeper.kill();
        lab.del(&list, &attachment);
        let release = frames.wait(SOON, "a release", |frame| frame.kind == RELEASE);
        assert_eq!((release.from, release.to, release.is_broadcast()), (release.own, SERVER, false), "{release:?}");
        server.expect(1);
        assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
        // The next has no namespace any more, and nobody who could tell the server.
        drop(lost);
        lab.del(&list, &other);
        assert!(files().is_empty());
        for attachment in [&attachment, &other] {
            lab.del(&list, attachment);
        }
        // The kernel takes the link of a namespace that is gone away in its own time.
        let same = || fresh.diff(&lab.snapshot()).is_empty().then_some(());
        until(SOON, "the host to be as it was", same);
        fs::remove_file(SOCKET).unwrap();
        fs::remove_dir_all(LEASES).unwrap();
        lab.del(&list, &attachment);
    }

    fn a_daemon_that_hangs_does_not_hold_a_call_up_for_ever(lab) {
        let _server = dnsmasq(lab, &[]);
        let keeper = daemon(lab, &[]);
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        keeper.pause();
        let config = json!({"cniVersion": "1.1.0", "name": "lan", "type": "dhcp", "ipam": {"type": "dhcp"}});
        let begun = Instant::now();
        // Its socket takes the connection, and nobody answers.
        let call = lab.ours.call("dhcp", "STATUS", &attachment).unwrap().stdin(config.to_string());
        refused(&call.deadline(Duration::from_secs(60)).run().unwrap(), 50);
        assert!(begun.elapsed() < Duration::from_secs(35), "{:?}", begun.elapsed());
    }

    fn a_call_that_ends_early_is_asked_for_no_longer(lab) {
        let frames = Frames::listen(lab);
        let daemon = daemon(lab, &[]);
        let netns = lab.container("c1");
        segment(lab, &netns);
        let config = json!({"cniVersion": "1.0.0", "name": "lan", "type": "dhcp", "ipam": {"type": "dhcp"}});
        let mut child = Command::new(find("dhcp", &[plugins()]).unwrap())
            .envs([("CNI_COMMAND", "ADD"), ("CNI_CONTAINERID", "c1"), ("CNI_IFNAME", "eth0"), ("CNI_PATH", "/x")])
            .env("CNI_NETNS", netns.path())
            .stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null())
            .spawn().unwrap();
        child.stdin.take().unwrap().write_all(config.to_string().as_bytes()).unwrap();
        frames.wait(SOON, "a discovery", |frame| frame.kind == DISCOVER);
        child.kill().unwrap();
        child.wait().unwrap();
        until(SOON, "the daemon to notice", || daemon.log().contains("nobody waits").then_some(()));
        let server = dnsmasq(lab, &[]);
        assert!(files().is_empty());
        // And the same attachment can be had afresh.
        let attachment = Attachment::new("c1", netns.path());
        assert_eq!(server.leases().len(), 0);
        fine(&lab.one("ADD", &config, &attachment));
        server.expect(1);
    }

    fn a_second_daemon_is_refused_and_the_first_goes_on(lab) {
        let first = daemon(lab, &[]);
        let program = find("dhcp", &[plugins()]).unwrap();
        let (ended_well, log) = start_daemon(lab, &program, &[]).wait();
        assert!(!ended_well && log.contains(LEASES), "{log}");
        UnixStream::connect(SOCKET).unwrap();
        assert!(first.stop());
        // Something else that listens there is left alone.
        let _stranger = UnixListener::bind(SOCKET).unwrap();
        let (ended_well, log) = start_daemon(lab, &program, &[]).wait();
        assert!(!ended_well && log.contains("cannot listen"), "{log}");
        UnixStream::connect(SOCKET).unwrap();
    }

    fn systemd_hands_its_socket_over_and_keeps_it(lab) {
        let server = dnsmasq(lab, &[]);
        fs::create_dir_all("/run/cni").unwrap();
        let socket = UnixListener::bind(SOCKET).unwrap();
        let program = find("dhcp", &[plugins()]).unwrap();
        let handed = |count: u32| {
            let mut command = Command::new("sh");
            let script = format!("export LISTEN_PID=$$ LISTEN_FDS={count}; exec 3<&0 4<&0 </dev/null; exec \"$0\" daemon");
            command.arg("-c").arg(script).arg(&program).stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
            Servant::spawn(lab.host.netns(), "activated", &mut command)
        };
        let keeper = handed(1);
        let list = list(json!({}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("c1", netns.path());
        // The connection waits in the socket until the daemon takes it.
        lab.add(&list, &mut attachment);
        server.expect(1);
        lab.del(&list, &attachment);
        server.expect(0);
        assert!(keeper.stop());
        assert!(Path::new(SOCKET).exists(), "it is systemd's");
        let (ended_well, log) = handed(2).wait();
        assert!(!ended_well && log.contains("2 sockets"), "{log}");
    }

    fn flags_are_the_reference_sets(lab) {
        let server = dnsmasq(lab, &[]);
        symlink("/", "/run/sandbox/tmp/host").unwrap();
        let pidfile = "/run/sandbox/tmp/dhcp.pid";
        let keeper = daemon(lab, &["-pidfile", pidfile, "--hostprefix=/run/sandbox/tmp/host", "-broadcast"]);
        assert_eq!(fs::read_to_string(pidfile).unwrap(), keeper.id().to_string());
        assert_eq!(fs::metadata(pidfile).unwrap().permissions().mode() & 0o777, 0o644);
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("c1", netns.path());
        let list = list(json!({}));
        let frames = Frames::listen(lab);
        lab.add(&list, &mut attachment);
        server.expect(1);
        let asked = frames.of(DISCOVER);
        assert!(!asked.is_empty() && asked.iter().all(|frame| frame.answer_by_broadcast), "{asked:?}");
        lab.del(&list, &attachment);
        server.expect(0);
        assert!(keeper.stop());
        assert!(!Path::new(pidfile).exists());
        let program = find("dhcp", &[plugins()]).unwrap();
        for flags in [&["-nonsense"][..], &["-timeout", "soon"], &["-pidfile", "relative"]] {
            let (ended_well, log) = start_daemon(lab, &program, flags).wait();
            assert!(!ended_well && log.contains("-resendmax"), "{log}");
        }
    }

    fn nonsense_on_its_socket_harms_nobody(lab) {
        let server = dnsmasq(lab, &[]);
        let keeper = daemon(lab, &[]);
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("c1", netns.path());
        let hello = b"CONNECT /_goRPC_ HTTP/1.0\n\n";
        // Some say nothing, and stay.
        let idle: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(SOCKET).unwrap()).collect();
        for nonsense in [
            &b"GET / HTTP/1.0\r\n\r\n"[..], b"\n\n", &[0; 4000], &[b'x'; 100_000],
            b"CONNECT /_goRPC_ HTTP/1.0\n\n\xf8\xff\xff\xff\xff\xff\xff\xff\xff",
            b"CONNECT /_goRPC_ HTTP/1.0\n\n\x02\xff\x82\x02\xff\x82",
            b"CONNECT /_goRPC_ HTTP/1.0\n\n\x05\x01\x02\x03\x04\x05",
        ] {
            let mut stream = UnixStream::connect(SOCKET).unwrap();
            // It may hang up before it has heard all.
            let _ = stream.write_all(nonsense);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            stream.set_read_timeout(Some(SOON)).unwrap();
            let mut answer = Vec::new();
            let ended = stream.read_to_end(&mut answer);
            assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset), "{nonsense:?}");
        }
        let mut stream = UnixStream::connect(SOCKET).unwrap();
        stream.write_all(hello).unwrap();
        let mut greeting = [0; 34];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting[..], b"HTTP/1.0 200 Connected to Go RPC\n\n");
        let list = list(json!({}));
        lab.add(&list, &mut attachment);
        lab.check(&list, &attachment);
        server.expect(1);
        lab.del(&list, &attachment);
        drop(idle);
        assert!(keeper.stop());
    }
}
