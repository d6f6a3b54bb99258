//! Full and read-only disks, a closed stdout, a stuck lock, kill -9, and many at once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::*;

fn net() -> Net {
    Net::with_ranges("1.1.0", &[&["10.1.0.0/22"], &["2001:db8:1::/64"]])
}

/// Runs a shell script in mount and user namespaces of its own, with `$P` the plugin, `$D` an empty data directory on
/// a tmpfs of its own and the configuration on stdin of whatever the script runs.
fn in_own_mounts(net: &Net, mount_options: &str, command: &str, script: &str) -> (bool, String) {
    let mut child = Command::new("unshare")
        .args(["-Urm", "sh", "-ec"])
        .arg(format!(
            "mount -t tmpfs -o {mount_options} none \"$D\"; {script}"
        ))
        .env("D", net.tmp.path())
        .env("P", OURS)
        .env("CNI_COMMAND", command)
        .env("CNI_CONTAINERID", "a")
        .env("CNI_NETNS", "/nonexistent/netns")
        .env("CNI_IFNAME", "eth0")
        .env("CNI_PATH", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("unshare (Debian: apt-get install util-linux) and user namespaces are needed");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(net.config().to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    (
        output.status.success(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn a_disk_that_is_full_at_any_point_leaves_nothing() {
    let net = net();
    let (mut failed, mut worked) = (0, 0);
    for inodes in 2..14 {
        let script = "if $P >/dev/null; then echo added; fi; ls -A $D/net1 2>/dev/null || true";
        let (ok, listing) = in_own_mounts(&net, &format!("nr_inodes={inodes}"), "ADD", script);
        assert!(ok);
        if listing.starts_with("added") {
            worked += 1;
            assert!(
                listing.contains("10.1.0.2\n") && listing.contains("2001:db8:1::2\n"),
                "{listing}"
            );
        } else {
            failed += 1;
            for left in ["10.1.0.2", "2001:db8:1::2", ".ferrule-new"] {
                assert!(!listing.contains(left), "{inodes}: {listing}");
            }
        }
    }
    assert!(failed >= 3 && worked >= 3, "{failed} {worked}");
}

#[test]
fn a_read_only_directory_is_reported_and_a_lease_in_it_not_denied() {
    let net = net();
    let prepare =
        "mkdir $D/net1; printf 'a\\r\\neth0' >$D/net1/10.1.0.2; mount -o remount,bind,ro $D; $P";
    let (ok, text) = in_own_mounts(&net, "size=1m", "DEL", prepare);
    assert!(
        !ok && text.contains("cannot remove lease file") && text.contains("10.1.0.2"),
        "{text}"
    );
    let (ok, text) = in_own_mounts(&net, "size=1m", "CHECK", prepare);
    assert!(ok, "{text}");
    let (ok, text) = in_own_mounts(&net, "size=1m", "ADD", prepare);
    assert!(!ok && text.contains("\"code\": 5"), "{text}");
    let (ok, text) = in_own_mounts(&net, "size=1m", "STATUS", prepare);
    assert!(!ok && text.contains("\"code\": 50"), "{text}");
    let (ok, text) = in_own_mounts(
        &net,
        "size=1m",
        "DEL",
        "mkdir $D/net1; mount -o remount,bind,ro $D; $P",
    );
    assert!(ok, "{text}");
}

#[test]
fn an_answer_that_cannot_be_written_takes_the_leases_back() {
    let net = net();
    let mut child = Command::new(OURS)
        .env_clear()
        .envs([
            ("CNI_COMMAND", "ADD"),
            ("CNI_CONTAINERID", "a"),
            ("CNI_NETNS", "/nonexistent"),
            ("CNI_IFNAME", "eth0"),
            ("CNI_PATH", "/x"),
        ])
        .stdin(Stdio::piped())
        .stdout(File::options().write(true).open("/dev/full").unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(net.config().to_string().as_bytes())
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(net.leases().is_empty());
    assert!(net.files().contains(&"last_reserved_ip.0".to_owned()));
}

#[test]
fn a_stuck_lock_is_error_11_with_its_holder() {
    let net = net();
    net.write("10.1.0.2", "a\r\neth0");
    let lock = net.dir().join("lock");
    let held = File::create(&lock).unwrap();
    held.lock().unwrap();
    let started = Instant::now();
    thread::scope(|scope| {
        for command in ["ADD", "DEL", "CHECK", "STATUS"] {
            let (net, lock) = (&net, &lock);
            scope.spawn(move || {
                let (code, text) = net.call(command, "b", "eth0", "").error();
                assert_eq!(code, 11, "{text}");
                for part in [
                    lock.to_str().unwrap(),
                    &format!("process {}", std::process::id()),
                ] {
                    assert!(text.contains(part), "{part} in {text}");
                }
            });
        }
    });
    assert!(started.elapsed() < Duration::from_secs(20));
    drop(held);
    assert!(net.del("a").ok);
}

#[test]
fn many_at_once_and_of_both_kinds() {
    let net = Net::with_ranges("1.0.0", &[&["10.1.0.0/22"], &["2001:db8:1::/64"]]);
    let config = net.config().to_string();
    let reference = reference();
    let given: Vec<Vec<String>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..32)
            .map(|worker| {
                let (config, reference) = (&config, &reference);
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for n in 0..8 {
                        let id = format!("w{worker}-{n}");
                        let (one, other) = if (worker + n) % 3 == 0 {
                            (reference.as_path(), OURS.as_ref())
                        } else {
                            (OURS.as_ref(), reference.as_path())
                        };
                        let added = run(one, "ADD", &id, "eth0", "", config).addresses();
                        if n % 2 == 0 {
                            assert!(run(other, "CHECK", &id, "eth0", "", config).ok);
                            assert!(run(other, "DEL", &id, "eth0", "", config).ok);
                        } else {
                            kept.extend(added);
                        }
                    }
                    kept
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let given: Vec<String> = given
        .into_iter()
        .flatten()
        .map(|a| a.split('/').next().unwrap().to_owned())
        .collect();
    let unique: HashSet<String> = given.iter().cloned().collect();
    assert_eq!((unique.len(), given.len()), (256, 256));
    assert_eq!(net.leases().into_iter().collect::<HashSet<_>>(), unique);
}

#[test]
fn killed_anywhere_a_del_brings_everything_back() {
    let net = net();
    net.add("other").addresses();
    let before = (net.leases(), net.files());
    let config = net.config().to_string();
    let mut killed_with_lease = 0;
    for round in 0..200u64 {
        let mut child = Command::new(OURS)
            .env_clear()
            .envs([
                ("CNI_COMMAND", "ADD"),
                ("CNI_CONTAINERID", "a"),
                ("CNI_NETNS", "/nonexistent"),
                ("CNI_IFNAME", "eth0"),
                ("CNI_PATH", "/x"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(config.as_bytes())
            .unwrap();
        let until = Instant::now() + Duration::from_micros(round * 17);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed_with_lease += usize::from(net.leases().len() > 2);
        assert!(net.del("a").ok);
        assert_eq!((net.leases(), net.files()), before);
        assert!(!net.dir().join(".ferrule-new").exists());
        if round % 10 == 0 {
            assert_eq!(net.add("a").addresses().len(), 2);
            assert!(net.del("a").ok);
        }
    }
    assert!(
        killed_with_lease > 0,
        "no round was killed late enough to leave a lease"
    );
    assert!(net.check("other").ok);
}

#[test]
fn any_file_in_the_directory_is_survived() {
    let net = net();
    let junk: [&[u8]; 6] = [
        b"",
        b"\0",
        b"\xff\xfe",
        b"\r\n",
        b"a\r\n\r\neth0",
        &[b'x'; 9000],
    ];
    for name in [
        "lock",
        "last_reserved_ip.0",
        ".ferrule-index",
        ".ferrule-boot",
        ".ferrule-new",
        "10.1.0.2",
        "2001:db8:1::2",
    ] {
        for content in junk {
            net.write(name, "");
            fs::write(net.dir().join(name), content).unwrap();
            assert_eq!(net.add("a").addresses().len(), 2, "{name} {content:?}");
            assert!(net.check("a").ok && net.del("a").ok, "{name} {content:?}");
            fs::remove_dir_all(net.dir()).unwrap();
        }
    }
}
