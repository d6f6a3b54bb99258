//! CHECK.

use super::cache::Key;
use super::{Cni, Command, Error, Result, RuntimeConf, attachment_request, network_name};
use cni_types::version::{LaterCommand, LooseVersion};
use cni_types::{NetworkList, NetworkName, SpecVersion, Value, result};

impl Cni {
    /// Asks every plugin whether the attachment still is as ADD left it. Each gets the result of
    /// the whole ADD, which must be remembered.
    ///
    /// # Errors
    ///
    /// The first plugin that is not content, a version without CHECK, or an attachment that is
    /// not remembered.
    pub fn check(&self, list: &NetworkList, rt: &RuntimeConf) -> Result<()> {
        let network = network_name(list)?;
        if loose_version(list)? < LaterCommand::Check.since().into() {
            return Err(Error::NoCheck(list.cni_version.clone()));
        }
        if list.disable_check {
            return Ok(());
        }
        let cached = self
            .cached_result(list, &network, rt)?
            .ok_or_else(|| Error::NotCached {
                network: list.name.clone(),
                id: rt.container_id.to_string(),
                ifname: rt.ifname.to_string(),
            })?;
        let request = attachment_request(list, rt, Some(&cached));
        for plugin in &list.plugins {
            self.call(Command::Check, plugin, Some(rt), &request)?;
        }
        Ok(())
    }

    /// The remembered result in the list's version.
    pub(super) fn cached_result(
        &self,
        list: &NetworkList,
        network: &NetworkName,
        rt: &RuntimeConf,
    ) -> Result<Option<Value>> {
        let key = Key::new(network, &rt.container_id, &rt.ifname);
        let Some(cached) = self.cache.result(&key)? else {
            return Ok(None);
        };
        let version =
            SpecVersion::of_config(&list.cni_version).map_err(|source| Error::Version {
                network: list.name.clone(),
                source,
            })?;
        result::convert(&cached, SpecVersion::IMPLIED, version)
            .map(Some)
            .map_err(|source| Error::CachedResult {
                network: list.name.clone(),
                source,
            })
    }
}

/// The list's version, only for comparing.
pub(super) fn loose_version(list: &NetworkList) -> Result<LooseVersion> {
    list.cni_version
        .parse()
        .map_err(|source| Error::VersionSyntax {
            network: list.name.clone(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use serde_json::json;

    #[test]
    fn every_plugin_sees_the_result_of_the_whole_add() {
        let bench = Bench::new();
        bench.answers("one", "ADD", "{}");
        bench.answers(
            "two",
            "ADD",
            r#"{"cniVersion":"1.0.0","dns":{"domain":"x"}}"#,
        );
        let list = bench
            .list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "one"}, {"type": "two"}]}));
        bench.cni().add(&list, &bench.attachment()).unwrap();
        bench.cni().check(&list, &bench.attachment()).unwrap();
        for plugin in ["one", "two"] {
            assert_eq!(
                bench.stdin(plugin, "CHECK")["prevResult"]["dns"]["domain"],
                "x"
            );
        }
        bench.fails("one", "CHECK", r#"{"code":100,"msg":"gone"}"#);
        let error = bench.cni().check(&list, &bench.attachment()).unwrap_err();
        assert_eq!(error.cni().unwrap().code, 100);
        assert!(!bench.calls().last().unwrap().starts_with("two"));
    }

    #[test]
    fn what_cannot_be_checked_is_said() {
        let bench = Bench::new();
        let list = bench.list(json!({"cniVersion": "0.4.0", "plugins": [{"type": "one"}]}));
        let error = bench.cni().check(&list, &bench.attachment()).unwrap_err();
        assert!(matches!(error, Error::NotCached { .. }), "{error}");
        let old = bench.list(
            json!({"cniVersion": "0.3.1", "disableCheck": true, "plugins": [{"type": "one"}]}),
        );
        let error = bench.cni().check(&old, &bench.attachment()).unwrap_err();
        assert!(matches!(error, Error::NoCheck(_)), "{error}");
        let off = bench.list(
            json!({"cniVersion": "0.4.0", "disableCheck": true, "plugins": [{"type": "one"}]}),
        );
        bench.cni().check(&off, &bench.attachment()).unwrap();
        assert!(bench.calls().is_empty());
    }
    #[test]
    fn an_unusable_memory_is_said() {
        for (content, text) in [
            ("{", "net-c1-eth0 is damaged: "),
            (
                r#"{"cniVersion":"9.9.9"}"#,
                r#"unsupported CNI result version "9.9.9""#,
            ),
            (
                r#"{"ips":[null],"cniVersion":"1.0.0"}"#,
                "ips: element 0 is null",
            ),
        ] {
            let bench = Bench::new();
            bench.write_cache_file("net-c1-eth0", content);
            let list = json!({"cniVersion": "0.4.0", "plugins": [{"type": "one"}]});
            let error = bench.cni().check(&bench.list(list), &bench.attachment());
            let error = error.unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
            assert!(bench.calls().is_empty());
        }
    }

    #[test]
    fn a_bare_result_of_the_first_generation_is_converted() {
        let bench = Bench::new();
        let content = r#"{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.2/8"}}"#;
        bench.write_cache_file("net-c1-eth0", content);
        let list = bench.list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "one"}]}));
        bench.cni().check(&list, &bench.attachment()).unwrap();
        let want = json!({"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.2/8"}]});
        assert_eq!(bench.stdin("one", "CHECK")["prevResult"], want);
    }
}
