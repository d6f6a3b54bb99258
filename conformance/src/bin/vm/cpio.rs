//! Archives as the kernel unpacks them at boot: the "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::io::{self, Write};

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// Writes an archive. Parents must be added before what is in them.
#[derive(Debug)]
pub struct Archive<W: Write> {
    out: W,
    written: usize,
    entries: u32,
}

impl<W: Write> Archive<W> {
    pub fn new(out: W) -> Self {
        Self {
            out,
            written: 0,
            entries: 0,
        }
    }

    pub fn directory(&mut self, path: &str) -> io::Result<()> {
        self.entry(path, DIRECTORY, &[])
    }

    /// A file that may be executed.
    pub fn file(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.entry(path, PROGRAM, bytes)
    }

    pub fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.entry(path, LINK, target.as_bytes())
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.out.flush()
    }

    fn entry(&mut self, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        let too_large =
            |_| io::Error::new(io::ErrorKind::InvalidInput, format!("{path} is too large"));
        let size = u32::try_from(bytes.len()).map_err(too_large)?;
        let name_size = u32::try_from(path.len() + 1).map_err(too_large)?;
        self.entries += 1;
        // Number, mode, owner, group, links, time, size, four device numbers, length of the name, unused sum.
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            0,
            0,
            name_size,
            0,
        ];
        let mut header = String::from("070701");
        for field in fields {
            header.push_str(&format!("{field:08x}"));
        }
        self.put(header.as_bytes())?;
        self.put(path.as_bytes())?;
        self.put(&[0])?;
        self.align()?;
        self.put(bytes)?;
        self.align()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len();
        self.out.write_all(bytes)
    }

    fn align(&mut self) -> io::Result<()> {
        let missing = self.written.next_multiple_of(4) - self.written;
        self.put([0; 4].get(..missing).unwrap_or_default())
    }
}
