//! STATUS.

use std::path::{Path, PathBuf};

use netlink::Handle;
use nix::sys::utsname::uname;

use crate::error::Error;

/// Fails if the kernel lacks what an ADD needs.
pub fn status() -> Result<(), Error> {
    let host = Handle::host()?;
    host.require_tbf().map_err(Error::NotReady)?;
    host.require_redirect().map_err(Error::NotReady)?;
    // Asking the kernel for it would load the module, which makes two blocks that nobody wants.
    if has_ifb_module() {
        return Ok(());
    }
    host.require_ifb().map_err(Error::NotReady)
}

/// Whether the module for intermediate functional blocks is loaded, or there to be loaded.
fn has_ifb_module() -> bool {
    let installed = uname().ok().map(|name| {
        let directory: PathBuf = [Path::new("/lib/modules"), Path::new(name.release())]
            .iter()
            .collect();
        directory.join("kernel/drivers/net/ifb.ko")
    });
    let packed = |plain: &Path| {
        ["", ".xz", ".zst", ".gz"].iter().any(|suffix| {
            let mut name = plain.as_os_str().to_owned();
            name.push(suffix);
            Path::new(&name).exists()
        })
    };
    Path::new("/sys/module/ifb").exists() || installed.as_deref().is_some_and(packed)
}
