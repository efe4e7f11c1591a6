//! What producers and consumers are told, one order a line on their standard input.

use std::fmt;
use std::io::BufRead as _;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// A producer: make so many records, spread over so long.
    Emit { records: u64, over: Duration },
    /// A producer: send so many chunks of foreign bytes, from this number on.
    Poison { first: u64, count: u64 },
    /// Nothing more will be asked: deliver or process what there is, and end.
    Finish,
    /// A consumer: hold the next chunk after it was processed, without settling it.
    Hold,
    /// A consumer: settle what is held, and go on.
    Release,
    /// A consumer: take so long for each chunk.
    Slow { chunk: Duration },
    /// No file may become longer than this many bytes; no limit if it is 0.
    LimitFiles { bytes: u64 },
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Emit { records, over } => write!(f, "emit {records} {}", over.as_micros()),
            Self::Poison { first, count } => write!(f, "poison {first} {count}"),
            Self::Finish => f.write_str("finish"),
            Self::Hold => f.write_str("hold"),
            Self::Release => f.write_str("release"),
            Self::Slow { chunk } => write!(f, "slow {}", chunk.as_micros()),
            Self::LimitFiles { bytes } => write!(f, "limit-files {bytes}"),
        }
    }
}

impl FromStr for Order {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let mut words = line.split_whitespace();
        let name = words.next().ok_or(())?;
        let mut number = || words.next().and_then(|it| it.parse().ok()).ok_or(());
        Ok(match name {
            "emit" => Self::Emit {
                records: number()?,
                over: Duration::from_micros(number()?),
            },
            "poison" => Self::Poison {
                first: number()?,
                count: number()?,
            },
            "finish" => Self::Finish,
            "hold" => Self::Hold,
            "release" => Self::Release,
            "slow" => Self::Slow {
                chunk: Duration::from_micros(number()?),
            },
            "limit-files" => Self::LimitFiles { bytes: number()? },
            _ => return Err(()),
        })
    }
}

/// Hands over each order as it comes, on a thread of its own, until [`Order::Finish`].
///
/// When standard input ends before that, nobody will ever ask for the end: the process ends at once.
///
/// # Errors
///
/// There is no thread.
pub(super) fn listen(mut each: impl FnMut(Order) + Send + 'static) -> std::io::Result<()> {
    let listen = move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let Ok(order) = line.parse() else { continue };
            each(order);
            if order == Order::Finish {
                return;
            }
        }
        std::process::exit(1);
    };
    thread::Builder::new()
        .name("baler-orders".to_owned())
        .spawn(listen)
        .map(drop)
}

/// Bounds the length of files that this process writes, as a full disk would.
pub(super) fn limit_files(bytes: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let maximum = getrlimit(Resource::Fsize).maximum;
    let current = match bytes {
        0 => maximum,
        bytes => Some(bytes),
    };
    // If it is refused, the disk is not full, which the oracle can do without.
    setrlimit(Resource::Fsize, Rlimit { current, maximum }).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_back_from_their_lines() {
        for order in [
            Order::Emit {
                records: 12,
                over: Duration::from_millis(3),
            },
            Order::Poison { first: 3, count: 1 },
            Order::Finish,
            Order::Hold,
            Order::Release,
            Order::Slow {
                chunk: Duration::from_micros(7),
            },
            Order::LimitFiles { bytes: 1 << 16 },
        ] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        assert!("emit 5".parse::<Order>().is_err());
        assert!("dance".parse::<Order>().is_err());
    }
}
