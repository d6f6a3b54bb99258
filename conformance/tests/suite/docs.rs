//! The documentation: whether it tells what the plugins do.

mod book;
mod examples;
mod keys;
mod page;
mod pages;
mod troubles;
