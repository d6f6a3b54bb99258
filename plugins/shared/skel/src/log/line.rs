//! One line: `key=value` pairs, a value with blanks in quotes.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Level;
use crate::date;

/// Whose call it is.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The plugin's name.
    pub plugin: String,
    /// The command of the protocol.
    pub command: String,
    /// The network.
    pub network: String,
    /// The container; empty for a command that concerns a network.
    pub container: String,
    /// Its interface; empty as well.
    pub ifname: String,
    /// `TRACEPARENT`, as the runtime set it (W3C Trace Context); empty without.
    pub trace: String,
}

/// What is written about one step.
pub(super) struct Line<'a> {
    pub now: SystemTime,
    pub level: Level,
    /// Microseconds since the call began.
    pub at: u64,
    /// Microseconds since the step before.
    pub took: u64,
    pub context: &'a Context,
    pub message: &'a str,
}

impl Line<'_> {
    /// Key and value of each field but the message, in order. Those that are empty are left out.
    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let context = self.context;
        let all = [
            ("level", self.level.word().to_owned()),
            ("plugin", context.plugin.clone()),
            ("command", context.command.clone()),
            ("network", context.network.clone()),
            ("container", context.container.clone()),
            ("ifname", context.ifname.clone()),
            ("pid", std::process::id().to_string()),
            ("at_ms", millis(self.at)),
            ("took_ms", millis(self.took)),
            ("trace", context.trace.clone()),
        ];
        all.into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect()
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("time={}", timestamp(self.now));
        for (key, value) in self.fields() {
            // Writing to a string cannot fail.
            let _ = write!(text, " {key}={}", value_text(&value));
        }
        let _ = writeln!(text, " msg={:?}", self.message);
        text
    }
}

fn millis(micros: u64) -> String {
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

/// In quotes, with escapes, if a reader could not find its end otherwise.
fn value_text(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'=';
    if value.bytes().all(plain) {
        value.to_owned()
    } else {
        format!("{value:?}")
    }
}

/// RFC 3339, in UTC, with microseconds.
fn timestamp(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let micros = since.subsec_micros();
    format!("{}.{micros:06}Z", date::date_and_time(since.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_is_in_it() {
        let context = Context {
            plugin: "bridge".into(),
            command: "ADD".into(),
            network: "a b".into(),
            container: "c1".into(),
            ifname: "eth0".into(),
            trace: "00-ab-cd-01".into(),
        };
        let line = Line {
            now: UNIX_EPOCH + Duration::from_micros(951_782_400_000_001),
            level: Level::Info,
            at: 12_345,
            took: 45,
            context: &context,
            message: "two\nlines \"quoted\"",
        };
        let pid = std::process::id();
        assert_eq!(
            line.text(),
            format!(
                "time=2000-02-29T00:00:00.000001Z level=info plugin=bridge command=ADD network=\"a b\" container=c1 ifname=eth0 \
                 pid={pid} at_ms=12.345 took_ms=0.045 trace=00-ab-cd-01 msg=\"two\\nlines \\\"quoted\\\"\"\n"
            )
        );
    }
}
