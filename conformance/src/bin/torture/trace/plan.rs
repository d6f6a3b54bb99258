//! What is to happen at which call.

use std::fmt;
use std::str::FromStr;

use nix::errno::Errno;

/// What is done to a traced program, and when.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// The action.
    pub act: Act,
    /// At which call (or message, for [`Act::Refuse`]), counted from 1. 0 means never.
    pub at: usize,
}

/// The action.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Act {
    /// Only count.
    Count,
    /// SIGKILL to every traced process before the call is carried out.
    KillAll,
    /// SIGKILL to the process that is making the call; its children live on.
    KillCaller,
    /// SIGKILL to the first process besides the program itself that makes a call then.
    KillChild,
    /// SIGTERM to every traced process.
    Terminate,
    /// The call is not carried out and fails with this error.
    Fail(Errno),
    /// The kernel refuses this netlink message with this error.
    Refuse(Errno),
}

impl Plan {
    /// A plan that lets the program run as it would.
    pub const COUNT: Self = Self {
        act: Act::Count,
        at: 0,
    };
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.act {
            Act::Count => write!(f, "count"),
            Act::KillAll => write!(f, "kill:{at}"),
            Act::KillCaller => write!(f, "kill-caller:{at}"),
            Act::KillChild => write!(f, "kill-child:{at}"),
            Act::Terminate => write!(f, "terminate:{at}"),
            Act::Fail(errno) => write!(f, "fail:{at}:{}", errno as i32),
            Act::Refuse(errno) => write!(f, "refuse:{at}:{}", errno as i32),
        }
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no plan");
        let mut parts = text.split(':');
        let word = parts.next().unwrap_or_default();
        let mut number = || parts.next().and_then(|part| part.parse::<i32>().ok());
        let at = match word {
            "count" => 0,
            _ => number()
                .and_then(|at| usize::try_from(at).ok())
                .ok_or_else(bad)?,
        };
        let act = match word {
            "count" => Act::Count,
            "kill" => Act::KillAll,
            "kill-caller" => Act::KillCaller,
            "kill-child" => Act::KillChild,
            "terminate" => Act::Terminate,
            "fail" => Act::Fail(Errno::from_raw(number().ok_or_else(bad)?)),
            "refuse" => Act::Refuse(Errno::from_raw(number().ok_or_else(bad)?)),
            _ => return Err(bad()),
        };
        Ok(Self { act, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_what_it_says() {
        for text in [
            "count",
            "kill:7",
            "kill-caller:1",
            "kill-child:4",
            "terminate:12",
            "fail:3:28",
            "refuse:2:1",
        ] {
            assert_eq!(text.parse::<Plan>().unwrap().to_string(), text);
        }
        for text in ["", "kill", "kill:x", "fail:3", "kill:-1"] {
            assert!(text.parse::<Plan>().is_err(), "{text}");
        }
    }
}
