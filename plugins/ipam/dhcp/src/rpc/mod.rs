//! What plugin and daemon say to each other: Go's `net/rpc` over HTTP over a unix stream, as the reference set's do.
//!
//! A connection begins with an HTTP request that asks for the protocol, and its answer; then come calls, each a header
//! and an argument, and replies, each a header and a result. `DHCP.Allocate` (ADD) and `DHCP.Release` (DEL) are the
//! reference set's; `DHCP.Check` and `DHCP.Collect` (GC) are ours, with the same argument.

mod argument;
#[cfg(test)]
pub mod captured;
mod reply;

pub use argument::{Arguments, Call, Method, call};
pub use reply::{Header, failed, leased, read_result, released};

/// What a client says first.
pub const HELLO: &[u8] = b"CONNECT /_goRPC_ HTTP/1.0\n\n";
/// What a server answers.
pub const WELCOME: &[u8] = b"HTTP/1.0 200 Connected to Go RPC\n\n";
/// What a server answers to anything else.
pub const REFUSAL: &[u8] =
    b"HTTP/1.0 405 Method Not Allowed\nContent-Type: text/plain; charset=utf-8\n\n405 must CONNECT\n";
/// How a server says that it has no such method.
pub const NO_METHOD: &str = "rpc: can't find method ";

/// The length of the HTTP message at the front of `input`, up to its blank line; `None` until that is there.
#[must_use]
pub fn http_head(input: &[u8]) -> Option<usize> {
    let ends = [&b"\n\n"[..], b"\r\n\r\n"];
    ends.iter()
        .filter_map(|end| {
            let at = input.windows(end.len()).position(|part| part == *end)?;
            Some(at + end.len())
        })
        .min()
}
