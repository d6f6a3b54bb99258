//! The least that attaching a container to a bridge can cost: the floor program, and the starts of programs
//! that the protocol asks for.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::crowd::Crowd;
use super::cycle::{Cost, cost};
use crate::error::{Error, Result};
use crate::plugin::Call;

/// Programs that the runtime and the plugins start for list a, loopback included.
const STARTS: u32 = 5;

/// One round: the floor, and right after it a real ADD on the same host.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Floor {
    /// The same kernel objects in one process.
    pub objects: Cost,
    /// Starting empty static programs.
    pub starts: Cost,
    /// ADD of the list.
    pub add: Cost,
}

impl Floor {
    /// Both parts by the clock.
    #[must_use]
    pub fn wall(&self) -> Duration {
        self.objects.wall + self.starts.wall
    }

    /// Both parts by the processor.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.objects.cpu + self.starts.cpu
    }
}

impl Crowd<'_> {
    /// Measures rounds of floor and ADD in turn, after one that does not count. The bridge must be there.
    ///
    /// # Errors
    /// When the floor program fails or a namespace cannot be made.
    pub fn floors(&mut self, program: &Path, empty: &Path, rounds: u32) -> Result<Vec<Floor>> {
        let mut all = Vec::new();
        for round in 0..=rounds {
            let bare = self.newcomer()?;
            let call = Call::new(program)
                .env("FLOOR_NETNS", bare.netns.path())
                .env("FLOOR_NUMBER", round.to_string());
            let mut failure = None;
            let objects = cost(|| match call.run() {
                Ok(answer) => {
                    failure = Some(answer.text());
                    answer.ok()
                }
                Err(_) => false,
            })?;
            if !objects.ok {
                return Err(Error::unexpected(
                    "the floor program to end well",
                    failure.unwrap_or_default(),
                ));
            }
            let starts = cost(|| (0..STARTS).all(|_| Call::new(empty).run().is_ok()))?;
            let mut one = self.newcomer()?;
            let runtime = self.runtime.clone();
            let add = cost(|| runtime.add(&self.network, &mut one.attachment).is_ok())?;
            runtime.del(&self.network, &one.attachment)?;
            if round > 0 {
                all.push(Floor {
                    objects,
                    starts,
                    add,
                });
            }
        }
        Ok(all)
    }
}
