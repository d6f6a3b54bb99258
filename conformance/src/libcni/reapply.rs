//! Putting the rules of live attachments back after a reload of the packet filter.

use super::cache::Cached;
use super::error::CallError;
use super::gc::may_exist;
use super::{Cni, Command, Error, Result, attachment_request};
use cni_types::code;

/// What became of the remembered attachments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reapplied {
    /// Those whose plugins have put everything back.
    pub done: usize,
    /// Those that nothing was done for.
    pub skipped: Vec<PassedOver>,
}

/// An attachment that nothing was done for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// The network.
    pub network: String,
    /// The container.
    pub container_id: String,
    /// The interface.
    pub ifname: String,
    /// Why.
    pub why: &'static str,
}

impl PassedOver {
    fn new(cached: Cached, why: &'static str) -> Self {
        Self {
            network: cached.network,
            container_id: cached.container_id,
            ifname: cached.ifname,
            why,
        }
    }
}

const NETNS_GONE: &str = "its network namespace is gone; gc frees what it left";
const NETNS_UNKNOWN: &str = "its runtime has not remembered its network namespace";
const NO_CONFIG: &str = "its configuration is not remembered";

impl Cni {
    /// Lets the plugins of every live attachment put back what a reload of the packet filter wiped out: of
    /// one network, or of all. Repeating it changes nothing. A plugin that does not know how is passed over.
    ///
    /// # Errors
    ///
    /// Every failure; the other attachments are served all the same.
    pub fn reapply(&self, network: Option<&str>) -> Result<Reapplied> {
        let mut reapplied = Reapplied::default();
        let mut errors = Vec::new();
        let mut all = self.cache.attachments()?;
        all.retain(|cached| network.is_none_or(|name| name == cached.network));
        let of = all.len();
        for (done, cached) in all.into_iter().enumerate() {
            self.tell(done, of, &cached);
            if cached.netns.as_os_str().is_empty() {
                let passed = PassedOver::new(cached, NETNS_UNKNOWN);
                reapplied.skipped.push(passed);
                continue;
            }
            if !may_exist(&cached.netns) {
                let passed = PassedOver::new(cached, NETNS_GONE);
                reapplied.skipped.push(passed);
                continue;
            }
            match self.reapply_one(&cached) {
                Ok(true) => reapplied.done += 1,
                Ok(false) => {
                    let passed = PassedOver::new(cached, NO_CONFIG);
                    reapplied.skipped.push(passed);
                }
                Err(error) => errors.push(Error::Reapply {
                    id: cached.container_id,
                    ifname: cached.ifname,
                    source: Box::new(error),
                }),
            }
        }
        Error::join(errors)?;
        Ok(reapplied)
    }

    /// False if there is nothing to call the plugins with.
    fn reapply_one(&self, cached: &Cached) -> Result<bool> {
        let Some(list) = cached.list() else {
            return Ok(false);
        };
        let rt = cached.runtime_conf()?;
        let result = Some(&cached.result).filter(|result| !result.is_null());
        let request = attachment_request(&list, &rt, result);
        for plugin in &list.plugins {
            match self.call(Command::Reapply, plugin, Some(&rt), &request) {
                Err(error) if is_unknown_command(&error) => {}
                other => drop(other?),
            }
        }
        Ok(true)
    }
}

/// Whether a plugin has never heard of the command.
fn is_unknown_command(error: &Error) -> bool {
    matches!(error, Error::Plugin { source: CallError::Failed(object), .. }
        if object.code == code::INVALID_ENVIRONMENT && object.msg.contains("unknown CNI_COMMAND"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use serde_json::json;

    #[test]
    fn every_plugin_of_a_live_attachment_is_asked() {
        let bench = Bench::new();
        bench.answers("one", "ADD", "{}");
        bench.answers(
            "two",
            "ADD",
            r#"{"cniVersion":"1.0.0","dns":{"domain":"x"}}"#,
        );
        bench.fails(
            "one",
            "REAPPLY",
            r#"{"code":4,"msg":"unknown CNI_COMMAND: REAPPLY"}"#,
        );
        let list = bench
            .list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "one"}, {"type": "two"}]}));
        let mut rt = bench.attachment();
        rt.netns = "/proc/self/ns/net".into();
        bench.cni().add(&list, &rt).unwrap();
        let reapplied = bench.cni().reapply(None).unwrap();
        assert_eq!(
            reapplied,
            Reapplied {
                done: 1,
                skipped: Vec::new()
            }
        );
        let stdin = bench.stdin("two", "REAPPLY");
        assert_eq!(stdin["prevResult"]["dns"]["domain"], "x");
        assert_eq!(
            bench.cni().reapply(Some("other")).unwrap(),
            Reapplied::default()
        );
        bench.fails("two", "REAPPLY", r#"{"code":11,"msg":"busy"}"#);
        let error = bench.cni().reapply(None).unwrap_err();
        assert_eq!(error.cni().unwrap().code, 11);
    }

    #[test]
    fn an_attachment_without_its_namespace_is_passed_over() {
        let bench = Bench::new();
        bench.answers("one", "ADD", "{}");
        let list = bench.list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "one"}]}));
        let mut rt = bench.attachment();
        rt.netns = "/nonexistent/netns".into();
        bench.cni().add(&list, &rt).unwrap();
        let reapplied = bench.cni().reapply(None).unwrap();
        assert_eq!((reapplied.done, reapplied.skipped.len()), (0, 1));
        assert_eq!(reapplied.skipped[0].why, NETNS_GONE);
    }
}
