//! Reading a resolv.conf(5) into the result's DNS.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use cni_types::Dns;

/// Longer lines are no lines of a resolv.conf.
const MAX_LINE: usize = 64 * 1024;
/// Longer files are none either.
const MAX_FILE: u64 = 1024 * 1024;

/// Reads the file. Of a `nameserver` line the first word counts, `domain` is the last one given, `search` and
/// `options` add up over all lines; everything else is passed over.
///
/// # Errors
/// The system's, and `InvalidData` for a file that cannot be meant.
pub(crate) fn read(path: &Path) -> io::Result<Dns> {
    let kind = path.metadata()?.file_type();
    if kind.is_fifo() || kind.is_socket() {
        return Err(invalid("not a regular file"));
    }
    let mut reader = BufReader::new(File::open(path)?.take(MAX_FILE + 1));
    let mut dns = Dns::default();
    let mut line = Vec::new();
    let mut total = 0;
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        total += read as u64;
        if read == 0 {
            return Ok(dns);
        }
        if line.len() > MAX_LINE {
            return Err(invalid("a line is longer than 64 KiB"));
        }
        if total > MAX_FILE {
            return Err(invalid("longer than 1 MiB"));
        }
        add_line(&mut dns, &String::from_utf8_lossy(&line));
    }
}

fn add_line(dns: &mut Dns, line: &str) {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return;
    }
    let mut words = line.split_whitespace();
    let (Some(keyword), Some(first)) = (words.next(), words.next()) else {
        return;
    };
    let all = std::iter::once(first).chain(words).map(str::to_owned);
    match keyword {
        "nameserver" => dns.nameservers.push(first.to_owned()),
        "domain" => dns.domain = first.to_owned(),
        "search" => dns.search.extend(all),
        "options" => dns.options.extend(all),
        _ => {}
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> io::Result<Dns> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("resolv.conf");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn a_simple_file() {
        let dns = parse("nameserver 192.0.2.0\nnameserver 192.0.2.1\n").unwrap();
        assert_eq!(dns.nameservers, ["192.0.2.0", "192.0.2.1"]);
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn comments_and_strange_lines_are_passed_over() {
        let text = "# nameserver 1\n; nameserver 2\n\n  \nnameserver\nunknown word\nnameserver fe80::1%eth0 extra # x\r\n\u{fffd}\u{0}\n";
        let dns = parse(text).unwrap();
        assert_eq!(dns.nameservers, ["fe80::1%eth0"]);
        assert!(dns.search.is_empty());
    }

    #[test]
    fn all_four_keywords() {
        let text = "domain a.example\n\tdomain b.example x\nsearch s1 s2\nsearch s3\noptions o1 o2\noptions o3";
        let dns = parse(text).unwrap();
        assert_eq!(dns.domain, "b.example");
        assert_eq!(dns.search, ["s1", "s2", "s3"]);
        assert_eq!(dns.options, ["o1", "o2", "o3"]);
    }

    #[test]
    fn files_that_cannot_be_meant() {
        assert!(parse(&"x".repeat(MAX_LINE + 2)).is_err());
        assert!(parse(&"nameserver 1\n".repeat(100_000)).is_err());
        assert!(read(Path::new("/nonexistent/resolv.conf")).is_err());
        assert!(read(Path::new("/")).is_err());
        assert!(read(Path::new("/dev/zero")).is_err());
    }
}
