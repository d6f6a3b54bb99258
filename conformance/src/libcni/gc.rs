//! GC and STATUS.

use super::cache::Cached;
use super::check::loose_version;
use super::{Cni, Command, Error, Result, list_request, network_name};
use cni_types::conf::Request;
use cni_types::version::LaterCommand;
use cni_types::{Attachment, NetworkList, SpecVersion, code};
use nix::errno::Errno;
use nix::sys::statfs::{NSFS_MAGIC, PROC_SUPER_MAGIC, statfs};
use std::path::Path;

impl Cni {
    /// Frees what belongs to no valid attachment of the network: detaches every remembered one
    /// that is not in `valid`, then, since 1.1.0, lets each plugin collect the rest.
    ///
    /// A remembered attachment is detached with the configuration it was made with, if that still
    /// can be read. Everything is tried, whatever fails.
    ///
    /// # Errors
    ///
    /// Every failure.
    pub fn gc(&self, list: &NetworkList, valid: &[Attachment]) -> Result<()> {
        let network = network_name(list)?;
        if list.disable_gc {
            return Ok(());
        }
        let mut errors = Vec::new();
        let mut stale = self.cache.attachments()?;
        stale.retain(|cached| {
            cached.network == network.as_str() && !valid.contains(&cached.attachment())
        });
        let of = stale.len();
        for (done, cached) in stale.into_iter().enumerate() {
            self.tell(done, of, &cached);
            if let Err(source) = self.del_stale(list, &cached) {
                errors.push(Error::Stale {
                    id: cached.container_id,
                    ifname: cached.ifname,
                    source: Box::new(source),
                });
            }
        }
        if loose_version(list).is_ok_and(|version| version >= LaterCommand::Gc.since().into()) {
            let request = Request {
                valid_attachments: Some(valid),
                ..list_request(list)
            };
            let run = |plugin| self.call(Command::Gc, plugin, None, &request);
            errors.extend(list.plugins.iter().filter_map(|plugin| run(plugin).err()));
        }
        Error::join(errors)
    }

    fn del_stale(&self, current: &NetworkList, cached: &Cached) -> Result<()> {
        let rt = cached.runtime_conf()?;
        match cached.list() {
            Some(list) => self.del(&list, &rt),
            None => self.del(current, &rt),
        }
    }

    /// The remembered attachments of the network whose network namespace still exists, or may.
    ///
    /// # Errors
    ///
    /// When the cache cannot be read, or the list's name is bad.
    pub fn live_attachments(&self, list: &NetworkList) -> Result<Vec<Attachment>> {
        let network = network_name(list)?;
        let all = self.cache.attachments()?;
        let live = all
            .iter()
            .filter(|cached| cached.network == network.as_str() && may_exist(&cached.netns));
        Ok(live.map(Cached::attachment).collect())
    }

    /// Asks every plugin whether it could serve an ADD. Before 1.1.0 nobody can be asked.
    ///
    /// # Errors
    ///
    /// The first plugin that could not; its code is in [`Error::cni`].
    pub fn status(&self, list: &NetworkList) -> Result<()> {
        if loose_version(list).is_ok_and(|version| version >= LaterCommand::Status.since().into()) {
            for plugin in &list.plugins {
                self.call(Command::Status, plugin, None, &list_request(list))?;
            }
        }
        Ok(())
    }

    /// As [`status`](Self::status), but every plugin is asked whatever the list's version, in the newest version that
    /// has the question, and every one that could not serve is told.
    pub fn status_of_all(&self, list: &NetworkList) -> Vec<Error> {
        let mut newest = list.clone();
        newest.cni_version = SpecVersion::CURRENT.as_str().to_owned();
        let asked = list
            .plugins
            .iter()
            .map(|plugin| self.call(Command::Status, plugin, None, &list_request(&newest)));
        asked
            .filter_map(Result::err)
            .filter(|error| {
                let code = error.cni().map(|error| error.code);
                // A plugin of an older time knows neither the version nor the command.
                code != Some(code::INCOMPATIBLE_VERSION) && code != Some(code::INVALID_ENVIRONMENT)
            })
            .collect()
    }
}

/// Whether a path may lead to a namespace: only one that is certainly gone, or something else by
/// now, does not. Old kernels keep namespaces in proc.
pub(super) fn may_exist(netns: &Path) -> bool {
    match statfs(netns) {
        _ if netns.as_os_str().is_empty() => true,
        Ok(found) => [NSFS_MAGIC, PROC_SUPER_MAGIC].contains(&found.filesystem_type()),
        Err(error) => !matches!(error, Errno::ENOENT | Errno::ENOTDIR),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use cni_types::ContainerId;
    use serde_json::json;

    fn attachment(id: &str) -> Attachment {
        Attachment {
            container_id: id.into(),
            ifname: "eth0".into(),
        }
    }

    fn populated(bench: &Bench, list: &NetworkList) {
        for plugin in &list.plugins {
            bench.answers(&plugin.plugin_type, "ADD", "{}");
        }
        for id in ["c1", "c2"] {
            let mut rt = bench.attachment();
            rt.container_id = ContainerId::new(id).unwrap();
            rt.args.push(("FROM".into(), id.into()));
            bench.cni().add(list, &rt).unwrap();
        }
        bench.forget_calls();
    }

    #[test]
    fn stale_attachments_are_deleted_and_valid_ones_listed() {
        let bench = Bench::new();
        let list = bench.list(json!({"cniVersion": "1.1.0", "plugins": [{"type": "one"}]}));
        populated(&bench, &list);
        bench.cni().gc(&list, &[attachment("c2")]).unwrap();
        assert_eq!(bench.calls(), ["one DEL c1 eth0 FROM=c1", "one GC   "]);
        let request = bench.stdin("one", "GC");
        let want = json!([{"containerID": "c2", "ifname": "eth0"}]);
        assert_eq!(request["cni.dev/valid-attachments"], want);
        assert_eq!(request["cni.dev/attachments"], want);
        assert_eq!(request.get("prevResult"), None);
        assert_eq!(bench.cache_files(), ["net-c2-eth0"]);
        bench.cni().gc(&list, &[]).unwrap();
        assert_eq!(
            bench.stdin("one", "GC")["cni.dev/valid-attachments"],
            json!([])
        );
        assert!(bench.cache_files().is_empty());
    }

    #[test]
    fn an_older_version_only_deletes() {
        let bench = Bench::new();
        let list = bench.list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "one"}]}));
        populated(&bench, &list);
        bench.cni().gc(&list, &[]).unwrap();
        assert_eq!(
            bench.calls(),
            ["one DEL c1 eth0 FROM=c1", "one DEL c2 eth0 FROM=c2"]
        );
    }

    #[test]
    fn stale_attachments_are_deleted_with_their_own_configuration() {
        let bench = Bench::new();
        let then = bench.list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "one"}]}));
        populated(&bench, &then);
        let now = bench.list(json!({"cniVersion": "1.1.0", "plugins": [{"type": "two"}]}));
        bench.cni().gc(&now, &[attachment("c2")]).unwrap();
        assert_eq!(bench.calls(), ["one DEL c1 eth0 FROM=c1", "two GC   "]);
    }

    #[test]
    fn other_networks_and_other_files_are_left_alone() {
        let bench = Bench::new();
        let list = bench.list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "one"}]}));
        populated(&bench, &list);
        bench.write_cache_file("net-zz-eth0", "rubbish");
        let other = bench
            .list(json!({"name": "other", "cniVersion": "1.1.0", "plugins": [{"type": "one"}]}));
        bench.cni().gc(&other, &[]).unwrap();
        assert_eq!(bench.calls(), ["one GC   "]);
        assert_eq!(bench.cache_files().len(), 3);
    }

    #[test]
    fn failures_do_not_stop_it() {
        let bench = Bench::new();
        let list = bench
            .list(json!({"cniVersion": "1.1.0", "plugins": [{"type": "one"}, {"type": "two"}]}));
        populated(&bench, &list);
        bench.fails("one", "DEL", r#"{"code":100,"msg":"stuck"}"#);
        bench.fails("one", "GC", r#"{"code":100,"msg":"lost"}"#);
        let error = bench
            .cni()
            .gc(&list, &[attachment("c2")])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("failed to delete stale attachment c1 eth0"),
            "{error}"
        );
        assert!(
            error.contains(r#"plugin type="one" failed (gc): lost"#),
            "{error}"
        );
        assert!(bench.calls().contains(&"two GC   ".into()));
    }

    #[test]
    fn live_is_what_has_a_namespace() {
        let bench = Bench::new();
        let list = bench.list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "one"}]}));
        bench.answers("one", "ADD", "{}");
        let netns = [
            "/proc/self/ns/net",
            "",
            "/nonexistent",
            "/dev/null",
            "/dev/null/x",
            "/tmp",
        ];
        for (index, netns) in netns.iter().enumerate() {
            let mut rt = bench.attachment();
            rt.container_id = ContainerId::new(format!("c{index}")).unwrap();
            rt.netns = netns.into();
            bench.cni().add(&list, &rt).unwrap();
        }
        let live = bench.cni().live_attachments(&list).unwrap();
        assert_eq!(live, [attachment("c0"), attachment("c1")]);
        let other = bench.list(json!({"name": "other", "plugins": [{"type": "one"}]}));
        assert_eq!(bench.cni().live_attachments(&other).unwrap(), []);
    }

    #[test]
    fn switched_off_or_without_cache() {
        let bench = Bench::new();
        let off = bench
            .list(json!({"cniVersion": "1.1.0", "disableGC": true, "plugins": [{"type": "one"}]}));
        populated(&bench, &off);
        bench.cni().gc(&off, &[]).unwrap();
        assert!(bench.calls().is_empty());
        let on = bench.list(json!({"cniVersion": "1.1.0", "plugins": [{"type": "one"}]}));
        let nowhere = bench.cni().cache_dir(bench.path().join("absent"));
        nowhere.gc(&on, &[]).unwrap();
        assert_eq!(bench.calls(), ["one GC   "]);
        let unreadable = bench.cni().cache_dir("/dev/null/x");
        assert!(unreadable.gc(&on, &[]).is_err());
    }

    #[test]
    fn status_stops_at_the_first_that_is_not_ready() {
        let bench = Bench::new();
        bench.fails("two", "STATUS", r#"{"code":50,"msg":"not ready"}"#);
        let list = bench.list(json!({"cniVersion": "1.1.0", "plugins": [{"type": "one"}, {"type": "two"}, {"type": "three"}]}));
        let error = bench.cni().status(&list).unwrap_err();
        assert_eq!(error.cni().unwrap().code, 50);
        assert_eq!(bench.calls(), ["one STATUS   ", "two STATUS   "]);
        let old = bench.list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "two"}]}));
        bench.cni().status(&old).unwrap();
    }
}
