#![doc = include_str!("follow/README.md")]

mod content;
mod event;
mod follower;
mod known;
mod look;
mod names;
mod pattern;
mod pending;
mod position;
mod stream;

pub use event::Event;
pub use follower::{Fill, Follower, Part, Settings};
pub use known::FileKey;
pub use names::{LogName, log_names_of};
pub use pattern::Pattern;
pub use pending::{Pending, Places};
pub use position::{Mark, checksum};
pub use stream::Stream;
