//! Numbers of linux/netfilter/nf_tables.h and its neighbours, under their kernel names.
#![allow(missing_docs)]

/// Message types, without the subsystem.
pub mod msg {
    pub const NEWTABLE: u8 = 0;
    pub const GETTABLE: u8 = 1;
    pub const DELTABLE: u8 = 2;
    pub const NEWCHAIN: u8 = 3;
    pub const GETCHAIN: u8 = 4;
    pub const DELCHAIN: u8 = 5;
    pub const NEWRULE: u8 = 6;
    pub const GETRULE: u8 = 7;
    pub const DELRULE: u8 = 8;
    pub const NEWSET: u8 = 9;
    pub const GETSET: u8 = 10;
    pub const DELSET: u8 = 11;
    pub const NEWSETELEM: u8 = 12;
    pub const GETSETELEM: u8 = 13;
    pub const DELSETELEM: u8 = 14;
    pub const GETGEN: u8 = 16;
}

/// Message flags (linux/netlink.h).
pub mod flag {
    pub const REQUEST: u16 = 0x1;
    pub const ACK: u16 = 0x4;
    pub const DUMP_INTR: u16 = 0x10;
    pub const DUMP: u16 = 0x300;
    pub const REPLACE: u16 = 0x100;
    pub const EXCL: u16 = 0x200;
    pub const CREATE: u16 = 0x400;
    pub const APPEND: u16 = 0x800;
}

pub const NFNL_SUBSYS_NFTABLES: u8 = 10;

pub const LIST_ELEM: u16 = 1;

pub mod table {
    pub const NAME: u16 = 1;
    pub const FLAGS: u16 = 2;
    pub const USE: u16 = 3;
    pub const HANDLE: u16 = 4;
    pub const USERDATA: u16 = 6;
}

pub mod hook {
    pub const HOOKNUM: u16 = 1;
    pub const PRIORITY: u16 = 2;
    /// Hook numbers of ip, ip6, inet and bridge.
    pub const PREROUTING: u32 = 0;
    pub const INPUT: u32 = 1;
    pub const FORWARD: u32 = 2;
    pub const OUTPUT: u32 = 3;
    pub const POSTROUTING: u32 = 4;
}

pub mod chain {
    pub const TABLE: u16 = 1;
    pub const HANDLE: u16 = 2;
    pub const NAME: u16 = 3;
    pub const HOOK: u16 = 4;
    pub const POLICY: u16 = 5;
    pub const USE: u16 = 6;
    pub const TYPE: u16 = 7;
    pub const FLAGS: u16 = 10;
    pub const USERDATA: u16 = 12;
}

pub mod rule {
    pub const TABLE: u16 = 1;
    pub const CHAIN: u16 = 2;
    pub const HANDLE: u16 = 3;
    pub const EXPRESSIONS: u16 = 4;
    pub const POSITION: u16 = 6;
    pub const USERDATA: u16 = 7;
}

pub mod expr {
    pub const NAME: u16 = 1;
    pub const DATA: u16 = 2;
}

pub mod set {
    pub const TABLE: u16 = 1;
    pub const NAME: u16 = 2;
    pub const FLAGS: u16 = 3;
    pub const KEY_TYPE: u16 = 4;
    pub const KEY_LEN: u16 = 5;
    pub const DATA_TYPE: u16 = 6;
    pub const DATA_LEN: u16 = 7;
    pub const DESC: u16 = 9;
    pub const ID: u16 = 10;
    pub const USERDATA: u16 = 13;
    pub const HANDLE: u16 = 16;
    pub const DESC_SIZE: u16 = 1;
    pub const DESC_CONCAT: u16 = 2;
    pub const FIELD_LEN: u16 = 1;
    pub const F_CONSTANT: u32 = 2;
    pub const F_INTERVAL: u32 = 4;
    pub const F_MAP: u32 = 8;
    pub const F_CONCAT: u32 = 0x80;
    pub const DATA_VERDICT: u32 = 0xffff_ff00;
}

pub mod elem {
    pub const LIST_TABLE: u16 = 1;
    pub const LIST_SET: u16 = 2;
    pub const LIST_ELEMENTS: u16 = 3;
    pub const KEY: u16 = 1;
    pub const DATA: u16 = 2;
    pub const FLAGS: u16 = 3;
    pub const USERDATA: u16 = 6;
    pub const KEY_END: u16 = 10;
    pub const F_INTERVAL_END: u32 = 1;
}

pub mod data {
    pub const VALUE: u16 = 1;
    pub const VERDICT: u16 = 2;
    pub const VERDICT_CODE: u16 = 1;
    pub const VERDICT_CHAIN: u16 = 2;
}

pub mod generation {
    pub const ID: u16 = 1;
}

/// Verdict codes.
pub mod verdict {
    pub const DROP: i32 = 0;
    pub const ACCEPT: i32 = 1;
    pub const CONTINUE: i32 = -1;
    pub const JUMP: i32 = -3;
    pub const GOTO: i32 = -4;
    pub const RETURN: i32 = -5;
}
