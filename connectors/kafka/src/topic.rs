//! The shape of a topic that is to be created.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

/// The shape of a topic that is to be created: `PARTITIONS,REPLICATION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewTopicShape {
    /// How many partitions it has.
    pub partitions: NonZeroU16,
    /// On how many brokers each partition is.
    pub replication: NonZeroU16,
}

/// A text is not `PARTITIONS,REPLICATION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not PARTITIONS,REPLICATION such as 12,3")]
pub struct ShapeError;

impl FromStr for NewTopicShape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let (partitions, replication) = text.split_once(',').ok_or(ShapeError)?;
        Ok(Self {
            partitions: partitions.parse().map_err(|_| ShapeError)?,
            replication: replication.parse().map_err(|_| ShapeError)?,
        })
    }
}

impl fmt::Display for NewTopicShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.partitions, self.replication)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_is_two_numbers() {
        let shape: NewTopicShape = "12,3".parse().unwrap();
        assert_eq!((shape.partitions.get(), shape.replication.get()), (12, 3));
        assert_eq!(shape.to_string(), "12,3");
        for wrong in [
            "", "12", "12,", ",3", "0,1", "1,0", "1,2,3", "1, 2", "99999,1",
        ] {
            assert_eq!(wrong.parse::<NewTopicShape>(), Err(ShapeError), "{wrong}");
        }
    }
}
