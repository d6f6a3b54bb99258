//! The journal of systemd, by its own protocol: one datagram per line, a field per line of it.
//!
//! See systemd's "Native Journal Protocol". A line break inside a value would end the field, so it becomes a blank.

use std::io;
use std::os::unix::net::UnixDatagram;

use super::Level;
use super::line::Line;

const SOCKET: &str = "/run/systemd/journal/socket";

pub(super) fn connect() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(SOCKET)?;
    // A journal that does not read must not hold a call up.
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// `MESSAGE`, `PRIORITY` and `SYSLOG_IDENTIFIER` as the journal knows them; the rest as `CNI_…`.
pub(super) fn fields(line: &Line<'_>) -> Vec<u8> {
    let mut all = vec![
        ("MESSAGE".to_owned(), line.message.to_owned()),
        ("PRIORITY".to_owned(), priority(line.level).to_string()),
        (
            "SYSLOG_IDENTIFIER".to_owned(),
            format!("cni-{}", line.context.plugin),
        ),
    ];
    let own = line.fields();
    all.extend(
        own.into_iter()
            .map(|(key, value)| (format!("CNI_{}", key.to_ascii_uppercase()), value)),
    );
    let text: String = all
        .iter()
        .map(|(key, value)| format!("{key}={}\n", value.replace('\n', " ")))
        .collect();
    text.into_bytes()
}

/// As syslog(3) has it.
fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug => 7,
    }
}
