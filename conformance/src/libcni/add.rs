//! ADD, and taking it back.

use super::cache::Key;
use super::error::AnswerError;
use super::{Cni, Command, Error, Result, RuntimeConf, attachment_request, network_name};
use cni_types::{NetworkList, PluginConf, SpecVersion, Value, json, result};

impl Cni {
    /// Attaches a container: runs every plugin in order and remembers the last one's result,
    /// which is in the list's version. `None` if the list has no plugins.
    ///
    /// When a plugin fails, or the result cannot be remembered, DEL takes back what was done,
    /// unless the attachment was known before: then what there is belongs to the earlier ADD.
    ///
    /// # Errors
    ///
    /// The first failure; [`Error::NotUndone`] if something is left.
    pub fn add(&self, list: &NetworkList, rt: &RuntimeConf) -> Result<Option<Value>> {
        let network = network_name(list)?;
        let version =
            SpecVersion::of_config(&list.cni_version).map_err(|source| Error::Version {
                network: list.name.clone(),
                source,
            })?;
        let key = Key::new(&network, &rt.container_id, &rt.ifname);
        let known = self.cache.claim(&key)?;
        if list.plugins.is_empty() {
            return Ok(None);
        }
        let mut reached = 0;
        let outcome = self
            .run_add(list, rt, version, &mut reached)
            .and_then(|result| {
                self.cache.write(&key, list.bytes(), rt, &result)?;
                Ok(result)
            });
        match outcome {
            Ok(result) => Ok(Some(result)),
            Err(cause) if known => Err(cause),
            Err(cause) => {
                let undone = self.run_del(list, rt, None);
                let left = undone.or_else(|undo| undo.without_unfound(list.plugins.get(..reached)));
                Err(match left {
                    Ok(()) => cause,
                    Err(undo) => Error::NotUndone {
                        cause: Box::new(cause),
                        undo: Box::new(undo),
                    },
                })
            }
        }
    }

    /// `reached` is the number of plugins that have been executed with success.
    fn run_add(
        &self,
        list: &NetworkList,
        rt: &RuntimeConf,
        version: SpecVersion,
        reached: &mut usize,
    ) -> Result<Value> {
        let mut result = None;
        for plugin in &list.plugins {
            let request = attachment_request(list, rt, result.as_ref());
            let printed = self.call(Command::Add, plugin, Some(rt), &request)?;
            *reached += 1;
            result = Some(answer(plugin, &printed, version)?);
        }
        Ok(result.unwrap_or_default())
    }
}

/// The result in the list's version. Plugins may answer in another one, or name none.
fn answer(plugin: &PluginConf, printed: &[u8], version: SpecVersion) -> Result<Value> {
    let convert = || -> std::result::Result<Value, AnswerError> {
        let value = json::parse(printed)?;
        Ok(result::convert(&value, version, version)?)
    };
    convert().map_err(|source| Error::Answer {
        plugin: plugin.plugin_type.clone(),
        name: plugin.name.clone(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use serde_json::json;

    #[test]
    fn results_are_handed_on_and_remembered() {
        let bench = Bench::new();
        bench.answers(
            "one",
            "ADD",
            r#"{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.2/8"}]}"#,
        );
        bench.answers(
            "two",
            "ADD",
            r#"{"ips":[{"version":"4","address":"10.0.0.3/8"}],"dns":{"domain":"x"}}"#,
        );
        let list = bench.list(json!({"cniVersion": "0.4.0", "plugins": [
            {"type": "one"}, {"type": "two", "capabilities": {"mac": true}},
        ]}));
        let mut rt = bench.attachment();
        rt.capability_args.insert("mac".into(), json!("aa"));
        rt.capability_args.insert("ips".into(), json!([]));
        rt.args.push(("K".into(), "a=b".into()));
        let result = bench.cni().add(&list, &rt).unwrap().unwrap();
        let want = json!({
            "cniVersion": "0.4.0",
            "ips": [{"version": "4", "address": "10.0.0.3/8"}],
            "dns": {"domain": "x"},
        });
        assert_eq!(result, want);
        assert_eq!(
            bench.calls(),
            ["one ADD c1 eth0 K=a=b", "two ADD c1 eth0 K=a=b"]
        );
        assert_eq!(bench.stdin("one", "ADD").get("prevResult"), None);
        let second = bench.stdin("two", "ADD");
        assert_eq!(
            second["prevResult"]["ips"][0],
            json!({"version": "4", "address": "10.0.0.2/8"})
        );
        assert_eq!(second["runtimeConfig"], json!({"mac": "aa"}));
        assert_eq!(second["name"], "net");
        let cached = bench.cached().unwrap();
        assert_eq!(cached.result, want);
        assert_eq!(cached.config, list.bytes());
        assert_eq!(cached.args, rt.args);
        assert_eq!(cached.capability_args, rt.capability_args);
        assert_eq!(cached.netns, rt.netns);
    }

    #[test]
    fn a_failed_add_is_taken_back() {
        let bench = Bench::new();
        bench.answers("one", "ADD", "{}");
        bench.fails("two", "ADD", r#"{"code":11,"msg":"busy","details":"dd"}"#);
        let list = bench.list(json!({"plugins": [{"type": "one"}, {"type": "two", "name": "2nd"}], "cniVersion": "1.0.0"}));
        let error = bench.cni().add(&list, &bench.attachment()).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"plugin type="two" name="2nd" failed (add): busy; dd"#
        );
        assert_eq!(error.cni().unwrap().code, 11);
        assert_eq!(
            bench.calls(),
            [
                "one ADD c1 eth0 ",
                "two ADD c1 eth0 ",
                "two DEL c1 eth0 ",
                "one DEL c1 eth0 "
            ]
        );
        assert!(bench.cached().is_none());
    }

    #[test]
    fn what_is_left_is_said() {
        let bench = Bench::new();
        bench.fails("one", "ADD", r#"{"code":7,"msg":"bad"}"#);
        bench.fails("one", "DEL", r#"{"code":999,"msg":"stuck"}"#);
        let list = bench.list(json!({"plugins": [{"type": "one"}], "cniVersion": "1.0.0"}));
        let error = bench.cni().add(&list, &bench.attachment()).unwrap_err();
        assert!(
            error.to_string().ends_with(
                r#"taking it back failed too: plugin type="one" failed (delete): stuck"#
            ),
            "{error}"
        );
        assert_eq!(error.cni().unwrap().code, 7);
    }

    #[test]
    fn a_second_add_that_fails_leaves_the_first_alone() {
        let bench = Bench::new();
        bench.answers("one", "ADD", "{}");
        let list = bench.list(json!({"plugins": [{"type": "one"}], "cniVersion": "1.0.0"}));
        bench.cni().add(&list, &bench.attachment()).unwrap();
        bench.fails("one", "ADD", r#"{"code":999,"msg":"exists"}"#);
        bench.cni().add(&list, &bench.attachment()).unwrap_err();
        assert!(!bench.calls().iter().any(|call| call.contains("DEL")));
        assert!(bench.cached().is_some());
    }

    #[test]
    fn an_answer_that_is_no_result_fails_the_add() {
        for printed in [
            "",
            "[]",
            "{}{}",
            r#"{"cniVersion":"7.0.0"}"#,
            r#"{"ips":[{}]}"#,
        ] {
            let bench = Bench::new();
            bench.answers("one", "ADD", printed);
            let list = bench.list(json!({"plugins": [{"type": "one"}], "cniVersion": "1.0.0"}));
            let error = bench.cni().add(&list, &bench.attachment()).unwrap_err();
            assert!(
                matches!(error, Error::Answer { .. }),
                "{printed:?}: {error}"
            );
            assert_eq!(bench.calls().last().unwrap(), "one DEL c1 eth0 ");
        }
    }

    #[test]
    fn nothing_runs_under_a_bad_name_or_version() {
        let bench = Bench::new();
        for list in [
            json!({"name": "a b", "plugins": [{"type": "one"}]}),
            json!({"name": "", "plugins": [{"type": "one"}]}),
            json!({"name": "../x", "plugins": [{"type": "one"}]}),
            json!({"cniVersion": "9.9.9", "plugins": [{"type": "one"}]}),
        ] {
            bench
                .cni()
                .add(&bench.list(list), &bench.attachment())
                .unwrap_err();
        }
        let empty = bench.list(json!({"cniVersion": "1.0.0"}));
        assert_eq!(bench.cni().add(&empty, &bench.attachment()).unwrap(), None);
        assert!(bench.calls().is_empty());
        let missing = bench.list(json!({"plugins": [{"type": "nope"}]}));
        let error = bench
            .cni()
            .add(&missing, &bench.attachment())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(r#"failed to find plugin "nope" in path ["#),
            "{error}"
        );
    }

    #[test]
    fn a_cache_that_cannot_be_written_takes_the_add_back() {
        let bench = Bench::new();
        bench.answers("one", "ADD", "{}");
        let list = bench.list(json!({"plugins": [{"type": "one"}], "cniVersion": "1.0.0"}));
        let cni = bench.cni().cache_dir("/dev/null/x");
        let error = cni.add(&list, &bench.attachment()).unwrap_err();
        assert!(error.to_string().contains("/dev/null/x"), "{error}");
        let calls = bench.calls();
        assert!(
            calls.is_empty() || calls.last().unwrap().contains("DEL"),
            "{calls:?}"
        );
    }
}
