//! What real runtimes sent, played against the plugins.

use std::path::{Path, PathBuf};

use conformance::snapshot::Leavings;
use conformance::transcript::{Replay, Transcript, files};

use super::support::{Lab, plugins, sandboxed};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts")
}

/// Plays every transcript of a client; afterwards nothing of its containers is left.
fn play(lab: &Lab, client: &str) {
    let files = files(&directory().join(client)).unwrap();
    assert!(!files.is_empty(), "no transcripts of {client}");
    for file in files {
        let transcript = Transcript::load(&file).unwrap();
        assert!(!transcript.calls.is_empty(), "{}", file.display());
        let fresh = lab.snapshot();
        let mut replay = Replay::new(&lab.host, &plugins());
        replay
            .play(&transcript)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let diff = fresh.diff(&lab.snapshot());
        let mut left = diff.beyond(&Leavings {
            bridge: "",
            owners: replay.owners(),
        });
        for bridge in bridges(&transcript) {
            let allowed = Leavings {
                bridge: &bridge,
                owners: replay.owners(),
            };
            let beyond = diff.beyond(&allowed);
            left.retain(|line| beyond.contains(line));
        }
        assert!(left.is_empty(), "{}: {left:#?}", file.display());
    }
}

/// The bridges that the transcript's configurations name; they stay.
fn bridges(transcript: &Transcript) -> Vec<String> {
    let named = transcript
        .calls
        .iter()
        .filter_map(|call| call.stdin["bridge"].as_str());
    let mut named: Vec<String> = named.map(str::to_owned).collect();
    named.sort();
    named.dedup();
    named
}

#[test]
fn every_client_is_played() {
    let clients = std::fs::read_dir(directory()).unwrap();
    let mut clients: Vec<String> = clients
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    clients.sort();
    assert_eq!(clients, ["buildah", "cri", "ctr", "go-cnitool", "podman"]);
}

#[test]
fn they_are_free_of_this_machine() {
    for file in files(&directory()).unwrap() {
        let text = std::fs::read_to_string(&file).unwrap();
        for place in ["/home/", "/root/", "/tmp/wt", "/work/", "target/"] {
            assert!(!text.contains(place), "{}: {place}", file.display());
        }
    }
}

sandboxed! {
    fn of_podman(lab) {
        play(lab, "podman");
    }

    fn of_buildah(lab) {
        play(lab, "buildah");
    }

    fn of_ctr(lab) {
        play(lab, "ctr");
    }

    fn of_cri(lab) {
        play(lab, "cri");
    }

    fn of_go_cnitool(lab) {
        play(lab, "go-cnitool");
    }
}
