//! Addresses: adding, listing, deleting, several requests at once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use common::{host_and_container, veth};
use ipnetwork::IpNetwork;
use netlink::{AddressFlags, LinkChange, NewAddress, NewRoute, Request};

fn net(text: &str) -> IpNetwork {
    text.parse().unwrap()
}

sandboxed! {
    fn added_listed_and_deleted() {
        let (host, container) = host_and_container();
        let eth0 = veth(&host, &container).container;
        for ip in ["10.1.2.3/24", "10.9.9.9/32", "fd00::3/64"] {
            container.add_address(&eth0, &NewAddress::new(net(ip)).nodad()).unwrap();
        }
        let seen: Vec<_> = container.addresses(&eth0).unwrap().into_iter().map(|a| a.ip).collect();
        assert_eq!(seen, [net("10.1.2.3/24"), net("10.9.9.9/32"), net("fd00::3/64")]);
        assert!(container.addresses(&container.link("lo").unwrap()).unwrap().is_empty());
        assert_eq!(container.all_addresses().unwrap().len(), 3);
        assert!(host.addresses(&host.link("lo").unwrap()).unwrap().iter().any(|a| a.ip == net("127.0.0.1/8") && a.scope == 254));

        let error = container.add_address(&eth0, &NewAddress::new(net("10.1.2.3/24"))).unwrap_err();
        assert!(error.is_exists());
        assert!(error.to_string().starts_with("cannot add address 10.1.2.3/24 to eth0: file exists"), "{error}");

        container.delete_address(&eth0, net("10.1.2.3/24")).unwrap();
        let error = container.delete_address(&eth0, net("10.1.2.3/24")).unwrap_err();
        assert!(error.is_not_found(), "{error}");
        assert_eq!(container.addresses(&eth0).unwrap().len(), 2);
    }

    fn broadcast_is_set_where_there_is_one() {
        let (host, container) = host_and_container();
        let eth0 = veth(&host, &container).container;
        for ip in ["10.1.2.3/24", "10.9.9.8/31", "10.9.9.9/32"] {
            container.add_address(&eth0, &NewAddress::new(net(ip))).unwrap();
        }
        container.set_up(&eth0).unwrap();
        let broadcasts: Vec<_> = container
            .routes_in(netlink::TABLE_LOCAL, false)
            .unwrap()
            .into_iter()
            .filter(|route| route.kind == 3)
            .map(|route| route.dst)
            .collect();
        assert_eq!(broadcasts, [net("10.1.2.255/32")]);
    }

    /// Without detection an address can be used at once; with it, it is tentative. The flag is none of IPv4's business.
    fn flags_reach_the_kernel() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container);
        host.set_up(&made.host).unwrap();
        container.set_up(&made.container).unwrap();
        container.add_address(&made.container, &NewAddress::new(net("fd00::1/64")).nodad()).unwrap();
        container.add_address(&made.container, &NewAddress::new(net("fd00::2/64"))).unwrap();
        let plain = NewAddress { no_prefix_route: true, ..NewAddress::new(net("10.1.2.3/24")).nodad() };
        container.add_address(&made.container, &plain).unwrap();
        let all = container.addresses(&made.container).unwrap();
        let of = |ip: &str| all.iter().find(|a| a.ip == net(ip)).unwrap();
        assert!(!of("fd00::1/64").is_tentative() && of("fd00::1/64").flags.contains(AddressFlags::Nodad));
        assert!(of("fd00::2/64").is_tentative());
        assert!(of("10.1.2.3/24").flags.contains(AddressFlags::Noprefixroute));
        let routes = container.routes_in(netlink::TABLE_MAIN, false).unwrap();
        assert!(routes.is_empty(), "{routes:?}");
    }

    /// As after a kernel that was short of memory when the link went up.
    fn an_address_that_is_confirmed_has_its_route() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container);
        host.set_up(&made.host).unwrap();
        container.set_up(&made.container).unwrap();
        let address = NewAddress::new(net("fd00::2/64")).nodad();
        container.add_address(&made.container, &address).unwrap();
        let to_network = || container.routes_in(netlink::TABLE_MAIN, true).unwrap().into_iter().find(|route| route.dst == net("fd00::/64"));
        let before = to_network().unwrap();
        container.execute(&address.confirm(&made.container)).unwrap();
        assert_eq!(to_network(), Some(before.clone()), "it changes nothing");
        container.delete_route(&NewRoute::new(net("fd00::/64"), made.container.index)).unwrap();
        assert!(to_network().is_none());
        let gateway = NewRoute::new(net("2001:db8::/32"), made.container.index).via("fd00::1".parse().unwrap());
        assert!(container.add_route(&gateway).unwrap_err().is_unreachable());
        container.execute(&address.confirm(&made.container)).unwrap();
        assert_eq!(to_network(), Some(before));
        container.add_route(&gateway).unwrap();
        let seen = container.addresses(&made.container).unwrap();
        let kept = seen.iter().find(|one| one.ip == net("fd00::2/64")).unwrap();
        assert!(!kept.is_tentative() && kept.flags.contains(AddressFlags::Nodad));
    }

    /// What a plugin does in a container goes out in one system call.
    fn several_requests_at_once() {
        let (host, container) = host_and_container();
        let eth0 = veth(&host, &container).container;
        let requests = [
            NewAddress::new(net("10.1.2.3/24")).request(&eth0),
            NewAddress::new(net("fd00::3/64")).nodad().request(&eth0),
            LinkChange::new().up(true).request(&eth0).unwrap(),
        ];
        container.execute_all(&requests).unwrap();
        assert!(container.link("eth0").unwrap().up);
        assert_eq!(container.addresses(&eth0).unwrap().iter().filter(|a| a.scope == 0).count(), 2);
    }

    /// A failure is told with its own object, and those behind it are carried out all the same.
    fn each_request_has_its_verdict() {
        let (host, container) = host_and_container();
        let eth0 = veth(&host, &container).container;
        let twice = NewAddress::new(net("10.1.2.3/24")).request(&eth0);
        let requests =
            [twice.clone(), twice, Request::delete_link(&4711), NewAddress::new(net("10.1.2.4/24")).request(&eth0)];
        let verdicts = container.execute_each(&requests).unwrap();
        assert!(verdicts[0].is_ok() && verdicts[3].is_ok());
        assert!(verdicts[1].as_ref().unwrap_err().is_exists());
        let text = verdicts[2].as_ref().unwrap_err().to_string();
        assert!(text.starts_with("cannot delete link #4711: no such device"), "{text}");
        assert_eq!(container.addresses(&eth0).unwrap().len(), 2);
        let first = container.execute_all(&requests).unwrap_err();
        assert!(first.to_string().contains("10.1.2.3/24"), "{first}");
        assert!(container.execute_each(&[]).unwrap().is_empty());
        container.execute_all(&[]).unwrap();
    }

    /// More answers than the receive buffer of one datagram holds.
    fn long_batches_are_answered_in_full() {
        let (host, container) = host_and_container();
        let eth0 = veth(&host, &container).container;
        let requests: Vec<_> = (0..200)
            .map(|n| NewAddress::new(net(&format!("10.1.{n}.1/24"))).request(&eth0))
            .collect();
        container.execute_all(&requests).unwrap();
        assert_eq!(container.addresses(&eth0).unwrap().len(), 200);
        let verdicts = container.execute_each(&requests).unwrap();
        assert!(verdicts.iter().all(|v| v.as_ref().unwrap_err().is_exists()));
    }
}
