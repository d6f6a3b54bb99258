//! Real runtimes with the plugins of this workspace: podman, buildah, containerd, and the Go
//! cnitool, each with its daemons in a small machine of its own.
//!
//! They need root and Debian's packages, and so are not part of a plain `cargo test`:
//! `cargo test -p conformance --features cri --test runtimes -- --ignored`. A runtime that is not
//! installed is a failure. What each sends to the plugins is compared with its transcript in
//! `conformance/transcripts`; `RECORD=1` writes those anew.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "shared with the suite"
)]
#[path = "../suite/support.rs"]
mod support;

mod daemon;
mod image;
mod machine;
mod outside;

mod buildah;
#[cfg(feature = "cri")]
mod cri;
mod ctr;
mod go_cnitool;
mod podman;

/// In the place of the tests of the CRI where its feature is off: leaving them out would look well.
#[cfg(not(feature = "cri"))]
mod cri {
    #[test]
    #[ignore = "needs the feature cri"]
    fn pods() {
        panic!("containerd's CRI is tested only with --features cri");
    }
}
