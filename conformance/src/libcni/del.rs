//! DEL.

use super::cache::{CacheError, Key};
use super::check::loose_version;
use super::{Cni, Command, Error, Result, RuntimeConf, attachment_request, network_name};
use cni_types::version::LaterCommand;
use cni_types::{NetworkList, Value};

impl Cni {
    /// Detaches a container: runs every plugin, last one first, past any that fails, and forgets
    /// the attachment when none did. Detaching what is not attached is no error.
    ///
    /// Since 0.4.0 plugins get the remembered result; one that cannot be used is forgotten.
    ///
    /// # Errors
    ///
    /// Every plugin that failed.
    pub fn del(&self, list: &NetworkList, rt: &RuntimeConf) -> Result<()> {
        let network = network_name(list)?;
        let key = Key::new(&network, &rt.container_id, &rt.ifname);
        let mut prev_result = None;
        if loose_version(list)? >= LaterCommand::Check.since().into() {
            match self.cached_result(list, &network, rt) {
                Ok(result) => prev_result = result,
                Err(Error::CachedResult { .. } | Error::Cache(CacheError::Damaged { .. })) => {
                    self.cache.remove(&key)?;
                }
                Err(_) => {}
            }
        }
        self.run_del(list, rt, prev_result.as_ref())?;
        Ok(self.cache.remove(&key)?)
    }

    pub(super) fn run_del(
        &self,
        list: &NetworkList,
        rt: &RuntimeConf,
        prev_result: Option<&Value>,
    ) -> Result<()> {
        let request = attachment_request(list, rt, prev_result);
        let run = |plugin| self.call(Command::Del, plugin, Some(rt), &request);
        Error::join(
            list.plugins
                .iter()
                .rev()
                .filter_map(|plugin| run(plugin).err())
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use serde_json::json;

    #[test]
    fn plugins_run_backwards_with_the_remembered_result() {
        let bench = Bench::new();
        for plugin in ["one", "two"] {
            bench.answers(
                plugin,
                "ADD",
                r#"{"cniVersion":"0.4.0","ips":[{"address":"10.0.0.2/8"}]}"#,
            );
        }
        let list = bench
            .list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "one"}, {"type": "two"}]}));
        bench.cni().add(&list, &bench.attachment()).unwrap();
        bench.cni().del(&list, &bench.attachment()).unwrap();
        assert_eq!(bench.calls()[2..], ["two DEL c1 eth0 ", "one DEL c1 eth0 "]);
        assert_eq!(
            bench.stdin("one", "DEL")["prevResult"]["cniVersion"],
            "1.0.0"
        );
        assert!(bench.cached().is_none());
        bench.cni().del(&list, &bench.attachment()).unwrap();
        assert_eq!(bench.stdin("one", "DEL").get("prevResult"), None);
    }

    #[test]
    fn failures_do_not_stop_it_and_are_all_reported() {
        let bench = Bench::new();
        for plugin in ["one", "two", "three"] {
            bench.answers(plugin, "ADD", "{}");
        }
        let list = bench.list(json!({"cniVersion": "1.0.0", "plugins": [
            {"type": "one"}, {"type": "two"}, {"type": "three"},
        ]}));
        bench.cni().add(&list, &bench.attachment()).unwrap();
        bench.fails("one", "DEL", r#"{"code":100,"msg":"first"}"#);
        bench.fails("three", "DEL", r#"{"code":101,"msg":"third"}"#);
        let error = bench.cni().del(&list, &bench.attachment()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "plugin type=\"three\" failed (delete): third\nplugin type=\"one\" failed (delete): first"
        );
        assert_eq!(error.cni().unwrap().code, 101);
        assert!(bench.calls().contains(&"two DEL c1 eth0 ".into()));
        assert!(bench.cached().is_some());
        bench.answers("one", "DEL", "");
        bench.answers("three", "DEL", "");
        bench.cni().del(&list, &bench.attachment()).unwrap();
        assert!(bench.cached().is_none());
    }

    #[test]
    fn versions_before_0_4_0_get_no_result() {
        let bench = Bench::new();
        bench.answers("one", "ADD", r#"{"ips":[{"address":"10.0.0.2/8"}]}"#);
        let list = bench.list(json!({"cniVersion": "0.3.1", "plugins": [{"type": "one"}]}));
        bench.cni().add(&list, &bench.attachment()).unwrap();
        bench.cni().del(&list, &bench.attachment()).unwrap();
        assert_eq!(bench.stdin("one", "DEL").get("prevResult"), None);
        assert!(bench.cached().is_none());
    }

    #[test]
    fn an_unusable_memory_is_forgotten() {
        for content in [
            "{",
            r#"{"cniVersion":"9.9.9"}"#,
            r#"{"cniVersion":"0.4.0","ips":[{}]}"#,
        ] {
            let bench = Bench::new();
            bench.write_cache_file("net-c1-eth0", content);
            let list = bench.list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "one"}]}));
            bench.cni().del(&list, &bench.attachment()).unwrap();
            assert_eq!(
                bench.stdin("one", "DEL").get("prevResult"),
                None,
                "{content}"
            );
            assert!(bench.cache_files().is_empty(), "{content}");
        }
    }
}
