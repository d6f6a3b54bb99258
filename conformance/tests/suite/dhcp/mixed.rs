//! The reference set's plugin with our daemon, and its daemon with our plugin.

use conformance::chain::Attachment;
use conformance::plugin::find;
use conformance::probe::{PATIENCE, ping};
use serde_json::json;

use super::super::support::{reference, reference_directory, sandboxed};
use super::world::*;

/// The version that both speak, whatever the age of the reference set's release.
const VERSION: &str = "1.0.0";

sandboxed! {
    fn plugins_of_the_reference_set_get_their_leases_from_our_daemon(lab) {
        let server = dnsmasq(lab, &["--dhcp-option=121,10.88.1.0/24,192.0.2.6,0.0.0.0/0,192.0.2.9"]);
        let frames = Frames::listen(lab);
        let _daemon = daemon(lab, &[]);
        let theirs = reference();
        let list = list_of(VERSION, json!({"request": [{"option": "121"}], "provide": [{"option": "host-name", "value": "mixed"}]}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("c1", netns.path());
        let result = theirs.add(&list, &mut attachment).unwrap_or_else(|error| panic!("{error}"));
        server.expect(1);
        assert_eq!(server.leases()[0].1, "mixed");
        assert_eq!(result["routes"][0], json!({"dst": "10.88.1.0/24", "gw": "192.0.2.6"}), "{result}");
        ping(&netns, SERVER.into(), PATIENCE).unwrap();
        theirs.check(&list, &attachment).unwrap_or_else(|error| panic!("{error}"));
        // What they made, ours check and take away.
        lab.check(&list, &attachment);
        theirs.del(&list, &attachment).unwrap_or_else(|error| panic!("{error}"));
        frames.wait(SOON, "a release", |frame| frame.kind == RELEASE);
        server.expect(0);
        assert!(files().is_empty());
        let error = theirs.add(&list_of(VERSION, json!({"provide": [{"option": "nonsense"}]})), &mut attachment);
        assert!(error.unwrap_err().to_string().contains("nonsense"));
    }

    fn our_plugins_get_their_leases_from_the_daemon_of_the_reference_set(lab) {
        let server = dnsmasq(lab, &[]);
        let program = find("dhcp", &[reference_directory()]).unwrap();
        let keeper = daemon_of(lab, &program, &["-timeout", "1s"]);
        let list = list_of(VERSION, json!({"priority": 50}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("c1", netns.path());
        let result = lab.add(&list, &mut attachment);
        server.expect(1);
        assert_eq!(result["ips"][0]["gateway"], SERVER.to_string(), "{result}");
        ping(&netns, SERVER.into(), PATIENCE).unwrap();
        lab.check(&list, &attachment);
        lab.del(&list, &attachment);
        until(SOON, "the daemon to stop asking", || keeper.log().contains("c1/lan/eth0").then_some(()));
        // What it had in memory is lost with it; a DEL succeeds all the same, and our daemon takes its place.
        let mut again = Attachment::new("c1", netns.path());
        lab.add(&list, &mut again);
        keeper.kill();
        lab.del(&list, &again);
        let _ours = daemon(lab, &[]);
        lab.add(&list, &mut Attachment::new("c1", netns.path()));
        assert_eq!(files().len(), 1);
    }
}
